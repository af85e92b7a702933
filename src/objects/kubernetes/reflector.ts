/**
 * Keeps one object, or one collection, watched until it is stopped. Nothing that the server does ends it.
 *
 * Every start is a consistent read, and so is every restart after a failure: an API server that comes back may stand on an etcd
 * that was restored from a backup, and a watch that is resumed there from a version of the lost history is silent for ever. Only a
 * watch that ended in order is resumed, and only if it, or one that it resumed, has said something within the time of one watch.
 */
import type { Log } from '../../log.js'
import type { SourceListener, WatchRestartReason } from '../types.js'
import { Backoff } from '../../backoff.js'
import { ConnectionError, type ApiClient, type RequestOptions } from '../../kubernetes/connection/client.js'
import { wasCut } from '../../kubernetes/connection/connection-error.js'
import { brokenRequest, refusedRequest, ApiError } from '../../kubernetes/reads/api-error.js'
import { Recovery } from './recovery.js'
import { describeTarget } from '../../kubernetes/reads/requests.js'
import { AbortableSemaphore } from '../../abortable-semaphore.js'
import { StreamingLists } from './streaming-lists.js'
import type { WatchTiming } from './timing.js'
import { InitialEventsLate, readEvents, WatchSession } from './watch-session.js'
import { describeObjects, type WatchSubject } from './watch-subject.js'

/** The watches of one source share it. */
export interface WatchContext {
  readonly client: ApiClient
  readonly listener: Pick<SourceListener, 'watchRestarted'>
  readonly log: Log
  readonly random: () => number
  readonly timing: WatchTiming
  readonly recovery: Recovery
  readonly streamingLists: StreamingLists
  /**
   * For watches that begin. A node's watches begin together, and so do those of all nodes when the API server is back: the server bounds its queue for one
   * service account, and answers further requests with 429.
   */
  readonly openings: AbortableSemaphore
}

/** Watches that begin at a time. */
const openings = 4

export function watchContext(
  shared: Pick<WatchContext, 'client' | 'listener' | 'log' | 'random' | 'timing'>,
): WatchContext {
  const { log, random, timing } = shared
  return {
    ...shared,
    recovery: new Recovery(timing, random),
    streamingLists: new StreamingLists(log, timing.streamingRetry),
    openings: new AbortableSemaphore(openings),
  }
}

interface FailureRule {
  /** `debug`: the failure belongs to the ordinary course of a watch, and needs no action. */
  readonly log: 'warn' | 'debug'
  /**
   * The end of the wait before the next try, apart from the backoff: `server`, another watch got through; `credentials`, other
   * credentials can be had. A server that is away, or a kubeconfig that is wrong, is one failure for all watches, and one of them
   * speaks for all.
   */
  readonly until: 'server' | 'credentials' | 'backoff'
  /** The first failure of this kind in a row is followed by a list at once. */
  readonly firstAtOnce: boolean
}

/** The rule for each kind of failure. A watch whose time is over has not failed. */
const rules: Readonly<Record<Exclude<WatchRestartReason, 'timeout'>, FailureRule>> = {
  connection: { log: 'warn', until: 'server', firstAtOnce: false },
  goaway: { log: 'warn', until: 'server', firstAtOnce: false },
  'server-error': { log: 'warn', until: 'server', firstAtOnce: false },
  unauthorized: { log: 'warn', until: 'credentials', firstAtOnce: false },
  // No request was sent: there is no kubeconfig, it is wrong, or its plugin fails. The first watch that gets through wakes the others.
  credentials: { log: 'warn', until: 'server', firstAtOnce: false },
  denied: { log: 'warn', until: 'backoff', firstAtOnce: false },
  throttled: { log: 'warn', until: 'backoff', firstAtOnce: false },
  protocol: { log: 'warn', until: 'backoff', firstAtOnce: false },
  silence: { log: 'warn', until: 'backoff', firstAtOnce: false },
  // holdfast itself has closed the connection: the credentials or the authority were replaced.
  rotation: { log: 'debug', until: 'backoff', firstAtOnce: false },
  // An expired version (410) needs a new list at once; after a second 410, back off.
  expired: { log: 'debug', until: 'backoff', firstAtOnce: true },
}

export class Reflector {
  readonly #backoff: Backoff
  #attempt = new AbortController()
  #stopped = false
  /** The next try lists first, although the server has not refused streaming lists: the last one's initial events did not end. */
  #listFirst = false
  /** The server sends bookmarks: it is not silent for long unless it has forgotten the watch. */
  #bookmarked = false
  /** performance.now() of the last list, event or bookmark that came before the watch under way. */
  #heardAt = 0
  /** performance.now() of the first denial in a row. */
  #deniedSince: number | undefined
  /** Since its last failure: it got through with an event or a bookmark, or a stream has lasted. */
  #since: 'failed' | 'through' | 'lasted' = 'failed'
  /** Another watch that got through ended its last wait, and it has not lasted since. */
  #woken = false

