/**
 * Keeps one object watched until it is stopped. Nothing that the server does ends it.
 *
 * Every beginning is a consistent read, and so is every new beginning after a failure: an API server that comes back may
 * stand on an etcd that was restored from a backup, and a watch that is resumed there from a version of the lost history is
 * silent for ever. Only a watch that ended in order, when its own time was over, and that had something to say, is resumed.
 */
import type { Log } from '../../log.js'
import type { StoredObject } from '../stored-object.js'
import { describeReference, type SourceListener } from '../types.js'
import { Backoff } from './backoff.js'
import type { ApiClient, ApiStream, RequestOptions } from './client.js'
import { brokenRequest, refusedRequest, ApiError } from './api-error.js'
import { FailureReport } from './failure-report.js'
import { readFresh, readList } from './reads.js'
import type { Recovery } from './recovery.js'
import { collectionPath, objectTarget, streamingListQuery, watchQuery } from './requests.js'
import type { WatchTiming } from './timing.js'
import { WatchSession } from './watch-session.js'

/** What the watches of one source share. */
export interface WatchContext {
  readonly client: ApiClient
  readonly listener: Pick<SourceListener, 'watchRestarted'>
  readonly log: Log
  readonly random: () => number
  readonly timing: WatchTiming
  readonly recovery: Recovery
  /** False once the server has refused, or did not understand, a list and watch in one stream. */
  streamingLists: boolean
}

export class Reflector {
  readonly #backoff: Backoff
  readonly #report: FailureReport
  #attempt = new AbortController()
  #stopped = false

  constructor(
    private readonly stored: StoredObject,
    private readonly context: WatchContext,
  ) {
    this.#backoff = new Backoff(context.timing, context.random)
    this.#report = new FailureReport(stored, context)
  }

  /** Resolves, never rejects, when the watch was stopped. */
  async run(): Promise<void> {
    let from: string | undefined
    while (!this.#isStopped()) {
      try {
        from = await this.#watchOnce(from)
      } catch (error) {
        if (this.#isStopped()) return
        from = undefined
        await this.#recover(brokenRequest(objectTarget(this.stored.reference), error))
      }
    }
  }

  /** What was seen so far stays as it is. */
  stop(): void {
    this.#stopped = true
    this.#attempt.abort()
  }

  #isStopped(): boolean {
    return this.#stopped
  }

