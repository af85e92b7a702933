import { setTimeout as sleep } from 'node:timers/promises'
import type { Disk } from '../../durable/index.js'
import type { Log } from '../../log.js'
import { parseManifest } from '../pod/manifest.js'
import { readNodeFile } from '../node-files.js'
import { askAll, lookInterval, successes, type Probe } from '../ready/readiness.js'
import { uptime } from '../monitor/watch-start.js'

/** Milliseconds; tests make them smaller. */
export interface RolloutTiming {
  /** Between two looks. */
  readonly interval: number
  /** How long the old pod may go on answering while no probe tells it from the new one, and none has failed since. */
  readonly settle: number
}

export const rolloutTiming: RolloutTiming = { interval: lookInterval, settle: 30_000 }

export interface Watched {
  readonly path: string
  /** The manifest that holdfast has made live. */
  readonly bytes: Buffer
  /** Seconds since boot. */
  readonly since: number
  /** Milliseconds. */
  readonly timeout: number
  readonly probes: readonly Probe[]
  /** Keys of the probes that could ask before the rollout. */
  readonly couldAsk: readonly string[]
}

/** `replaced`: another program has made another manifest live. */
export type WatchResult =
  { readonly state: 'ready' } | { readonly state: 'not-ready' | 'unknown' | 'replaced'; readonly message: string }

interface Means {
  readonly disk: Disk
  readonly log: Log
  readonly signal: AbortSignal
  readonly timing: RolloutTiming
}

/** Looks until the pod of a manifest is ready, or has not become so in time. @throws the signal's reason */
export async function watchPod(watched: Watched, { disk, log, signal, timing }: Means): Promise<WatchResult> {
  const { path, bytes, since, timeout, probes, couldAsk } = watched
  const manifest = await parseManifest(bytes, path)
  const settle = Math.min(timing.settle, timeout / 2)
  // Once a probe that only asks an address fails, it has heard the new pod; a probe that identifies pods may have failed for the old one.
  const mayFail = !probes.some(({ identifiesPod }) => identifiesPod)
  let inARow = 0
  let hasFailed = false
  let reported = ''
  for (;;) {
    signal.throwIfAborted()
    const began = performance.now()
    const live = await readNodeFile(disk.fs, path)
    if (live === undefined || !bytes.equals(live)) {
      return { state: 'replaced', message: `another program has ${live ? 'replaced' : 'removed'} ${path}` }
    }
    const readiness = await askAll(probes, manifest, signal, couldAsk)
    signal.throwIfAborted()
    const elapsed = ((await uptime()) - since) * 1000
    const message = readiness.state === 'ready' ? 'ready' : readiness.message
    if (message !== reported) log.info({ path, pod: manifest.name, state: message }, 'watching')
    reported = message
    if (readiness.state === 'ready') {
      inARow += 1
      if (inARow >= successes && (readiness.identified || hasFailed || elapsed >= settle)) return { state: 'ready' }
    } else {
      inARow = 0
      hasFailed ||= mayFail && readiness.state === 'not-ready' && !readiness.isBlind
      if (elapsed >= timeout) return { state: readiness.state, message }
    }
    const rest = Math.max(timing.interval / 10, timing.interval - (performance.now() - began))
    await sleep(rest, undefined, { signal }).catch(() => signal.throwIfAborted())
  }
}