  constructor(
    private readonly subject: WatchSubject,
    private readonly context: WatchContext,
  ) {
    this.#backoff = new Backoff(context.timing, context.random)
  }

  /** Resolves when the watch was stopped; rejects where its subject does not take a failure. */
  async run(): Promise<void> {
    let from: string | undefined
    while (!this.#isStopped()) {
      try {
        from = await this.#watchOnce(from)
      } catch (error) {
        if (this.#isStopped()) return
        from = undefined
        if (error instanceof InitialEventsLate) this.#listFirst = true
        else await this.#recover(brokenRequest(this.subject.target, error))
      }
    }
  }

  /** The objects keep their last reported states. */
  stop(): void {
    this.#stopped = true
    this.#attempt.abort()
  }

  #isStopped(): boolean {
    return this.#stopped
  }

  /** @returns from where to go on; undefined where it must start with a list */
  async #watchOnce(from: string | undefined): Promise<string | undefined> {
    const { streamingLists } = this.context
    const { target, path, streams } = this.subject
    if (from !== undefined) return this.#watch(from)
    if (streams && !this.#listFirst && streamingLists.worthTrying(path)) return this.#watch(undefined)
    this.#listFirst = false
    const attempt = this.#newAttempt()
    const resourceVersion = await this.#opening(attempt, () => this.subject.list(() => this.#request(attempt)))
    this.#heardAt = performance.now()
    this.#deniedSince = undefined
    if (resourceVersion === undefined)
      throw new ApiError('protocol', `${describeTarget(target)}: the list has no resourceVersion`)
    return this.#watch(resourceVersion)
  }

