import type { CertificateDate } from '../../directories/types.js'
import type { ApiObserver } from '../../kubernetes/connection/client.js'
import type { WatchRestartReason } from '../../objects/types.js'
import { failingSince, isCurrent, type DirectoryFacts } from '../directory-state.js'
import { pendingHookNames } from './status-file.js'
import type { Context, Meaning, PublishResult } from '../outcome.js'

export const hookResults = ['success', 'failure'] as const
type HookResult = (typeof hookResults)[number]

/** The agent's counters. Every label set that it knows beforehand starts at 0. */
export interface Metrics {
  /** Starts a directory's label sets; again after its configuration has changed. */
  follow(directory: string, hooks: readonly string[]): void
  /** Ends all label sets of a directory. */
  forget(directory: string): void
  /** `seconds`: from the moment it was due until it was durable; undefined where nothing was tried. */
  publish(directory: string, result: PublishResult, seconds: number | undefined): void
  publishedAt(directory: string, date: Date): void
  ready(directory: string, ready: boolean): void
  /** An operator keeps it as it is. */
  held(directory: string, held: boolean): void
  /** The newest that the source has reported is on the disk; or it is not, since then. */
  current(directory: string, current: boolean, failingSince: Date | undefined): void
  /** It is the old path of a directory that has moved, and still kept. */
  moving(directory: string, moving: boolean): void
  drift(directory: string): void
  /** It is not configured any more, and is to be removed. */
  dropPending(directory: string, pending: boolean): void
  /** One pair of barriers with the steps between, for any number of directories that share it. */
  barrier(seconds: number): void
  watchRestarted(reason: WatchRestartReason): void
  /** What the agent costs the API server. */
  readonly api: ApiObserver
  confirmed(directory: string, date: Date): void
  hook(directory: string, hook: string, result: HookResult): void
  /** All of its hooks that have yet to run. */
  hooksDue(directory: string, hooks: readonly string[]): void
  certificates(directory: string, dates: readonly CertificateDate[]): void
  clientCertificate(notAfter: Date | undefined): void
  /** How long the operation that works on the disk now has been running; 0: none is. */
  running(directory: string, seconds: number): void
  /** All operations that wait now: `publish`, `afterPublish`. */
  waiting(operations: readonly string[]): void
}

/** For commands without a server. */
export const noMetrics: Metrics = {
  follow() {},
  forget() {},
  publish() {},
  publishedAt() {},
  ready() {},
  held() {},
  current() {},
  moving() {},
  drift() {},
  dropPending() {},
  barrier() {},
  watchRestarted() {},
  api: { requested() {}, throttled() {}, watches() {} },
  confirmed() {},
  hook() {},
  hooksDue() {},
  certificates() {},
  clientCertificate() {},
  running() {},
  waiting() {},
}

/** Sets the gauges of a standing failure, after each change of a directory's condition. */
export function reportStanding(metrics: Metrics, facts: DirectoryFacts): void {
  metrics.current(facts.configuration.path, isCurrent(facts), failingSince(facts))
}

/** A hook that another process has run, or that a rollback made needless, is not due any more. */
export function reportHooksDue(metrics: Metrics, facts: DirectoryFacts): void {
  metrics.hooksDue(facts.configuration.path, pendingHookNames(facts))
}

/** Counts one pass over a directory, and shows how the directory stands after it. */
export function reportMetrics(
  metrics: Metrics,
  { result }: Pick<Meaning, 'result'>,
  { directory, milliseconds, intact }: Pick<Context, 'directory' | 'milliseconds' | 'intact'>,
  { record, passed }: Pick<DirectoryFacts, 'record' | 'passed'>,
): void {
  metrics.ready(directory, intact)
  metrics.held(directory, record?.hold !== undefined)
  if (record) metrics.publishedAt(directory, record.publishedAt)
  metrics.certificates(directory, passed.certificates)
  if (result !== undefined) metrics.publish(directory, result, result === 'refused' ? undefined : milliseconds / 1000)
}
