/** Drawn configurations and reloads, under the program, for some seconds, from a fixed seed and from a new one: `npm run soak` plays two thousand. */
import t from 'tap'
import { seeingAll } from '../../seeing-all.js'
import { replaying, seed } from '../../seed.js'
import type { Directory } from './draw.js'
import { Played } from './play.js'
import { describe, search } from './search.js'

/** Milliseconds in which lives may begin; each takes some seconds. */
const limit = 12_000

const prefix = await seeingAll()
const skip = prefix === undefined && 'needs root to see all processes'
const seeds = replaying ? [seed] : Array.from({ length: 1000 }, (_, index) => [1 + index, seed + index]).flat()

await t.test('after the last file, each path is as the files and the objects say', { skip }, async (t) => {
  const { played, found } = await search({ seeds, lanes: 4, limit, prefix: prefix ?? [] })
  t.comment(`${played} lives from HOLDFAST_SEED=${replaying ? seed : `1 and ${seed}`}`)
  t.ok(played > 0)
  for (const one of found) t.fail(describe(one))
})

const directory: Directory = { path: 'a', contents: ['s0'], onDrop: 'keep', history: 0 }

await t.test('a drawn life ends with the reason of its wait once its time is over', { skip }, async (t) => {
  const life = new Played(prefix ?? [], -Infinity)
  t.teardown(() => life.close())
  const played = life.play([{ step: 'configure', agent: 0, directories: [directory] }])
  await t.rejects(played, {
    message: /^the last files hold: not within 0 ms; last: Error: a must hold .*, and holds nothing$/,
  })
})

await t.test('a life ends as soon as an agent refuses a file', { skip }, async (t) => {
  const life = new Played(prefix ?? [])
  t.teardown(() => life.close())
  const played = life.play([
    { step: 'configure', agent: 0, directories: [directory] },
    { step: 'own', path: 'e' },
    { step: 'configure', agent: 0, directories: [directory, directory] },
    { step: 'own', path: 'e' },
  ])
  await t.rejects(played, { message: /^a file was refused: / })
})