  /** One stream to its end, started with the initial events where `from` is undefined. */
  async #watch(from: string | undefined): Promise<string | undefined> {
    const { client, timing, recovery, random, streamingLists } = this.context
    const { target, path, accept } = this.subject
    const [shortest, longest] = timing.watchSeconds
    const seconds = Math.round(shortest + random() * (longest - shortest))
    const attempt = this.#newAttempt()
    const query = this.subject.query(from, seconds)
    const stream = await this.#opening(attempt, () =>
      client.stream(path, query, { attempt, timeout: timing.requestTimeout, accept }),
    )
    const refused = stream.foreign === undefined && (stream.status === 400 || stream.status === 422)
    if (from === undefined && refused) {
      streamingLists.refused(path, stream.status)
      return undefined
    }
    if (stream.status !== 200) throw refusedRequest(target, 'watch', stream)
    this.#deniedSince = undefined

    const events = this.subject.events(() => this.#request(attempt))
    const startedAt = performance.now()
    const session = new WatchSession(this.subject, from, events, () => this.#gotThrough(startedAt))
    const healthy = setTimeout(() => this.#lasted(session, startedAt), timing.healthyAfter)
    recovery.streamOpened()
    try {
      await readEvents(stream, session, { target, seconds, timing, attempt, bookmarked: this.#bookmarked })
    } finally {
      clearTimeout(healthy)
      // A timer may come late, and the stream may have ended before it.
      if (performance.now() - startedAt >= timing.healthyAfter) this.#lasted(session, startedAt)
      recovery.streamClosed()
      this.#bookmarked = (this.#bookmarked || session.bookmarked) && !attempt.signal.aborted
      // The stream must not stay open behind, even after an error.
      attempt.abort()
    }
    if (this.#isStopped()) return undefined
    return this.#endedInOrder(session, seconds, (performance.now() - startedAt) / 1000)
  }

  /**
   * A load balancer may end each watch long before its time: it is resumed, and nothing was missed.
   * @returns from where to go on
   */
  async #endedInOrder(session: WatchSession, seconds: number, lasted: number): Promise<string | undefined> {
    const { timing, recovery, random, listener, log } = this.context
    // Timers and clocks differ by a little; ten seconds less than five minutes is not little.
    const early = lasted < seconds * 0.95 - 1
    if (early) {
      const ended = `ended the watch after ${lasted.toFixed(1)} s of ${seconds} s`
      const what = describeTarget(this.subject.target)
      const isShort = session.heardAt === undefined && lasted * 1000 < timing.shortWatch
      if (isShort || session.initialEventsPending) throw new ApiError('connection', `${what}: the server ${ended}`)
      log[recovery.endedEarly() ? 'info' : 'debug'](
        { object: describeObjects(this.subject), restart: 'timeout' },
        `${what}: the server, or a load balancer before it, ${ended}, in order: it is resumed, as all others will be`,
      )
    }
    listener.watchRestarted('timeout', this.#references())
    this.#heardAt = session.heardAt ?? this.#heardAt
    const isSilent = !early || performance.now() - this.#heardAt >= seconds * 1000
    if (session.heardAt === undefined && isSilent) return undefined
    // All watches of a connection end together.
    if (early) await recovery.wait(random() * timing.wakeSpread, this.#newAttempt().signal)
    return session.position
  }

  /** Holds a place until the server has answered. */
  async #opening<Answer>({ signal }: AbortController, ask: () => Promise<Answer>): Promise<Answer> {
    const { openings } = this.context
    await openings.enter(signal)
    try {
      return await ask()
    } finally {
      openings.leave()
    }
  }

  async #recover(failure: ApiError): Promise<void> {
    const { context } = this
    const { timing, recovery, random } = context
    const rule = rules[failure.reason]
    // A wake that led to the next failure was in vain: where streams bring an event and break, watches would wake each other for ever.
    const inVain = this.#woken
    this.#woken = false
    this.#since = 'failed'
    const first = this.#backoff.failures(failure.reason) === 0
    this.#report(failure, rule, first)
    context.listener.watchRestarted(failure.reason, this.#references(), failure.observation)
    const { retryAfter } = failure.details
    let delay = this.#backoff.next(failure.reason)
    if (first && rule.firstAtOnce) delay = 0
    // The server names the same second to all that it refuses: each comes back at a random time behind it, later after each refusal.
    if (retryAfter !== undefined) delay = Math.min(retryAfter, timing.longestRetryAfter) + 2 * random() * delay
    const { signal } = this.#newAttempt()
    if (rule.until === 'credentials') await this.#awaitCredentials(delay, signal)
    else if (rule.until === 'backoff' || retryAfter !== undefined || inVain) await recovery.wait(delay, signal)
    // A plugin that fails is not run again every two seconds.
    else
      this.#woken = await recovery.waitForServer(delay, signal, {
        scouting: failure.reason !== 'credentials' || failure.permanent,
      })
  }

  #report(error: ApiError, rule: FailureRule, first: boolean): void {
    const { log, recovery } = this.context
    const isShared = rule.until === 'server'
    const isNews = isShared ? recovery.failed(commonCause(error)) : first
    const isLasting = this.#isLastingDenial(error)
    this.subject.failed({ error, log, level: rule.log, isNews, isShared, isLasting })
  }

  #isLastingDenial(failure: ApiError): boolean {
    if (!failure.denied) this.#deniedSince = undefined
    else this.#deniedSince ??= performance.now()
    const { denialGrace } = this.context.timing
    return this.#deniedSince !== undefined && performance.now() - this.#deniedSince >= denialGrace
  }

  /** A token that expired is mostly replaced within seconds: the watch need not sit out a long delay then. */
  async #awaitCredentials(delay: number, signal: AbortSignal): Promise<void> {
    const waiting = new AbortController()
    const renewal = this.context.client.renewal(AbortSignal.any([signal, waiting.signal]))
    try {
      await this.context.recovery.wait(delay, signal, renewal)
    } finally {
      waiting.abort()
    }
  }

  /** Once for each failure of its own: a watch that is well says nothing of those that failed beside it. */
  #gotThrough(answeredAt: number): void {
    if (this.#since !== 'failed') return
    this.#since = 'through'
    this.context.recovery.succeeded(answeredAt)
  }

  /** The stream is open for as long as a success takes. A stream that still owes its first event hangs. */
  #lasted({ initialEventsPending, heardAt }: WatchSession, answeredAt: number): void {
    if (this.#since === 'lasted' || (initialEventsPending && heardAt === undefined)) return
    this.#gotThrough(answeredAt)
    this.#since = 'lasted'
    this.context.recovery.lasted()
    this.#backoff.reset()
    this.#woken = false
  }

  #references() {
    return this.subject.objects().map(({ reference }) => reference)
  }

  #newAttempt(): AbortController {
    this.#attempt = new AbortController()
    if (this.#stopped) this.#attempt.abort()
    return this.#attempt
  }

  #request(attempt: AbortController): RequestOptions {
    return { signal: attempt.signal, timeout: this.context.timing.requestTimeout }
  }
}

/**
 * The failure that all watches share. The cause of an outage may change: the watches are cut first, and then the port is closed, the
 * certificate is wrong, or the plugin hangs.
 */
function commonCause({ reason, cause, details: { status } }: ApiError): string {
  if (!(cause instanceof ConnectionError)) return status === undefined ? 'cut' : `${reason} ${status}`
  if (cause.reason === 'timeout') return 'timeout'
  const isCut = cause.reason === 'goaway' || (cause.reason === 'connection' && wasCut(cause))
  // Of two watches, a number may differ.
  return isCut ? 'cut' : cause.message.replace(/\d+/g, '#')
}
