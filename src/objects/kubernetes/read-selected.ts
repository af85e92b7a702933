/**
 * Reads all objects that a label selector matches, each of which goes to `take` before the next one is in memory: in one stream (KEP-3157),
 * or where the API server refuses that, or does not end it, in pages. Both accept no cache that lags.
 */
import { refusedRequest } from '../../kubernetes/reads/api-error.js'
import { listPages } from '../../kubernetes/reads/list-pages.js'
import { itemsOf } from '../../kubernetes/reads/observed-version.js'
import { selectedStreamQuery, type ApiTarget, type Query } from '../../kubernetes/reads/requests.js'
import type { WatchContext } from './reflector.js'
import type { WatchTiming } from './timing.js'
import { InitialEventsLate, readEvents, WatchSession } from './watch-session.js'
import type { Ask } from './watch-subject.js'

/** What a collection's reads need of their context. */
export interface ReadContext extends Pick<WatchContext, 'client' | 'log' | 'random' | 'streamingLists'> {
  readonly timing: Omit<WatchTiming, 'watchSeconds'>
}

interface Collection {
  readonly target: ApiTarget
  readonly path: string
}

/** Takes one object as the API server gave it, and answers how many bytes of content it has. */
type Take = (object: unknown) => Promise<number>

/** Objects on the first page, and on the largest one, which holds less than an answer may even if each is as large as it can be. */
const [firstPage, largestPage] = [4, 32]
/** Bytes of content on a page: a smaller page is followed by one of twice as many objects, a larger one by one of half as many. */
const [smallPage, heavyPage] = [256 * 1024, 2 * 1024 * 1024]
/** The stream ends with its initial events; the API server ends it after this, if we do not. */
const streamSeconds = 600

/** @throws ApiError, ConnectionError; objects that came before it stay accepted */
export async function readSelected(
  context: ReadContext,
  collection: Collection,
  selector: string,
  ask: Ask,
  take: Take,
): Promise<void> {
  const { streamingLists } = context
  if (streamingLists.worthTrying(collection.path) && (await streamed(context, collection, selector, ask, take))) return
  await inPages(context, collection, selector, ask, take)
}

const allRead = new Error('the initial events have ended')

/** Answers whether the stream brought all. */
async function streamed(
  { client, streamingLists, timing }: ReadContext,
  { target, path }: Collection,
  selector: string,
  ask: Ask,
  take: Take,
): Promise<boolean> {
  const { signal, timeout } = ask()
  const attempt = new AbortController()
  const abort = () => attempt.abort(signal?.reason)
  signal?.throwIfAborted()
  signal?.addEventListener('abort', abort, { once: true })
  try {
    const stream = await client.stream(path, selectedStreamQuery(selector, streamSeconds), { attempt, timeout })
    if (stream.foreign === undefined && (stream.status === 400 || stream.status === 422)) {
      streamingLists.refused(path, stream.status)
      return false
    }
    if (stream.status !== 200) throw refusedRequest(target, 'watch', stream)
    const session = new WatchSession({ target, objects: () => [] }, undefined, {
      take: async (_, object) => {
        await take(object)
      },
      complete: () => Promise.reject(allRead),
    })
    await readEvents(stream, session, { target, seconds: streamSeconds, timing, attempt, bookmarked: false })
    return false
  } catch (error) {
    if (error === allRead) return true
    if (error instanceof InitialEventsLate) return false
    throw error
  } finally {
    signal?.removeEventListener('abort', abort)
    attempt.abort()
  }
}

async function inPages(
  { client }: ReadContext,
  { target, path }: Collection,
  selector: string,
  ask: Ask,
  take: Take,
): Promise<void> {
  const pages = { limit: firstPage }
  let isFirst = true
  const get = (page: Query) => client.get(path, { labelSelector: selector, ...page }, { ...ask(), verb: 'list' })
  for await (const answer of listPages(get, pages)) {
    // The list has changed too much since its first page: the caller reads the rest by name.
    if (answer.status === 410 && !isFirst) return
    isFirst = false
    if (answer.status !== 200) throw refusedRequest(target, 'list', answer)
    let size = 0
    for (const item of itemsOf(answer.body, target)) size += await take(item)
    if (size < smallPage) pages.limit = Math.min(pages.limit * 2, largestPage)
    else if (size > heavyPage) pages.limit = Math.max(pages.limit / 2, 1)
  }
}
