/** How the benchmark beside other programs judges (bench/peers): a judge that finds everything whole would flatter everybody. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { filesOf } from '../../bench/peers/content.js'
import {
  add,
  emptyTally,
  guaranteeOf,
  isDamage,
  stateOf,
  verdictOf,
  type State,
  type Verdict,
} from '../../bench/peers/judge.js'
import { readOptions } from '../../bench/peers/options.js'
import { peers } from '../../bench/peers/peers.js'
import { linesOf, picture } from '../../bench/peers/picture.js'
import {
  aheadOf,
  costTable,
  failuresOf,
  powerTable,
  volumeTable,
  type CostRow,
  type PowerRow,
} from '../../bench/peers/report.js'
import { readResults } from '../../bench/peers/results.js'
import { scratch } from '../durable/scratch.js'

const [before, after] = [1, 2].map((generation) => filesOf([300, 0, 5000], generation))
if (!before || !after) throw new Error('two generations')
const [first = '', , last = ''] = [...after.keys()]

void t.test('what a reader finds after a power cut has one name, and the worst file decides', async (t) => {
  const found = (changes: Record<string, Buffer | undefined>): State => {
    return stateOf((name) => (name in changes ? changes[name] : after.get(name)), before, after)
  }
  t.equal(
    stateOf((name) => before.get(name), before, after),
    'old',
  )
  t.equal(found({}), 'new')
  t.equal(found({ [first]: before.get(first) }), 'mixed')
  t.equal(found({ [first]: Buffer.alloc(0) }), 'torn')
  t.equal(found({ [last]: after.get(last)?.subarray(0, 4096) }), 'torn')
  t.equal(found({ [last]: undefined }), 'missing')
  t.equal(found({ [first]: Buffer.alloc(300), [last]: undefined }), 'missing')
})

void t.test('the old content is whole until the program said that the new one is in place', async (t) => {
  const verdicts: [State, boolean, Verdict][] = [
    ['old', false, 'whole'],
    ['old', true, 'lost'],
    ['new', false, 'whole'],
    ['new', true, 'whole'],
    ['mixed', false, 'mixed'],
    ['mixed', true, 'lost'],
    ['torn', true, 'torn'],
    ['unmountable', true, 'unmountable'],
  ]
  for (const [state, acknowledged, verdict] of verdicts) t.equal(verdictOf(state, acknowledged), verdict)
})

void t.test('one broken state among many takes a guarantee away', async (t) => {
  const guarantees: Record<Verdict, string> = {
    whole: 'the directory, durable',
    mixed: 'each file, durable',
    lost: 'each file, may be lost',
    torn: 'broken',
    missing: 'broken',
    unmountable: 'broken',
  }
  const whole = Array.from({ length: 99 }).reduce<typeof emptyTally>((tally) => add(tally, 'whole'), emptyTally)
  for (const verdict of ['whole', 'mixed', 'lost', 'torn', 'missing', 'unmountable'] as const) {
    t.equal(guaranteeOf(add(whole, verdict)), guarantees[verdict])
  }
  t.equal(guaranteeOf(emptyTally), undefined, 'no states show nothing')
})

function peerNamed(name: string): PowerRow['peer'] {
  const peer = peers.find((each) => each.name === name)
  if (!peer) throw new Error(`no peer ${name}`)
  return peer
}

const powerRow = (name: string, verdict: Verdict): PowerRow => {
  return { fileSystem: 'ext4', what: '5 files', peer: peerNamed(name), tally: add(emptyTally, verdict) }
}

const costRow = (name: string, milliseconds: number, files = 10, flushes = 4): CostRow => {
  const ratio = milliseconds / 100
  const cost = { flushes, milliseconds, written: 1, ratio: [ratio, ratio, ratio], calls: 9, processor: 1 } as const
  return { fileSystem: 'ext4', work: `${files} files`, files, peer: peerNamed(name), cost }
}

void t.test(
  'the check fails where holdfast breaks, where the cuts find nothing, and where an equal flushes less',
  async (t) => {
    const sound = [powerRow('holdfast', 'whole'), powerRow('AtomicWriter', 'torn'), powerRow('library-go', 'whole')]
    const costs = [costRow('holdfast', 100), costRow('library-go', 90), costRow('AtomicWriter', 1, 10, 0)]
    t.same(failuresOf(sound, costs), [], 'what is faster and breaks does not count')
    t.same(aheadOf(sound, costs).length, 1, 'nor is time judged, but said')
    t.equal(failuresOf([...sound, powerRow('holdfast', 'mixed')], costs).length, 1)
    t.equal(failuresOf([powerRow('holdfast', 'whole'), powerRow('AtomicWriter', 'whole')], []).length, 1)
    t.matchOnly(failuresOf(sound, [...costs, costRow('library-go', 90, 10, 2)]), [
      /library-go flushes 2 times, holdfast 4/,
    ])
    const none = { ...powerRow('holdfast', 'whole'), tally: emptyTally }
    t.matchOnly(failuresOf([...sound, none], costs), [/holdfast.* no state/])
  },
)

void t.test('what cannot be mounted counts against a peer only where the file system is at fault', async (t) => {
  const failed = (code: string): Error => Object.assign(new Error(`mount of ext4: ${code}`), { code })
  for (const code of ['EUCLEAN', 'EINVAL', 'EIO', 'EBADMSG']) t.ok(isDamage(failed(code)), code)
  for (const code of ['EPERM', 'ENODEV', 'EBUSY', 'ENOMEM']) t.notOk(isDamage(failed(code)), code)
  t.notOk(isDamage(new Error('EINVAL')))
})

void t.test('tables and picture name everybody', async (t) => {
  const power = [powerRow('holdfast', 'whole'), powerRow('AtomicWriter', 'torn')]
  const costs = [1, 10, 200].flatMap((files) => [
    costRow('holdfast', 100, files),
    costRow('AtomicWriter', files, files),
  ])
  const drawn = picture('title', [{ title: 'ms', lines: linesOf(costs, power, 'milliseconds') }])
  for (const name of ['holdfast', 'AtomicWriter']) {
    for (const text of [powerTable(power), costTable(costs, power), drawn]) t.match(text, name)
  }
  t.match(costTable(costs, power), /AtomicWriter +\| broken/)
  t.notMatch(drawn, /NaN|Infinity|undefined/)
})

void t.test(
  'the benchmark resumes runs: states of power cuts add up, the later cost stands, a missing one is NaN',
  async (t) => {
    const write = (name: string, results: object): string => {
      const file = join(scratch(t), name)
      writeFileSync(file, JSON.stringify(results))
      return file
    }
    const volumes = [{ keeper: 'a volume', delays: [500, 60_000, 30_000] }]
    const cost = { ...costRow('holdfast', 90), cost: { ...costRow('holdfast', 90).cost, calls: NaN } }
    const first = write('first', { power: [powerRow('shell', 'whole')], costs: [costRow('holdfast', 100)], volumes })
    const second = write('second', { power: [powerRow('shell', 'missing')], costs: [cost] })
    const { power, costs, volumes: read } = readResults([first, second])
    t.match(powerTable(power), /shell +\| nothing +\| broken \| 1 of 2: 1 missing/)
    t.same(costs, [cost])
    t.equal(costs[0]?.peer, peerNamed('holdfast'))
    t.match(volumeTable(read), /a volume +\| 3 +\| 0\.500 +\| 30\.0 +\| 60\.0/)
    t.throws(
      () => readResults([first, write('third', { power: [{ ...powerRow('shell', 'whole'), peer: {} }] })]),
      /third: /,
    )
  },
)

void t.test('the picture tells all peers apart, says what each keeps, and draws what costs nothing', async (t) => {
  const power = peers.map(({ name }) => powerRow(name, name === 'holdfast' ? 'whole' : 'torn'))
  const costs = peers.flatMap(({ name }) => [costRow(name, 9, 1), costRow(name, 90, 50, name === 'shell' ? 0 : 4)])
  const lines = linesOf(costs, power, 'flushes')
  t.same(lines.find(({ name }) => name === 'shell')?.points, [
    [1, 4],
    [50, 0],
  ])
  const drawn = picture('title', [{ title: 'flushes', lines }])
  t.notMatch(drawn, /NaN|Infinity|undefined/)
  const ofPath = [...drawn.matchAll(/<path[^>]*fill="none" stroke="(#\w+)"[^>]*>/g)]
  t.equal(new Set(ofPath.map(([, colour]) => colour)).size, peers.length, 'a colour for each')
  t.equal(ofPath.filter(([path]) => path.includes('stroke-dasharray')).length, peers.length - 1)
  t.match(drawn, '>holdfast (the directory, durable)<')
  t.match(drawn, '>shell (broken)<')
  t.match(drawn, '>0</text>')
})

void t.test('--only narrows the names of its kind, and refuses unknown ones', async (t) => {
  const options = readOptions(['--only', 'power,shell'], ['holdfast', 'shell'])
  t.match(options, { parts: ['power'], peers: ['shell'], fileSystems: ['ext4', 'xfs', 'btrfs'] })
  t.throws(() => readOptions(['--only', 'shel'], ['holdfast', 'shell']), /not shel/)
  t.throws(() => readOptions(['--rounds', '0'], []), /whole number/)
  for (const only of ['cost', 'watch', 'power', 'cost,watch']) {
    t.throws(() => readOptions(['--check', '--only', only], []), /--check judges power cuts and costs/)
  }
  t.match(readOptions(['--tables', 'one.json,other.json'], []), { tables: ['one.json', 'other.json'] })
  t.ok((readOptions(['--check', '--only', 'power,cost,ext4'], []) as { check: boolean }).check)
})
