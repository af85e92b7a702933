/*
 * The one machine that watches a pod which has just changed: it looks again and again, asks every probe, and hands over to the front end,
 * `monitor` or `rollout`, once the pod is proven ready, or its time is over. The front end then keeps or takes back the revision.
 */
import { sleep } from '../../deadline.js'
import type { DurableCalls } from '../../durable/index.js'
import { messageOf } from '../../errors.js'
import { DurableWriteError } from '../../durable/errors.js'
import type { Log } from '../../log.js'
import type { Manifest } from '../pod/manifest.js'
import { asList, asMap } from '../json.js'
import { startedAgain } from './reported-pod.js'
import { noLimit, askEach, readinessOf, type ProbeAnswer, type Probe, type Readiness } from './readiness.js'

/** Successes in a row that count as ready: one may come from the old pod, or from a new one about to fail. */
const successes = 3

/** Milliseconds; tests make them smaller, and let them pass by themselves. */
interface PodWatchTiming {
  /** Between two looks; library-go's. */
  readonly interval: number
  /** How long the old pod may go on answering while no probe tells it from the new one, and none has failed since. */
  readonly handover: number
  /** How long a kubelet that has run the pod may say that it does not: it lists the manifests every 20 s (`fileCheckFrequency`). */
  readonly absence: number
  /** Between two reports of the same. */
  readonly report: number
  readonly rest: (milliseconds: number, signal: AbortSignal) => Promise<void>
}

const usualTiming: PodWatchTiming = {
  interval: 1_000,
  handover: 30_000,
  absence: 40_000,
  report: 30_000,
  rest: (milliseconds, signal) => sleep(milliseconds, { signal }),
}

/** How long a pod may take, and how it proves itself. */
export interface Proof {
  readonly probes: readonly Probe[]
  /** Each probe has to say that the pod is ready; otherwise one that cannot say does not count beside one that does. */
  readonly every?: true
  /** Milliseconds in which the pod has to be proven ready. */
  readonly timeout: number
  /** Milliseconds within the timeout for which it must answer without a failure; undefined: as `usualReadyFor` has it. */
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
  /** It was not proven ready in time, or, with `unknown`, nobody could say. */
  late(readiness: Exclude<Readiness, { state: 'ready' }>): Promise<Outcome>
  /** Makes one look, under a lock if need be. */
  around?<T>(look: () => Promise<T>): Promise<T>
}

/** What a watch works with, and the disk on which its front end decides. */
export interface WatchMeans {
  readonly durable: DurableCalls
  readonly log: Log
  readonly signal: AbortSignal
  readonly timing?: Partial<PodWatchTiming> | undefined
}

/** Looks until the pod is proven ready, or has not become so in time. @throws the signal's reason; what the front end throws */
export async function watch<Outcome>(watched: Watched<Outcome>, means: WatchMeans): Promise<Outcome> {
  const { durable, log, signal, timing } = means
  const times = { ...usualTiming, ...timing }
  const { interval, rest } = times
  const now = () => durable.fs.uptime()
  const trial = new Trial(watched, times, now, log, signal)
  for (;;) {
    signal.throwIfAborted()
    const began = now()
    const look = watched.around?.(() => trial.look()) ?? trial.look()
    const outcome = await look.catch((error: unknown) => {
      // An installer holds the lock, or a prune is under way: the next look shows its outcome.
      if (!(error instanceof DurableWriteError) || error.reason !== 'Busy') throw error
      trial.report(messageOf(error))
      return undefined
    })
    if (outcome !== undefined) return outcome
    // A probe may take longer than the interval; a rest there always is.
    const left = Math.max(interval / 10, interval - (now() - began))
    await rest(left, signal).catch(() => signal.throwIfAborted())
  }
}

/** The longest time that a liveness probe may take to kill, for the pod to be watched so long; and what its container then needs to end. */
const longestKill = 30_000
const killMargin = 5_000

/**
 * Milliseconds for which a pod must answer where no flag says so: 10 s, or until its liveness probes would have killed it, where they need
 * half a minute at most; half of the timeout, if that is shorter.
 * @internal
 */
export function usualReadyFor({ pod }: Manifest, timeout: number): number {
  const kills = asList(asMap(pod.spec)?.containers).flatMap((container) => {
    const probe = asMap(asMap(container)?.livenessProbe)
    if (probe === undefined) return []
    const { initialDelaySeconds = 0, periodSeconds = 10, failureThreshold = 3 } = probe
    return (Number(initialDelaySeconds) + Number(periodSeconds) * Number(failureThreshold)) * 1000
  })
  const covered = kills.filter((kill) => kill <= longestKill).map((kill) => kill + killMargin)
  return Math.min(Math.max(10_000, ...covered), timeout / 2)
}

