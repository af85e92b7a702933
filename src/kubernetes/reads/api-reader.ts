/**
 * Reads for commands that need an answer: every failure that may pass is retried until there is one, or until the caller's
 * deadline. No read accepts a cache. (The agent's watches have a loop of their own, with the same errors and the same rule of
 * absence.)
 */
import { sleep } from '../../deadline.js'
import type { Log } from '../../log.js'
import type { KubernetesObject, ObjectReference } from '../../objects/types.js'
import { isAbsent, ApiError, brokenRequest, refusedRequest } from './api-error.js'
import { Backoff } from '../../backoff.js'
import type { ApiClient, ApiResponse } from '../connection/client.js'
import { InvalidObjectError } from './decode.js'
import { describeTarget, objectTarget, targetPath, type ApiTarget, type Query, type ReadVerb } from './requests.js'
import { itemsOf, observeObject } from './observed-version.js'

/** Milliseconds; tests make them smaller. */
export interface ReadTiming {
  /** For one answer. library-go's client waits 14 s, too. */
  readonly request: number
  /** Between two tries: doubles from the first to the longest, half of it at random. */
  readonly firstDelay: number
  readonly longestDelay: number
}

/** Milliseconds: a Retry-After is honoured up to this, as in the agent's watches. A longer one would overflow the timer, which then ends at once. */
const longestRetryAfter = 120_000

const readTiming: ReadTiming = { request: 14_000, firstDelay: 100, longestDelay: 5_000 }

export interface ReaderOptions {
  readonly log: Log
  readonly timing?: ReadTiming
  /** In [0, 1); default Math.random. */
  readonly random?: () => number
  /** Advice for a 403, where the program prints the Role itself. */
  readonly forbidden?: string
}

/** Unchecked JSON, but certainly a map. */
export type JsonObject = Readonly<Record<string, unknown>>

export class ApiReader {
  readonly #timing: ReadTiming

  constructor(
    private readonly api: Pick<ApiClient, 'get'>,
    private readonly options: ReaderOptions,
  ) {
    this.#timing = options.timing ?? readTiming
  }

  /**
   * One object; undefined only where the API server itself says that it does not exist (absence.ts). `tries`: at most so many.
   * @throws ApiError: a failure that no retry can help, or the last one when the tries are over or the signal aborts
   * @throws the signal's reason when it aborts before anything was asked
   */
  get(target: ApiTarget, signal: AbortSignal, tries = Infinity): Promise<JsonObject | undefined> {
    return this.#untilAnswered(signal, tries, async () => {
      const answer = await this.#ask(target, {}, signal)
      if (isAbsent(answer, target.name)) return undefined
      return this.#document(target, 'get', answer)
    })
  }

  /**
   * A Secret or a ConfigMap, decoded; undefined only where the API server itself says that it does not exist.
   * @throws like `get`
   * @throws InvalidObjectError naming the field or the key, and no value
   */
  getObject(reference: ObjectReference, signal: AbortSignal): Promise<KubernetesObject | undefined> {
    const target = objectTarget(reference)
    return this.#untilAnswered(signal, Infinity, async () => {
      const answer = await this.#ask(target, {}, signal)
      if (isAbsent(answer, target.name)) return undefined
      const { observation } = observeObject(reference, this.#document(target, 'get', answer))
      if (observation.state === 'present') return observation.object
      throw new InvalidObjectError(observation.state === 'unknown' ? observation.message : describeTarget(target))
    })
  }

  /**
   * The items of a collection that the query selects.
   * @throws like `get`
   */
  list(target: ApiTarget, query: Query, signal: AbortSignal): Promise<readonly unknown[]> {
    return this.#untilAnswered(signal, Infinity, async () => {
      return itemsOf(this.#document(target, 'list', await this.#ask(target, query, signal, 'list')), target)
    })
  }

  async #untilAnswered<Result>(signal: AbortSignal, tries: number, read: () => Promise<Result>): Promise<Result> {
    signal.throwIfAborted()
    const backoff = new Backoff(this.#timing, this.options.random ?? Math.random)
    for (let tried = 1; ; tried++) {
      try {
        return await read()
      } catch (error) {
        if (!(error instanceof ApiError) || !error.retriable || tried >= tries || signal.aborted) throw error
        const { message, details } = error
        this.options.log.warn({ error: message, tried }, 'The API server gave no answer; the read is retried')
        const delay = Math.max(Math.min(details.retryAfter ?? 0, longestRetryAfter), backoff.next('read'))
        await sleep(delay, { signal }).catch(() => {
          throw error
        })
      }
    }
  }

  async #ask(target: ApiTarget, query: Query, signal: AbortSignal, verb?: 'list'): Promise<ApiResponse> {
    try {
      return await this.api.get(targetPath(target), query, {
        signal,
        timeout: this.#timing.request,
        ...(verb && { verb }),
      })
    } catch (error) {
      throw brokenRequest(target, error)
    }
  }

  #document(target: ApiTarget, verb: ReadVerb, answer: ApiResponse): JsonObject {
    if (answer.status !== 200) throw refusedRequest(target, verb, answer, this.options.forbidden)
    const { body } = answer
    if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body as JsonObject
    throw new ApiError(
      'protocol',
      `${describeTarget(target)}: the answer is not a JSON object: does it come from a proxy?`,
    )
  }
}
