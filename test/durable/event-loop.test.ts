/** How long a publication holds the event loop of the program that embeds the library. */
import { hash } from 'node:crypto'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import t from 'tap'
import { replaceFile } from '../../src/durable/index.js'
import { scratch } from './scratch.js'

const bytes = 96 * 1024 * 1024

/** The longest time between two turns of the event loop while `work` runs, in milliseconds. */
async function longestTurn(work: () => Promise<unknown>): Promise<number> {
  let longest = 0
  let last = performance.now()
  let running = true
  const turn = (): void => {
    const now = performance.now()
    longest = Math.max(longest, now - last)
    last = now
    if (running) setImmediate(turn)
  }
  setImmediate(turn)
  await work()
  running = false
  return longest
}

await t.test('the event loop turns while replaceFile hashes a large Buffer', async (t) => {
  const path = join(scratch(t), 'large')
  const content = Buffer.alloc(bytes, 'x')
  // The caller may change its Buffer as soon as it has called: replaceFile copies it in one piece.
  const start = performance.now()
  hash('sha256', new Uint8Array(content))
  const once = performance.now() - start
  // The scheduler of a busy machine makes turns longer, too: one attempt of five is enough.
  const attempts: number[] = []
  while (attempts.length < 5 && !attempts.some((longest) => longest < once)) {
    content.writeUInt32LE(attempts.length)
    attempts.push(await longestTurn(() => replaceFile(path, content)))
  }
  t.ok(
    attempts.some((longest) => longest < once),
    `copying and hashing it once takes ${once.toFixed(0)} ms, the longest turns took ${attempts.map((one) => one.toFixed(0)).join(', ')} ms`,
  )
})
