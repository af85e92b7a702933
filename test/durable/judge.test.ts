/** What is seen of a target, against what is to be done: each row is one state that a predecessor can leave. */
import t from 'tap'
import { judge, type Seen } from '../../src/durable/judge.js'
import { names, staged, within, parent, target, rows } from './judge-rows.js'

const here = { parent, target }

for (const row of rows) {
  const { what, target, valid = [], torn = [], taken = [], staging, shared = false, now, later, expected } = row
  const { identity, at = within, lasting = true } = row
  void t.test(what, (t) => {
    const seen: Seen = {
      names,
      exists: target !== null,
      tree:
        target === null || target === 'broken'
          ? undefined
          : { digest: target, entries: [], identity: identity ?? here.target },
      records: {
        valid,
        torn,
        taken: new Set(taken),
        staging: [],
        newer: [],
        quarantined: [],
        generations: [],
        missed: false,
      },
      staging: staging ? ['0123456789abcdef'] : [],
      sharedStaging: shared,
      within: at,
      parent: here.parent,
      lasting,
    }
    const { removeNow, removeLater, current, ...state } = judge(seen)
    const nameOf = (sequence: number): string => (sequence === 0 ? staged : names.record(sequence))
    t.same([...removeNow].sort(), now.map(nameOf).sort(), 'at once')
    t.same([...removeLater].sort(), later.map(nameOf).sort(), 'after the next commit')
    const { current: sequence, trusted, ...rest } = expected
    if (trusted !== undefined) t.equal(current?.trusted, trusted, 'trusted')
    if (sequence !== undefined) t.equal(current?.sequence, sequence)
    t.match(state, rest)
    t.end()
  })
}
