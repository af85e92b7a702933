/** One watch stream, event by event, and the limits of its time: each event goes to the stored object. */
import { PausableTimer } from '../../deadline.js'
import type { ApiStream, LinePatience, StreamLine } from '../../kubernetes/connection/client.js'
import { JsonRefused, mostValuesOfObject, parseBounded } from '../../kubernetes/connection/bounded-json.js'
import { field, refusedRequest, statusMessage, ApiError } from '../../kubernetes/reads/api-error.js'
import { describeTarget, type ApiTarget } from '../../kubernetes/reads/requests.js'
import type { WatchTiming } from './timing.js'
import { resourceVersionOf } from '../../kubernetes/reads/observed-version.js'
import { isBelow, type WatchEvents, type WatchSubject } from './watch-subject.js'

/** The annotation of the bookmark that ends the initial events (KEP-3157). */
const initialEventsEnd = 'k8s.io/initial-events-end'

export class WatchSession {
  /** From where the next watch can go on. Undefined while the initial events are not complete. */
  #position: string | undefined
  #heardAt: number | undefined
  #bookmarked = false
  #seen = false

  /**
   * @param from the version that the watch was asked to go on from; undefined where initial events come first
   * @param heard is called after each event and bookmark
   */
  constructor(
    private readonly subject: Pick<WatchSubject, 'target' | 'objects'>,
    from: string | undefined,
    private readonly events: WatchEvents,
    private readonly heard?: () => void,
  ) {
    this.#position = from
  }

  get initialEventsPending(): boolean {
    return this.#position === undefined
  }

  /** The server has sent a bookmark beside the initial events' last one. */
  get bookmarked(): boolean {
    return this.#bookmarked
  }

  /** performance.now() of the last event or bookmark; undefined if there was none. */
  get heardAt(): number | undefined {
    return this.#heardAt
  }

  /** From where the next watch can go on, once this one has ended in order. */
  get position(): string | undefined {
    return this.#position
  }

  /** @throws ApiError for an ERROR event, and for a line that is no event */
  async take(line: StreamLine): Promise<void> {
    const event = parseEvent(line, this.subject.target)
    const [type, object] = [field(event, 'type'), field(event, 'object')]
    switch (type) {
      case 'ADDED':
      case 'MODIFIED':
        this.#seen = true
        await this.events.take(type, object)
        this.#advance(resourceVersionOf(object))
        break
      case 'DELETED':
        await this.events.take(type, object)
        this.#advance(resourceVersionOf(object))
        break
      case 'BOOKMARK':
        await this.#takeBookmark(object)
        break
      case 'ERROR':
        throw errorEvent(this.subject.target, object)
      default:
        // A type that a later Kubernetes may bring: nothing that we asked for.
        return
    }
    this.#heardAt = performance.now()
    this.heard?.()
  }

