/** How long a publication holds the event loop of the program that embeds the library. */
// Own process: it measures what its thread computes.
import { hash } from 'node:crypto'
import { join } from 'node:path'
import { readFileSync } from 'node:fs'
import t from 'tap'
import { replaceFile } from '../../src/durable/index.js'
import { scratch } from './scratch.js'

const bytes = 96 * 1024 * 1024

/** Processor time of this thread alone, in milliseconds: a busy machine makes the time on the clock longer, and this no longer. */
function threadTime(): number {
  return Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[0]) / 1e6
}

/** The longest turn of the event loop while `work` runs, in milliseconds of this thread's processor time. */
async function longestTurn(work: () => Promise<unknown>): Promise<number> {
  let longest = 0
  let last = threadTime()
  let running = true
  const turn = (): void => {
    const now = threadTime()
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
  // The caller may change its Buffer as soon as it has called, so replaceFile copies it in one piece: half the time of hashing it for the
  // content and for the digest.
  const start = threadTime()
  hash('sha256', content)
  hash('sha256', content)
  const bound = (threadTime() - start) * 0.75
  // A processor that other programs share is slower at times: one attempt of five is enough.
  const attempts: number[] = []
  while (attempts.length < 5 && !attempts.some((longest) => longest < bound)) {
    content.writeUInt32LE(attempts.length)
    attempts.push(await longestTurn(() => replaceFile(path, content)))
  }
  t.ok(
    attempts.some((longest) => longest < bound),
    `three quarters of hashing it twice are ${bound.toFixed(0)} ms, the longest turns took ${attempts.map((one) => one.toFixed(0)).join(', ')} ms`,
  )
})
