import type { CertificateDate } from '../directories/types.js'
import type { WatchRestartReason } from '../objects/types.js'

/** What became of a publication: its outcome, `failed` (the target is what it was), `unknown` (durability), `refused` (nothing was tried). */
export const publishResults = ['created', 'replaced', 'unchanged', 'failed', 'unknown', 'refused'] as const
export type PublishResultLabel = (typeof publishResults)[number]

export const hookResults = ['success', 'failure'] as const
export type HookResultLabel = (typeof hookResults)[number]

/** What the agent counts. Every label set that can be known beforehand begins at 0. */
export interface Metrics {
  /** Begins a directory's label sets; again after its configuration has changed. */
  follow(directory: string, hooks: readonly string[]): void
  /** Ends all label sets of a directory. */
  forget(directory: string): void
  /** `seconds`: from the moment it was due until it was durable; undefined where nothing was tried. */
  publish(directory: string, result: PublishResultLabel, seconds: number | undefined): void
  publishedAt(directory: string, date: Date): void
  ready(directory: string, ready: boolean): void
  drift(directory: string): void
  /** One pair of barriers with what lies between, whatever number of directories shared it. */
  barrier(seconds: number): void
  watchRestarted(reason: WatchRestartReason): void
  confirmed(directory: string, date: Date): void
  hook(directory: string, hook: string, result: HookResultLabel): void
  certificates(directory: string, dates: readonly CertificateDate[]): void
  clientCertificate(notAfter: Date | undefined): void
}

/** For commands without a server. */
export const uncounted: Metrics = {
  follow() {},
  forget() {},
  publish() {},
  publishedAt() {},
  ready() {},
  drift() {},
  barrier() {},
  watchRestarted() {},
  confirmed() {},
  hook() {},
  certificates() {},
  clientCertificate() {},
}
