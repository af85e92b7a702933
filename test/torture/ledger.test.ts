import t from 'tap'
import { emptyLedger, Ledger, Refused } from '../../torture/ledger.js'
import type { Found, Run } from '../../torture/types.js'

const run: Run = {
  id: 'run',
  seed: 'seed',
  machine: 'this',
  directory: '/mnt/disk',
  disk: { fileSystem: 'ext4', mountPoint: '/mnt/disk', root: '/', source: '/dev/sda1', options: ['rw'], devices: [] },
  kernel: 'Linux',
  version: '1',
  startedAt: '2026-01-01T00:00:00.000Z',
}
const now = new Date(0)
const whole = (generation: number): Found => ({ state: 'whole', generation })

/** Generations 1 to `announced` in one boot; the last one is in flight unless `all` are acknowledged. */
function published(announced: number, { all = false, ledger = new Ledger(emptyLedger()), boot = 'one' } = {}): Ledger {
  if (ledger.state.run === undefined) ledger.begin(run)
  for (let generation = ledger.state.announced + 1; generation <= announced; generation++) {
    ledger.announce(generation, boot)
    if (all || generation < announced) ledger.acknowledge(generation, false)
  }
  return ledger
}

await t.test('the ledger judges each finding after a power cut', async (t) => {
  // 1 to 5 are acknowledged, 6 is in flight.
  const cases: [string, Found, object][] = [
    ['the last acknowledged', whole(5), { result: 'kept', lost: 0 }],
    ['what was in flight', whole(6), { result: 'kept', lost: 0 }],
    ['an earlier one', whole(3), { result: 'lost', lost: 2 }],
    ['nothing at all', { state: 'missing' }, { result: 'lost', lost: 5 }],
    ['torn', { state: 'torn', problem: 'p' }, { result: 'torn', lost: 0 }],
    ['mixed', { state: 'mixed', problem: 'p' }, { result: 'torn', lost: 0 }],
    ['one that the witness never heard of', whole(7), { result: 'unknown', lost: 0 }],
  ]
  for (const [name, found, expected] of cases) {
    const ledger = published(6)
    const examination = ledger.examined(found, 'power', 'two', now)
    t.match(examination, { outage: 'power', ...expected }, name)
    const { verdict, cuts } = ledger.verdict()
    const { result } = examination
    t.equal(verdict, result === 'kept' ? 'kept' : result === 'unknown' ? 'none' : 'lost', `${name}: the verdict`)
    t.equal(cuts, result === 'unknown' ? 0 : 1, `${name}: the cuts`)
  }
})

await t.test('only a power cut with a write in flight counts; a lost generation is lost in any outage', async (t) => {
  const idle = published(6, { all: true })
  t.match(idle.examined(whole(6), 'power', 'two', now), { outage: 'idle', result: 'kept' })
  const reset = published(6)
  t.match(reset.examined(whole(5), 'reset', 'two', now), { outage: 'reset', result: 'kept' })
  const orderly = published(6)
  orderly.ended('one')
  t.match(orderly.examined(whole(5), 'power', 'two', now), { outage: 'orderly', result: 'kept' })
  // The node could not say that it ended, and left a mark on the disk; that of an earlier end in this boot says nothing.
  const mark = { boot: 'one', generation: 6 }
  const marked = published(6)
  t.match(marked.examined(whole(5), 'power', 'two', now, [mark]), { outage: 'orderly', result: 'kept' })
  for (const other of [
    { ...mark, generation: 5 },
    { ...mark, boot: 'zero' },
  ]) {
    t.match(published(6).examined(whole(5), 'power', 'two', now, [other]), { outage: 'power' })
  }
  const liar = published(6).examined(whole(4), 'power', 'two', now, [mark])
  t.match(liar, { outage: 'orderly', result: 'lost', lost: 1 }, 'a mark hides no loss')
  for (const ledger of [idle, reset, orderly, marked]) t.match(ledger.verdict(), { verdict: 'none', cuts: 0 })
  const lost = published(6, { all: true })
  lost.examined(whole(2), 'reset', 'two', now)
  t.match(lost.verdict(), { verdict: 'lost', cuts: 0, lost: 4, notCounted: { reset: 1 } })
})

await t.test('the same boot is no outage, with any end of the connection', async (t) => {
  const ledger = published(6)
  t.match(ledger.open('one', 'this'), { due: false, announced: 6, place: 1 })
  t.throws(() => ledger.examined(whole(5), 'power', 'one', now), Refused)
  t.match(ledger.open('two', 'this'), { due: true })
  t.throws(() => ledger.announce(7, 'two'), /not examined/)
  t.throws(() => ledger.open('two', 'another'), /another machine/)
})

await t.test('a run goes on over many cuts, and a faulty directory stays where it is', async (t) => {
  const ledger = published(6)
  // The generation in flight is on the disk: no acknowledgement has promised that it stays there.
  ledger.examined(whole(6), 'power', 'two', now)
  t.match(ledger.open('two', 'this'), { due: false, announced: 6, place: 1 })
  published(7, { ledger, boot: 'two' })
  t.match(ledger.examined(whole(5), 'power', 'three', now), { result: 'kept' }, 'the last acknowledged')
  published(12, { ledger, boot: 'three' })
  t.match(ledger.examined(whole(9), 'power', 'four', now), { result: 'lost', lost: 2 })
  t.match(ledger.open('four', 'this'), { place: 2, announced: 12 })
  published(15, { ledger, boot: 'four' })
  t.match(ledger.examined({ state: 'missing' }, 'power', 'five', now), { result: 'lost', lost: 2 }, '13 and 14')
  t.match(ledger.verdict(), { verdict: 'lost', cuts: 4, lost: 4, torn: 0, acknowledged: 11 })
})

await t.test('a verdict fits into a message after any number of cuts', async (t) => {
  const ledger = published(6)
  const lost = { ...ledger.examined(whole(5), 'power', 'two', now), result: 'lost' as const }
  ledger.state.examinations = Array.from({ length: 30_000 }, (_, at) => ({
    ...lost,
    acknowledged: at,
    result: at === 7 ? 'lost' : 'kept',
  }))
  const verdict = ledger.verdict()
  t.match(verdict, { verdict: 'lost', cuts: 30_000, omitted: 28_999 })
  t.equal(verdict.examinations.length, 1001)
  t.match([verdict.examinations[0], verdict.examinations.at(-1)], [{ acknowledged: 7 }, { acknowledged: 29_999 }])
  ledger.state.examinations = Array.from({ length: 30_000 }, () => ({ ...lost }))
  t.ok(JSON.stringify(ledger.verdict()).length < 2 ** 20)
})

await t.test('the ledger refuses senseless requests, and changes nothing', async (t) => {
  const ledger = new Ledger(emptyLedger())
  t.equal(ledger.open('one', 'this'), undefined)
  t.throws(() => ledger.announce(1, 'one'), /no run has begun/)
  t.throws(() => ledger.verdict(), /no run has begun/)
  published(3, { ledger, all: true })
  const before = structuredClone(ledger.state)
  t.throws(() => ledger.begin(run), /already/)
  t.throws(() => ledger.announce(3, 'one'), /not new/)
  t.throws(() => ledger.acknowledge(4, false), /not the one announced/)
  ledger.acknowledge(3, false)
  t.same(ledger.state, before, 'said twice, it counts once')
})