  /** @returns from where to go on; undefined where it must begin with a list */
  async #watchOnce(from: string | undefined): Promise<string | undefined> {
    if (from !== undefined) return this.#watch(from)
    if (this.context.streamingLists) return this.#watch(undefined)
    const { client } = this.context
    const { observed, resourceVersion } = await readList(client, this.stored.reference, this.#request())
    this.#answered()
    if (this.stored.offer(observed) === 'stale') this.stored.confirm(await this.#readFresh())
    if (resourceVersion === undefined)
      throw new ApiError('protocol', `${describeReference(this.stored.reference)}: the list has no resourceVersion`)
    return this.#watch(resourceVersion)
  }

  /** One stream to its end, begun with the initial events where `from` is undefined. */
  async #watch(from: string | undefined): Promise<string | undefined> {
    const { client, timing, recovery, random, listener } = this.context
    const { reference } = this.stored
    const [shortest, longest] = timing.watchSeconds
    const seconds = Math.round(shortest + random() * (longest - shortest))
    const query = from === undefined ? streamingListQuery(reference, seconds) : watchQuery(reference, from, seconds)
    const attempt = this.#newAttempt()
    const stream = await client.stream(collectionPath(reference), query, this.#request(attempt))
    if (from === undefined && (stream.status === 400 || stream.status === 422)) {
      this.#listSeparately(`HTTP ${stream.status}`)
      return
    }
    if (stream.status !== 200) throw refusedRequest(objectTarget(reference), 'watch', stream)
    this.#answered()

    const session = new WatchSession(this.stored, from, () => this.#readFresh(attempt))
    const began = performance.now()
    recovery.streamOpened()
    try {
      await this.#follow(stream, session, attempt, seconds)
    } catch (error) {
      if (!attempt.signal.aborted || this.#isStopped()) throw error
    } finally {
      recovery.streamClosed()
      // Whatever ended it, the stream is not left open behind.
      attempt.abort()
      if (performance.now() - began >= timing.healthyAfter) this.#backoff.reset()
    }
    if (this.#isStopped()) return undefined
    if (session.initialEventsPending && attempt.signal.reason === unanswered) {
      this.#listSeparately('the initial events did not end')
      return
    }
    const lasted = (performance.now() - began) / 1000
    // Timers and clocks differ by a little; ten seconds less than five minutes is not little.
    if (lasted < seconds * 0.95 - 1) {
      const lived = `${lasted.toFixed(1)} s of ${seconds} s`
      throw new ApiError('connection', `${describeReference(reference)}: the server ended the watch after ${lived}`)
    }
    listener.watchRestarted('timeout', reference)
    return session.resumeFrom
  }

  async #follow(stream: ApiStream, session: WatchSession, attempt: AbortController, seconds: number): Promise<void> {
    const { timing } = this.context
    const overrun = setTimeout(() => attempt.abort(overran), seconds * 1000 + timing.overrun)
    const initial = new Patience(timing.initialEventsTimeout, () => attempt.abort(unanswered))
    if (session.initialEventsPending) initial.resume()
    try {
      for await (const line of stream.lines) {
        // What an event makes us ask for meanwhile is not the server's silence.
        initial.pause()
        await session.take(line)
        if (session.initialEventsPending) initial.resume()
      }
    } finally {
      clearTimeout(overrun)
      initial.pause()
    }
  }

  #listSeparately(why: string): undefined {
    if (this.context.streamingLists) {
      this.context.log.info({ why }, 'the API server has no streaming lists: each watch starts with a list')
    }
    this.context.streamingLists = false
    return undefined
  }

  async #recover(failure: ApiError): Promise<void> {
    const { context } = this
    this.#report.tell(failure, this.#backoff.failures(failure.reason) === 0)
    context.listener.watchRestarted(failure.reason, this.stored.reference)
    const { retryAfter } = failure.details
    const again = this.#backoff.failures(failure.reason) > 0
    let delay = this.#backoff.next(failure.reason)
    // What has expired needs a list, and no patience; unless that does not help.
    if (failure.reason === 'expired' && !again) delay = 0
    if (retryAfter !== undefined) {
      delay = Math.max(delay, Math.min(retryAfter, context.timing.longestRetryAfter) * (1 + 0.1 * context.random()))
    }
    const { signal } = this.#newAttempt()
    if (failure.details.status === 401) await this.#awaitCredentials(delay, signal)
    else await context.recovery.wait(delay, failure.serverAway && retryAfter === undefined, signal)
  }

  /** A token that expired is mostly replaced within seconds: the watch need not sit out a long delay then. */
  async #awaitCredentials(delay: number, signal: AbortSignal): Promise<void> {
    const waiting = new AbortController()
    const renewal = this.context.client.renewal(AbortSignal.any([signal, waiting.signal]))
    try {
      await this.context.recovery.wait(delay, false, signal, renewal)
    } finally {
      waiting.abort()
    }
  }

  #answered(): void {
    this.#report.answered()
    this.context.recovery.succeeded()
  }

  #readFresh(attempt = this.#newAttempt()): Promise<Parameters<StoredObject['confirm']>[0]> {
    return readFresh(this.context.client, this.stored.reference, this.#request(attempt))
  }

  #newAttempt(): AbortController {
    this.#attempt = new AbortController()
    if (this.#stopped) this.#attempt.abort()
    return this.#attempt
  }

  #request(attempt = this.#newAttempt()): RequestOptions {
    return { signal: attempt.signal, timeout: this.context.timing.requestTimeout }
  }
}

/** Calls back when it has been waited for so many milliseconds in all; pauses do not count. */
class Patience {
  #timer: NodeJS.Timeout | undefined
  #since = 0

  constructor(
    private left: number,
    private readonly over: () => void,
  ) {}

  resume(): void {
    this.#since = performance.now()
    this.#timer = setTimeout(this.over, this.left)
  }

  pause(): void {
    if (this.#timer === undefined) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.left -= performance.now() - this.#since
  }
}

/** Why a stream was cut by ourselves. */
const overran = new Error('the watch outlived its time')
const unanswered = new Error('the initial events did not end in time')
