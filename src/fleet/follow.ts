/**
 * Follows a collection of the API server: its pages first, then each change in one stream. A broken stream goes on where it ended; a version
 * that the server has forgotten (410) means a new list, after which whatever the list lacks is gone.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Backoff } from '../backoff.js'
import { messageOf } from '../errors.js'
import type { ApiClient, ApiResponse } from '../kubernetes/connection/client.js'
import { field, statusMessage } from '../kubernetes/reads/api-error.js'
import { resourceVersionOf } from '../kubernetes/reads/observed-version.js'
import type { Log } from '../log.js'

/** Objects of a page: of reports of 10 directories, some 5 MiB. */
const pageSize = 500
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
}

export interface FollowOptions {
  readonly path: string
  readonly query?: Readonly<Record<string, string>> | undefined
  /** The media type of an answer; default whole objects. */
  readonly accept?: { readonly list: string; readonly watch: string }
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
  let next: string | undefined
  for (;;) {
    const page = { ...query, limit: String(pageSize), ...(next !== undefined && { continue: next }) }
    const answer = await api.get(path, page, { signal, timeout: requestTimeout, verb: 'list', accept: accept?.list })
    refuse(answer, `list ${path}`)
    const { body, date } = answer
    const items = field(body, 'items')
    const resourceVersion = resourceVersionOf(body)
    if ((items !== null && !Array.isArray(items)) || resourceVersion === undefined) {
      throw new FollowRefused(`list ${path}: the answer is no list of an API server`, answer.status)
    }
    for (const item of (items ?? []) as unknown[]) put(item)
    const more = field(field(body, 'metadata'), 'continue')
    next = typeof more === 'string' && more !== '' ? more : undefined
    if (next === undefined) return { resourceVersion, date }
  }
}

/** Follows until the signal aborts. @throws FollowRefused, the signal's reason */
export async function follow(
  api: Pick<ApiClient, 'get' | 'stream'>,
  followed: Followed,
  options: FollowOptions,
): Promise<never> {
  const { signal, log, path } = options
  const delays = new Backoff(backoff, Math.random)
  const known = new Set<string>()
  let position: string | undefined
  for (;;) {
    try {
      position ??= await relist(api, followed, known, options)
      position = await watch(api, followed, known, position, options)
      delays.reset()
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof FollowRefused) throw error
      if (error instanceof Expired) position = undefined
      log.debug({}, `${path} is followed anew: ${messageOf(error)}`)
      await sleep(delays.next('away'), undefined, { signal }).catch(() => signal.throwIfAborted())
    }
  }
}

async function relist(
  api: Pick<ApiClient, 'get'>,
  { put, remove, complete }: Followed,
  known: Set<string>,
  options: FollowOptions,
): Promise<string> {
  const listed = new Set<string>()
  const { resourceVersion, date } = await readPages(api, options, (object) => {
    listed.add(nameOf(object))
    put(object)
  })
  for (const name of known) if (!listed.has(name)) remove(name)
  known.clear()
  for (const name of listed) known.add(name)
  complete(date)
  return resourceVersion
}

/** @returns from where to go on; the server ends each watch after some minutes */
async function watch(
  api: Pick<ApiClient, 'stream'>,
  { put, remove }: Followed,
  known: Set<string>,
  from: string,
  { path, query = {}, accept, signal }: FollowOptions,
): Promise<string> {
  let position = from
  const attempt = new AbortController()
  const abort = (): void => attempt.abort(signal.reason)
  signal.throwIfAborted()
  signal.addEventListener('abort', abort)
  try {
    const stream = await api.stream(
      path,
      {
        ...query,
        watch: '1',
        allowWatchBookmarks: 'true',
        resourceVersion: from,
        timeoutSeconds: String(watchSeconds),
      },
      { timeout: requestTimeout, attempt, accept: accept?.watch },
    )
    refuse(stream, `watch ${path}`)
    await stream.takeLines((line) => {
      const event: unknown = JSON.parse(line.take())
      const object = field(event, 'object')
      const type = field(event, 'type')
      if (type === 'ERROR')
        throw field(object, 'code') === 410 ? new Expired(statusMessage(object)) : new Error(statusMessage(object))
      position = resourceVersionOf(object) ?? position
      const name = nameOf(object)
      if (type === 'DELETED') {
        known.delete(name)
        remove(name)
      } else if (type === 'ADDED' || type === 'MODIFIED') {
        known.add(name)
        put(object)
      }
      return Promise.resolve()
    })
    return position
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

function nameOf(object: unknown): string {
  const name = field(field(object, 'metadata'), 'name')
  return typeof name === 'string' ? name : ''
}

function refuse({ status, body }: Pick<ApiResponse, 'status' | 'body'>, what: string): void {
  if (status === 200) return
  const message = statusMessage(body)
  const said = `${what}: HTTP ${status}${message && `: ${message}`}`
  if (status === 410) throw new Expired(said)
  // 401: other credentials may be had in a moment.
  if (status === 401 || status === 429 || status >= 500) throw new Error(said)
  throw new FollowRefused(`${said}${advice[status] ?? ''}`, status)
}

const advice: Readonly<Record<number, string>> = {
  403: ' (this user needs list and watch of it)',
  404: ' (the cluster has no definition of it: kubectl apply -k deploy/fleet)',
}
