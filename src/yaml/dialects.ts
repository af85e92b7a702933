/** How each kind of file is read: as strictly as its own readers read it, and no differently. */
import type { DocumentOptions, ParseOptions, SchemaOptions } from 'yaml'

export type Dialect = 'any' | 'configuration' | 'kubeconfig' | 'objects' | 'manifest'

export const dialects = {
  /** Whatever some reader takes for YAML. */
  any: { merge: true },
  /** YAML 1.2 and nothing else: merge keys are refused, and a field that stands twice is found where its place is known. */
  configuration: { version: '1.2', schema: 'core', merge: false, strict: true, uniqueKeys: false },
  /** kubectl merges (`<<`). */
  kubeconfig: { merge: true },
  /** Keys such as `123` and `true` are strings in Kubernetes. */
  objects: { stringKeys: true },
  /** Texts alone, and each field as often as it stands: what they mean to kubelet is for go-values.ts to say. */
  manifest: { schema: 'failsafe', resolveKnownTags: false, merge: false, uniqueKeys: false },
} as const satisfies Record<Dialect, ParseOptions & DocumentOptions & SchemaOptions>
