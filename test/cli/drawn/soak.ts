/**
 * `npm run soak`, the part without an API server: two thousand drawn lives of configurations (HOLDFAST_SOAK_LIVES), half of them from the
 * fixed seed on, half from a new one. It stops at the first that goes wrong, and prints a short trail of it.
 */
import { availableParallelism } from 'node:os'
import t from 'tap'
import { seeingAll } from '../../seeing-all.js'
import { replay, replaying, seed } from '../../seed.js'
import { describe, search } from './search.js'

const lives = Number(process.env['HOLDFAST_SOAK_LIVES'] ?? 2000)
/** Each waits for most of its time. */
const lanes = 3 * availableParallelism()

t.setTimeout(0)

const seeds = (from: number): number[] => Array.from({ length: lives / 2 }, (_, index) => from + index)

await t.test(`${lives} drawn lives (${replay})`, async (t) => {
  const prefix = await seeingAll()
  if (prefix === undefined) throw new Error('not all processes can be seen here: run it as root')
  const all = replaying ? [seed] : [...seeds(1), ...seeds(seed)]
  const { played, found } = await search({ seeds: all, lanes, limit: Infinity, prefix, shortens: true })
  t.equal(played, all.length, `${played} lives were played`)
  for (const one of found) t.fail(describe(one))
})
