import type { ApiObserver } from '../../kubernetes/connection/client.js'
import type { WatchRestartReason } from '../../objects/types.js'
import type { PublishResult } from '../outcome.js'

export const hookResults = ['success', 'failure'] as const
export type HookResult = (typeof hookResults)[number]

/** An agent counts by it what happens. A scrape reads from the agent what is so now: see prometheus.ts. */
export interface Metrics {
  /** `seconds`: from the moment it was due until it was durable; undefined where nothing was tried. */
  publish(directory: string, result: PublishResult, seconds: number | undefined): void
  drift(directory: string): void
  /** One pair of barriers with the steps between, for any number of directories that share it. */
  barrier(seconds: number): void
  hook(directory: string, hook: string, result: HookResult): void
  watchRestarted(reason: WatchRestartReason): void
  /** What the agent costs the API server. */
  readonly api: ApiObserver
}

/** For commands without a server. */
export const noMetrics: Metrics = {
  publish() {},
  drift() {},
  barrier() {},
  hook() {},
  watchRestarted() {},
  api: { requested() {}, throttled() {}, watches() {} },
}
