import { AnswerTooLarge, type ApiResponse } from '../connection/client.js'
import { field } from './api-error.js'

/** How many objects the next page has at most. A reader may change it between two pages. */
export interface PageSize {
  limit: number
}

/**
 * The pages of a list, up to the last one, or to one that the API server refuses. A page that holds more than one answer may is asked for
 * again with a quarter of its objects: the objects of one tenant, however large, keep no others from being read.
 * @throws as `get`; AnswerTooLarge for one object that is too large by itself
 */
export async function* listPages(
  get: (page: Readonly<Record<string, string>>) => Promise<ApiResponse>,
  size: PageSize,
): AsyncGenerator<ApiResponse, void> {
  const usual = size.limit
  for (let token: string | undefined; ;) {
    const answer = await pageOrLess(get, size, token)
    if (answer === undefined) continue
    yield answer
    token = answer.status === 200 ? continueOf(answer.body) : undefined
    if (token === undefined) return
    // The objects behind the large ones are smaller again.
    if (size.limit < usual) size.limit = Math.min(size.limit * 2, usual)
  }
}

/** undefined: the page is too large, and the next one will be smaller. */
async function pageOrLess(
  get: (page: Readonly<Record<string, string>>) => Promise<ApiResponse>,
  size: PageSize,
  token: string | undefined,
): Promise<ApiResponse | undefined> {
  try {
    return await get({ limit: String(size.limit), ...(token !== undefined && { continue: token }) })
  } catch (error) {
    if (!(error instanceof AnswerTooLarge) || size.limit <= 1) throw error
    size.limit = Math.floor(size.limit / 4) || 1
    return undefined
  }
}

/** The token of the next page of a list; undefined: there is none. */
function continueOf(list: unknown): string | undefined {
  const token: unknown = field(field(list, 'metadata'), 'continue')
  return typeof token === 'string' && token !== '' ? token : undefined
}