class Trial<Outcome> {
  #inARow = 0
  #readySince = 0
  #restarts: number | undefined
  #hasFailed = false
  #reported = ''
  #reportedAt = 0
  /** Probes that have seen the pod, old or new. */
  readonly #seenBy = new Set<Probe>()
  #absentSince: number | undefined

  constructor(
    private readonly watched: Watched<Outcome>,
    private readonly times: PodWatchTiming,
    private readonly now: () => number,
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
    const answers = await askEach(proof.probes, [found.manifest], signal)
    const readiness = readinessOf(answers, proof.every === true)
    signal.throwIfAborted()
    const elapsed = await watched.elapsed()
    const isLate = elapsed >= proof.timeout
    const isRefused = this.#isRefused(answers)
    this.report(readiness.state === 'ready' ? 'ready' : readiness.message, proof.timeout - elapsed)
    if (readiness.state === 'ready') return this.#answered(found.manifest, readiness, elapsed, isLate)
    this.#inARow = 0
    // A probe that only asks an address has then heard the new pod; a probe that identifies pods may have failed for the old pod.
    const canIdentify = proof.probes.some(({ identifiesPod }) => identifiesPod)
    this.#hasFailed ||= !canIdentify && readiness.state === 'not-ready'
    if (proof.every && isRefused) {
      const message = `${readiness.message} for ${this.times.absence / 1000} s: it has refused the manifest, and its log says why`
      return watched.late({ state: 'not-ready', message })
    }
    return isLate ? watched.late(readiness) : undefined
  }

  /** A kubelet that has listed the pod drops it where its validation refuses the file, and no later look at the file changes that. */
  #isRefused(answers: readonly ProbeAnswer[]): boolean {
    for (const { probe, result } of answers) {
      if (probe.identifiesPod && (result.state === 'ready' || result.state === 'not-ready')) this.#seenBy.add(probe)
    }
    const isGone = answers.some(({ probe, result }) => result.state === 'absent' && this.#seenBy.has(probe))
    this.#absentSince = isGone ? (this.#absentSince ?? this.now()) : undefined
    return this.#absentSince !== undefined && this.now() - this.#absentSince >= this.times.absence
  }

  async #answered(
    manifest: Manifest,
    { identified, restarts = 0, lived = 0 }: Extract<Readiness, { state: 'ready' }>,
    elapsed: number,
    isLate: boolean,
  ): Promise<Outcome | undefined> {
    const { proof, maySeeOldPod } = this.watched
    const { timeout } = proof
    // A container that started again between two looks was dead in between, and has to outlive its last life.
    const isAgain = this.#restarts !== undefined && restarts !== this.#restarts
    if (isAgain) this.#inARow = 0
    this.#restarts = restarts
    const readyFor = Math.max(proof.readyFor ?? usualReadyFor(manifest, timeout), lived)
    if (this.#inARow === 0) this.#readySince = this.now()
    this.#inARow += 1
    const steady = this.now() - this.#readySince
    const isNew =
      !maySeeOldPod || identified || this.#hasFailed || elapsed >= Math.min(this.times.handover, timeout / 2)
    // Who answers at the end may answer often enough; who starts again and again never would.
    if (steady >= readyFor && !(isLate && isAgain))
      return this.#inARow >= successes && isNew ? this.watched.ready() : undefined
    if (!isLate) return undefined
    const wanted =
      isAgain || lived === readyFor
        ? `its container has ${startedAgain(restarts)}, the last time after ${lived / 1000} s`
        : `--ready-for is ${readyFor / 1000} s`
    const message = `it has answered for ${(steady / 1000).toFixed(1)} s, and ${wanted}`
    return this.watched.late({ state: 'not-ready', message })
  }

  /** Each thing when it changes, and now and then: a look a second would fill the log. `left`: milliseconds to the timeout. */
  report(message: string, left = Infinity): void {
    const now = this.now()
    if (message === this.#reported && now - this.#reportedAt < this.times.report) return
    this.#reported = message
    this.#reportedAt = now
    // Without a limit there is no such time.
    const rest = left > noLimit / 2 ? {} : { left: `${Math.max(0, Math.round(left / 1000))}s` }
    this.log.info({ ...this.watched.fields, state: message, ...rest }, 'watching')
  }
}
