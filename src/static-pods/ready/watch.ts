/*
 * The one machine that watches a pod which has just changed: it looks again and again, asks every probe, and hands over to the front end,
 * `monitor` or `rollout`, once the pod is proven ready, or its time is over. The front end then keeps or takes back the revision.
 */
import { NodeFileSystem, type Disk } from '../../durable/index.js'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../../errors.js'
import { DurableWriteError } from '../../durable/errors.js'
import type { Log } from '../../log.js'
import type { Manifest } from '../pod/manifest.js'
import { askAll, type Probe, type Readiness } from './readiness.js'

/** Successes in a row that count as ready: one may come from the old pod, or from a new one about to fail. */
const successes = 3

/** Milliseconds; tests make them smaller. */
interface WatchTiming {
  /** Between two looks; library-go's. */
  readonly interval: number
  /** How long the old pod may go on answering while no probe tells it from the new one, and none has failed since. */
  readonly settle: number
}

const usualTiming: WatchTiming = { interval: 1_000, settle: 30_000 }

/** How long a pod may take, and how it proves itself. */
export interface Proof {
  readonly probes: readonly Probe[]
  /** Keys of the probes that could ask before the change. */
  readonly couldAsk?: readonly string[]
  /** Milliseconds in which the pod has to be proven ready. */
  readonly timeout: number
  /** Milliseconds within the timeout for which it must answer without a failure; undefined: three answers do. */
  readonly readyFor?: number | undefined
}

/** What a front end says about the pod, and does with the result. */
export interface Watched<Outcome> {
  readonly proof: Proof
  /** For the log. */
  readonly fields: object
  /** The manifest of the pod to ask for; an outcome that is certain without; or why there is nothing to ask yet. */
  find(): Promise<{ readonly manifest: Manifest } | { readonly outcome: Outcome } | { readonly waiting: string }>
  /** Milliseconds since the pod's time began. */
  elapsed(): Promise<number>
  /** The old pod does not count as the new one, even where no probe tells the two apart. */
  readonly maySeeOldPod?: true
  ready(): Promise<Outcome>
  /** It was not proven ready in time, or, with `unknown`, no probe could ask. */
  late(readiness: Exclude<Readiness, { state: 'ready' }>): Promise<Outcome>
  /** Makes one look, under a lock if need be. */
  around?<T>(look: () => Promise<T>): Promise<T>
}

/** What a watch works with, and the disk on which its front end decides. */
export interface WatchMeans {
  readonly disk: Disk
  readonly log: Log
  readonly signal: AbortSignal
  readonly timing?: Partial<WatchTiming> | undefined
}

/** Looks until the pod is proven ready, or has not become so in time. @throws the signal's reason; what the front end throws */
export async function watch<Outcome>(watched: Watched<Outcome>, { log, signal, timing }: WatchMeans): Promise<Outcome> {
  const { interval, settle } = { ...usualTiming, ...timing }
  const trial = new Trial(watched, settle, log, signal)
  for (;;) {
    signal.throwIfAborted()
    const began = performance.now()
    const look = watched.around?.(() => trial.look()) ?? trial.look()
    const outcome = await look.catch((error: unknown) => {
      // An installer holds the lock, or a prune is under way: the next look shows its outcome.
      if (!(error instanceof DurableWriteError) || error.reason !== 'Busy') throw error
      trial.report(messageOf(error))
      return undefined
    })
    if (outcome !== undefined) return outcome
    // A probe may take longer than the interval; a rest there always is.
    const rest = Math.max(interval / 10, interval - (performance.now() - began))
    await sleep(rest, undefined, { signal }).catch(() => signal.throwIfAborted())
  }
}

class Trial<Outcome> {
  #inARow = 0
  #readySince = 0
  #hasFailed = false
  #reported = ''

  constructor(
    private readonly watched: Watched<Outcome>,
    private readonly settle: number,
    private readonly log: Log,
    private readonly signal: AbortSignal,
  ) {}

  /** undefined while nothing is decided. */
  async look(): Promise<Outcome | undefined> {
    const { watched, signal } = this
    const { proof } = watched
    const found = await watched.find()
    if ('outcome' in found) return found.outcome
    if ('waiting' in found) {
      this.#inARow = 0
      this.report(found.waiting)
      return undefined
    }
    // The time begins before the first answer, however long that takes.
    await watched.elapsed()
    const readiness = await askAll(proof.probes, found.manifest, signal, proof.couldAsk)
    signal.throwIfAborted()
    const elapsed = await watched.elapsed()
    const isLate = elapsed >= proof.timeout
    this.report(readiness.state === 'ready' ? 'ready' : readiness.message)
    if (readiness.state === 'ready') return this.#answered(readiness.identified, elapsed, isLate)
    this.#inARow = 0
    // A probe that only asks an address has then heard the new pod; a probe that identifies pods may have failed for the old pod.
    const canIdentify = proof.probes.some(({ identifiesPod }) => identifiesPod)
    this.#hasFailed ||= !canIdentify && readiness.state === 'not-ready' && !readiness.isBlind
    return isLate ? watched.late(readiness) : undefined
  }

  async #answered(identified: boolean, elapsed: number, isLate: boolean): Promise<Outcome | undefined> {
    const { proof, maySeeOldPod } = this.watched
    const { timeout, readyFor = 0 } = proof
    if (this.#inARow === 0) this.#readySince = performance.now()
    this.#inARow += 1
    const steady = performance.now() - this.#readySince
    const isNew = !maySeeOldPod || identified || this.#hasFailed || elapsed >= Math.min(this.settle, timeout / 2)
    if (steady >= readyFor) return this.#inARow >= successes && isNew ? this.watched.ready() : undefined
    if (!isLate) return undefined
    const message = `it has answered for ${(steady / 1000).toFixed(1)} s, and --ready-for is ${readyFor / 1000} s`
    return this.watched.late({ state: 'not-ready', message })
  }

  /** Each thing once, until it changes: a look a second would fill the log. */
  report(message: string): void {
    if (message === this.#reported) return
    this.#reported = message
    this.log.info({ ...this.watched.fields, state: message }, 'watching')
  }
}

/** Seconds since boot, as the kernel counts them. */
export function uptime(): number {
  return new NodeFileSystem().uptime() / 1000
}