  async #takeBookmark(object: unknown): Promise<void> {
    const version = resourceVersionOf(object)
    if (this.#position !== undefined) {
      if (version !== undefined && isBelow(version, this.#position)) {
        throw new ApiError(
          'expired',
          `${describeTarget(this.subject.target)}: the watch went backwards, from ${this.#position} to ${version}`,
        )
      }
      this.#bookmarked = true
      this.#advance(version)
      for (const stored of this.subject.objects()) if (!stored.isBehind) stored.current()
      return
    }
    if (field(field(field(object, 'metadata'), 'annotations'), initialEventsEnd) !== 'true') return
    this.#position = version
    await this.events.complete(this.#seen, version)
  }

  /**
   * Initial events come in no order of versions: only the bookmark at their end is a position. Of versions that cannot be compared, the
   * last that came is the newest.
   */
  #advance(version: string | undefined): void {
    if (version === undefined || this.#position === undefined) return
    if (!isBelow(version, this.#position)) this.#position = version
  }
}

interface StreamLimits {
  readonly target: ApiTarget
  /** The duration that the watch asked for. */
  readonly seconds: number
  readonly timing: Pick<WatchTiming, 'initialEventsTimeout' | 'requestTimeout' | 'overrun' | 'silence'>
  /** Aborts the stream. */
  readonly attempt: AbortController
  /** An earlier watch of the same has got bookmarks. */
  readonly bookmarked: boolean
}

/** The initial events did not end in time: the server is slow, or does not know of them. */
export class InitialEventsLate extends Error {}

/**
 * Reads a stream to its end, event by event. Cuts it where the server has forgotten it: where it is silent although it has sent
 * bookmarks, and where it does not end when its time is over.
 * @throws InitialEventsLate, ApiError, ConnectionError, and the reason that the stream was aborted with
 */
export async function readEvents(
  { takeLines, progress }: Pick<ApiStream, 'takeLines' | 'progress'>,
  session: WatchSession,
  { target, seconds, timing, attempt, bookmarked }: StreamLimits,
): Promise<void> {
  const forgotten = (problem: string) => () =>
    attempt.abort(new ApiError('silence', `${describeTarget(target)}: ${problem}`))
  const overrun = setTimeout(
    forgotten(`the server did not end the watch after the agreed ${seconds} s`),
    seconds * 1000 + timing.overrun,
  )
  // On a slow link, initial events wait for their turn, and one event may take minutes: no limit is over while the link moves.
  const whileStill = (milliseconds: number, over: () => void): PausableTimer => {
    const timer: PausableTimer = new PausableTimer(milliseconds, () => {
      if (progress.moved()) timer.restart()
      else over()
    })
    timer.pause()
    return timer
  }
  const initial = whileStill(timing.initialEventsTimeout, () => attempt.abort(new InitialEventsLate()))
  const line = whileStill(timing.requestTimeout, () =>
    forgotten(`an event of the watch stopped halfway: too little came within ${timing.requestTimeout / 1000} s`)(),
  )
  let silence: NodeJS.Timeout | undefined
  let unfinished = false
  const patience: LinePatience = {
    resume: () => {
      if (session.initialEventsPending) initial.resume()
      else if (unfinished) line.resume()
      else if (bookmarked || session.bookmarked)
        silence ??= setTimeout(forgotten(`the watch was silent for ${timing.silence / 1000} s`), timing.silence)
    },
    pause: () => {
      initial.pause()
      line.pause()
      clearTimeout(silence)
      silence = undefined
    },
    came: (isUnfinished) => {
      if (unfinished === isUnfinished) return
      unfinished = isUnfinished
      if (isUnfinished) progress.begin()
      patience.pause()
      line.restart()
      line.pause()
      patience.resume()
    },
  }
  patience.resume()
  try {
    // A request that an event leads to is not the server's silence; nor are lines that wait for us.
    await takeLines(async (line) => {
      patience.pause()
      await session.take(line)
      patience.resume()
    }, patience)
  } catch (error) {
    attempt.signal.throwIfAborted()
    throw error
  } finally {
    clearTimeout(overrun)
    patience.pause()
  }
  attempt.signal.throwIfAborted()
}

function parseEvent(line: StreamLine, target: ApiTarget): unknown {
  const text = line.take()
  try {
    return parseBounded(text, mostValuesOfObject)
  } catch (error) {
    if (!(error instanceof JsonRefused)) throw error
    const what = `a line of the watch (${text.length} characters) ${error.message}`
    throw new ApiError('protocol', `${describeTarget(target)}: ${what}`)
  }
}

/** An ERROR event carries a metav1.Status, with the code that an HTTP answer would have had. */
function errorEvent(target: ApiTarget, status: unknown): ApiError {
  const code = field(status, 'code')
  const seconds = field(field(status, 'details'), 'retryAfterSeconds')
  if (typeof code !== 'number') {
    const said = statusMessage(status)
    return new ApiError('protocol', `${describeTarget(target)}: the watch ended in an error${said && `: ${said}`}`)
  }
  return refusedRequest(target, 'watch', {
    status: code,
    retryAfter: typeof seconds === 'number' ? seconds * 1000 : undefined,
    body: status,
  })
}
