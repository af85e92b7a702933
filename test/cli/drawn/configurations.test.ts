/** Drawn configurations and reloads, under the program, for half a minute: `npm run soak` plays two thousand. */
import t from 'tap'
import { seeingAll } from '../../seeing-all.js'
import { replay, replaying, seed } from '../../seed.js'
import { describe, search } from './search.js'

/** Milliseconds in which lives may begin; each takes some seconds. */
const limit = 8_000

const prefix = await seeingAll()
const seeds = (from: number): number[] => Array.from({ length: 1000 }, (_, index) => from + index)

for (const [which, some] of replaying
  ? ([['given', [seed]]] as const)
  : ([
      ['fixed', seeds(1)],
      ['new', seeds(seed)],
    ] as const)) {
  await t.test(
    `after the last file, each path is as the files and the objects say: ${which} seeds`,
    { skip: prefix === undefined && 'not all processes can be seen here' },
    async (t) => {
      const { played, found } = await search({ seeds: some, lanes: 4, limit, prefix: prefix ?? [] })
      t.comment(`${played} lives from seed ${some[0]}; ${replay}`)
      t.ok(played > 0)
      for (const one of found) t.fail(describe(one))
    },
  )
}
