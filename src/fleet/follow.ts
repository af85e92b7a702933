/**
 * Follows a collection of the API server: its pages first, then each change in one stream. A broken stream goes on where it ended; a version
 * that the server has forgotten (410) means a new list, after which an object that the list lacks is gone.
 */
import { sleep } from '../deadline.js'
import { Backoff } from '../backoff.js'
import { messageOf } from '../errors.js'
import type { ApiClient, ApiResponse } from '../kubernetes/connection/client.js'
import { credentialsAdvice, field, statusMessage, unsentAdvice } from '../kubernetes/reads/api-error.js'
import { listPages } from '../kubernetes/reads/list-pages.js'
import { resourceVersionOf } from '../kubernetes/reads/observed-version.js'
import type { metadataOnly } from '../kubernetes/reads/requests.js'
import type { Log } from '../log.js'

/** Objects of a page: of reports of 10 directories, some 1 MiB. */
const pageSize = 100
/** Milliseconds. */
const requestTimeout = 30_000
const backoff = { firstDelay: 200, longestDelay: 5_000 }
/** Seconds. */
const watchSeconds = 300

export interface Followed {
  /** The object is there, in this form. */
  readonly put: (object: unknown) => void
  /** The object of this name is gone. */
  readonly remove: (name: string) => void
  /** All objects of the collection have been put; `date`: the server's clock, in milliseconds since the epoch. */
  readonly complete: (date: number | undefined) => void
  /** The API server does not answer, because of this problem: the objects that were put may be old. undefined: it answers again. */
  readonly unanswered?: (problem: string | undefined) => void
}

export interface FollowOptions {
  readonly path: string
  readonly query?: Readonly<Record<string, string>> | undefined
  /** The media types of answers; default whole objects. */
  readonly accept?: typeof metadataOnly
  readonly signal: AbortSignal
  readonly log: Log
}

/** The API server refuses: no retry helps. */
class FollowRefused extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message)
  }
}

class Expired extends Error {}

/** Reads the collection once, page by page. @throws FollowRefused, ConnectionError, the signal's reason @returns its version */
export async function readPages(
  api: Pick<ApiClient, 'get'>,
  { path, query = {}, accept, signal }: Omit<FollowOptions, 'log'>,
  put: (object: unknown) => void,
): Promise<{ resourceVersion: string; date: number | undefined }> {
  const request = { signal, timeout: requestTimeout, verb: 'list', accept: accept?.list } as const
  let last: { resourceVersion: string; date: number | undefined } | undefined
  for await (const answer of listPages((page) => api.get(path, { ...query, ...page }, request), { limit: pageSize })) {
    refuse(answer, `list ${path}`)
    const { body, date } = answer
    const items = field(body, 'items')
    const resourceVersion = resourceVersionOf(body)
    if ((items !== null && !Array.isArray(items)) || resourceVersion === undefined) {
      throw new FollowRefused(`list ${path}: the answer is no list of an API server`, answer.status)
    }
    for (const item of (items ?? []) as unknown[]) put(item)
    last = { resourceVersion, date }
  }
  if (last === undefined) throw new Error('a list has one page at least')
  return last
}

/** How far a collection is followed. */
interface WatchPosition {
  /** The last version that was handed on; undefined: a list has to come first. */
  version: string | undefined
  /** Names of the objects that were put and not removed. */
  readonly known: Set<string>
}

/** Milliseconds: a watch that ends sooner, and brings nothing, is not opened again at once. */
const shortWatch = 1_000

