/** The pages of a list whose objects may be larger than an answer may. */
import t from 'tap'
import { AnswerTooLarge, type ApiResponse } from '../../../src/kubernetes/connection/client.js'
import { listPages } from '../../../src/kubernetes/reads/list-pages.js'

/** A list of objects of these sizes, of which one answer takes ten. */
function listed(sizes: readonly number[]) {
  const asked: number[] = []
  const get = (page: Readonly<Record<string, string>>): Promise<ApiResponse> => {
    const [at, limit] = [Number(page['continue'] ?? 0), Number(page['limit'])]
    asked.push(limit)
    const items = sizes.slice(at, at + limit)
    if (items.reduce((sum, size) => sum + size, 0) > 10) return Promise.reject(new AnswerTooLarge('too large'))
    const next = at + limit < sizes.length ? { continue: String(at + limit) } : {}
    return Promise.resolve({ status: 200, retryAfter: undefined, date: undefined, body: { metadata: next, items } })
  }
  const read = async (limit: number): Promise<number[]> => {
    const all: number[] = []
    for await (const { body } of listPages(get, { limit })) all.push(...(body as { items: number[] }).items)
    return all
  }
  return { asked, read }
}

await t.test('listPages takes fewer objects where a page is too large, and more again behind it', async (t) => {
  const sizes = [1, 1, 8, 9, 9, 1, 1, 1, 1, 1, 1, 1, 1]
  const { asked, read } = listed(sizes)
  t.strictSame(await read(8), sizes, 'each object once, in order')
  t.strictSame(asked, [8, 2, 4, 1, 2, 1, 2, 4, 8])
})

await t.test(
  'listPages rejects with an object that is too large by itself, and asks for no fewer than one',
  async (t) => {
    const { asked, read } = listed([1, 11])
    await t.rejects(read(4), { message: 'too large' })
    t.strictSame(asked, [4, 1, 2, 1].slice(0, asked.length))
    t.equal(asked.at(-1), 1)
  },
)
