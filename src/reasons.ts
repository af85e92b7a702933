/**
 * The reasons that holdfast gives in conditions, events, logs and metrics. They are an alerting contract:
 * none is ever renamed.
 */
export const reasons = [
  'Published',
  'Unchanged',
  'Removed',
  'ObjectMissing',
  'ObjectInvalid',
  'CertificateInvalid',
  'ContentRejected',
  'PublishFailed',
  'DurabilityUnknown',
  'DriftRepaired',
  'TargetForeign',
  'TargetUnfit',
  'NoSpace',
  'Busy',
  'AccessDenied',
  'SourceUnavailable',
  'HistoryRewound',
  'HookFailed',
  'CertificateExpired',
  'ConfigurationInvalid',
  'NotConfirmed',
  'Stalled',
  'Held',
  'RolledBack',
  'Relocating',
  'Relocated',
  'InUse',
  'DropPending',
  'Dropped',
  'AdoptionPending',
  'AdoptionRefused',
  'ReportRefused',
] as const

/** Why something is as it is, in a word that conditions, events, logs, metrics and errors share. */
export type Reason = (typeof reasons)[number]