/** Follows until the signal aborts. @throws FollowRefused before the first whole list, the signal's reason */
export async function follow(
  api: Pick<ApiClient, 'get' | 'stream'>,
  followed: Followed,
  options: FollowOptions,
): Promise<never> {
  const { signal, log, path } = options
  const delays = new Backoff(backoff, Math.random)
  const position: WatchPosition = { version: undefined, known: new Set() }
  let isListed = false
  let isTroubled = false
  for (;;) {
    try {
      if (position.version === undefined) await relist(api, followed, position, options)
      isListed = true
      if (await watchFrom(api, followed, position, options)) {
        delays.reset()
        isTroubled = false
        continue
      }
    } catch (error) {
      signal.throwIfAborted()
      // A server that has just started denies every request, until it has read its roles.
      if (error instanceof FollowRefused && !isListed) throw error
      // Where this user may list and not watch, each list is a look.
      if (error instanceof Expired || error instanceof FollowRefused) position.version = undefined
      if (!(error instanceof Expired)) {
        followed.unanswered?.(messageOf(error))
        log[isTroubled ? 'debug' : 'warn']({}, `${path} is read again: ${messageOf(error)}`)
      }
      isTroubled = true
    }
    await sleep(delays.next('away'), { signal })
  }
}

async function relist(
  api: Pick<ApiClient, 'get'>,
  { put, remove, complete }: Followed,
  position: WatchPosition,
  options: FollowOptions,
): Promise<void> {
  const listed = new Set<string>()
  const { resourceVersion, date } = await readPages(api, options, (object) => {
    const name = nameOf(object)
    listed.add(name)
    // A list that breaks off has put it all the same.
    position.known.add(name)
    put(object)
  })
  for (const name of [...position.known].filter((one) => !listed.has(one))) {
    position.known.delete(name)
    remove(name)
  }
  position.version = resourceVersion
  complete(date)
}

/** Moves the position with each event, since a stream may break at any. @returns whether it was worth while */
async function watchFrom(
  api: Pick<ApiClient, 'stream'>,
  { put, remove, unanswered }: Followed,
  position: WatchPosition,
  { path, query = {}, accept, signal }: FollowOptions,
): Promise<boolean> {
  const began = performance.now()
  let events = 0
  const attempt = new AbortController()
  const abort = (): void => attempt.abort(signal.reason)
  signal.throwIfAborted()
  signal.addEventListener('abort', abort)
  const from = { resourceVersion: position.version ?? '', timeoutSeconds: String(watchSeconds) }
  try {
    const stream = await api.stream(
      path,
      { ...query, watch: '1', allowWatchBookmarks: 'true', ...from },
      { timeout: requestTimeout, attempt, accept: accept?.object },
    )
    refuse(stream, `watch ${path}`)
    unanswered?.(undefined)
    await stream.takeLines((line) => {
      events += 1
      const event: unknown = JSON.parse(line.take())
      const object = field(event, 'object')
      const type = field(event, 'type')
      if (type === 'ERROR') {
        throw field(object, 'code') === 410 ? new Expired(statusMessage(object)) : new Error(statusMessage(object))
      }
      const name = nameOf(object)
      if (type === 'DELETED') {
        position.known.delete(name)
        remove(name)
      } else if (type === 'ADDED' || type === 'MODIFIED') {
        position.known.add(name)
        put(object)
      }
      position.version = resourceVersionOf(object) ?? position.version
      return Promise.resolve()
    })
    return events > 0 || performance.now() - began >= shortWatch
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

function nameOf(object: unknown): string {
  const name = field(field(object, 'metadata'), 'name')
  return typeof name === 'string' ? name : ''
}

function refuse(answer: Pick<ApiResponse, 'status' | 'body' | 'anonymous'>, what: string): void {
  const { status, body } = answer
  if (status === 200) return
  const message = statusMessage(body)
  const said = `${what}: HTTP ${status}${message && `: ${message}`}`
  if (status === 410) throw new Expired(said)
  const known = unsentAdvice(answer) ?? advice[status]
  const told = known === undefined ? said : `${said} (${known})`
  // 401: other credentials may be had in a moment.
  if (status === 401 || status === 429 || status >= 500) throw new Error(told)
  throw new FollowRefused(told, status)
}

const advice: Readonly<Record<number, string>> = {
  401: credentialsAdvice,
  403: 'this user needs list and watch of it',
  404: 'the cluster has no definition of it: kubectl apply -k deploy/fleet; where it has a newer one, upgrade holdfast',
}
