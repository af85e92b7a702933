/** Which record speaks of a target: by the mark of the commit and the inodes, and by content only where numbers alone do not tell. */
import t from 'tap'
import type { Identity } from '../../../src/durable/path/place.js'
import type { StoredRecord } from '../../../src/durable/record/record.js'
import { readPublication, readRecord } from '../../../src/durable/look/inspect.js'
import { letGo } from '../../../src/durable/operator/hold.js'
import { publish } from '../../../src/durable/publish/publish.js'
import { directoryPublication } from '../../../src/durable/publish/replace.js'
import { inForce, isRecorded, recordFor } from '../../../src/durable/record/speaking-record.js'
import { ModelProcess } from '../../crash/model/model-process.js'
import { parent, record, within } from '../judge-rows.js'
import { treeOf } from '../judgements.js'
import { published, target } from '../model-target.js'

/** Inodes by letter: of the same number, made at different times, where only the second letter differs. */
const inode = (name: string): Identity => ({ inode: name.slice(0, 1), birth: `born ${name}` })
const unborn = (name: string): Identity => ({ inode: name.slice(0, 1), birth: '0' })

/** A publication that staged `target` over `replaced`. */
const one = (
  sequence: number,
  before: string | null,
  after: string,
  [target, replaced]: readonly [Identity, Identity?],
  marks: Partial<StoredRecord> = {},
): StoredRecord =>
  record(sequence, before, after, { place: { within, parent, target, ...(replaced && { replaced }) }, ...marks })
const there = (digest: string, identity: Identity) => ({ ...treeOf(digest), identity })
const committed = { committed: true }

/** Sequence of the record that speaks; of all, newest first, that were not aborted. */
const speaks = (tree: Parameters<typeof inForce>[1], ...records: StoredRecord[]) =>
  records[0] && recordFor(records[0], records, tree).sequence
const stand = (tree: Parameters<typeof inForce>[1], ...records: StoredRecord[]) =>
  inForce(records, tree).map(({ sequence }) => sequence)

await t.test('earlier content that comes back is drift of the committed one, with any inode', async (t) => {
  const first = one(1, null, 'a', [inode('A')], committed)
  const second = one(2, 'a', 'b', [inode('B'), inode('A')], committed)
  for (const identity of [inode('A'), inode('B'), inode('C'), unborn('A')]) {
    t.strictSame(stand(there('a', identity), second, first), [2, 1], identity.birth)
    t.strictSame(stand(there('a', identity), second), [2], identity.birth)
  }
  t.strictSame(
    stand(undefined, one(1, null, 'a', [inode('A')], committed)),
    [1],
    'nothing was there before, nor is now',
  )
})

await t.test('where the mark is lost, the inode tells whether the exchange has come', async (t) => {
  const first = one(1, null, 'a', [inode('A')], committed)
  const second = one(2, 'a', 'b', [inode('B'), inode('A')])
  t.strictSame(stand(there('a', inode('A')), second, first), [1], 'what that publication found is there')
  t.strictSame(stand(there('edited', inode('A')), second, first), [1], 'edited since')
  t.strictSame(stand(there('b', inode('B')), second, first), [2, 1])
  t.strictSame(stand(there('a', inode('B')), second, first), [2, 1], 'written into what was staged')
  t.strictSame(stand(there('a', inode('C')), second, first), [2, 1], 'a new inode')
  t.strictSame(stand(there('a', inode('AA')), second, first), [2, 1], 'one that was made later, of the same number')
  t.strictSame(stand(undefined, second, first), [2, 1], 'taken away')
  t.strictSame(stand(there('a', inode('A')), second), [], 'what was there was not ours')
  t.strictSame(stand(undefined, one(1, null, 'a', [inode('A')])), [], 'nothing was there, nor is now')
})

await t.test('where births are not told, the content has to be the same, too', async (t) => {
  const first = one(1, null, 'a', [unborn('A')], committed)
  const second = one(2, 'a', 'b', [unborn('B'), unborn('A')])
  t.strictSame(stand(there('a', unborn('A')), second, first), [1])
  t.strictSame(stand(there('edited', unborn('A')), second, first), [2, 1], 'the number may have been given out again')
  t.strictSame(stand(there('a', unborn('C')), second, first), [2, 1])
  const drift = one(2, 'x', 'b', [unborn('B'), unborn('C')])
  t.strictSame(stand(there('a', unborn('A')), drift, first), [1], 'what the one before it staged')
  t.strictSame(stand(there('edited', unborn('A')), drift, first), [2, 1])
})

await t.test(
  'a power cut may bring back a content several publications ago, up to the last committed one',
  async (t) => {
    const first = one(1, null, 'a', [inode('A')], committed)
    const visible = one(2, 'a', 'b', [inode('B'), inode('A')])
    const again = one(3, 'b', 'b', [inode('C'), inode('B')])
    t.strictSame(stand(there('a', inode('A')), again, visible, first), [1])
    t.strictSame(stand(there('b', inode('B')), again, visible, first), [2, 1])
    t.strictSame(stand(there('b', inode('C')), again, visible, first), [3, 2, 1])
    const foreign = [one(2, 'b', 'b', [inode('C'), inode('B')]), one(1, 'x', 'b', [inode('B'), inode('X')])] as const
    t.strictSame(stand(there('x', inode('X')), ...foreign), [], 'what was there before all of them')
    const settled = [again, { ...visible, ...committed }, first] as const
    t.strictSame(stand(there('a', inode('X')), ...settled), [3, 2, 1])
    t.strictSame(
      stand(there('x', inode('X')), again, one(2, 'x', 'b', [inode('B'), inode('X')], committed)),
      [3, 2],
      'nothing of before a committed one comes back by itself',
    )
  },
)

await t.test('without a proof no publication counts as aborted', async (t) => {
  const first = one(1, null, 'a', [inode('A')], committed)
  t.strictSame(stand(there('a', inode('A')), one(2, 'a', 'b', [inode('B')]), first), [1])
  t.strictSame(stand(there('a', inode('A')), one(2, 'a', 'b', [inode('B')])), [2])
  const exchange = one(2, 'a', 'b', [inode('B'), inode('A')])
  t.strictSame(stand(treeOf('a'), exchange, first), [2, 1], 'what was read tells no inode')
})

await t.test('the newest speaks where all were aborted', async (t) => {
  t.equal(speaks(there('x', inode('X')), one(1, 'x', 'a', [inode('A'), inode('X')])), 1)
  t.equal(speaks(undefined, one(2, null, 'b', [inode('B')]), one(1, null, 'a', [inode('A')])), 2)
  t.equal(speaks(undefined, one(2, null, 'b', [inode('B')]), one(1, 'x', 'a', [inode('A')], committed)), 1)
  t.equal(speaks(undefined), undefined)
})

await t.test(
  'present content is ours by its own record, by one of published content, or by one of content that was ours',
  async (t) => {
    const recorded = (digest: string, ...records: StoredRecord[]) => isRecorded(records, treeOf(digest))
    t.equal(recorded('a'), false)
    t.equal(recorded('a', record(1, null, 'a')), true)
    t.equal(recorded('b', record(1, null, 'a')), false, 'it was aborted')
    t.equal(recorded('b', record(1, null, 'a', { owned: true })), true)
    t.equal(recorded('b', record(1, null, 'a', { committed: true })), true)
    t.equal(recorded('a', record(2, null, 'b'), record(1, null, 'a')), true, 'any of them')
    t.equal(isRecorded([record(1, null, 'a')], undefined), false)
    const letGo = record(1, null, 'a', { committed: true, letGo: { since: 1, publishedAt: 0 } })
    t.equal(recorded('a', letGo), true, 'let go, and not changed since')
    t.equal(recorded('b', letGo), false, 'what became of what was let go')
    t.equal(recorded('d', record(2, 'b', 'c', { committed: true }), letGo), true, 'it was published since')
    const carried = { ...letGo, letGo: { since: 1, publishedAt: 7 } }
    t.equal(recorded('b', carried), true, 'a version that does not know it has carried it into another publication')
    const kept = one(1, null, 'a', [inode('A')], { committed: true, letGo: { since: 1, publishedAt: 0 } })
    t.equal(isRecorded([kept], there('b', inode('A'))), false, 'let go, and written into')
    const aborted = one(2, 'b', 'c', [inode('C'), inode('B')])
    t.equal(isRecorded([aborted, kept], there('b', inode('B'))), false, 'a publication over it was aborted')
    const adopted = one(1, 'x', 'a', [inode('A'), inode('X')])
    t.equal(isRecorded([adopted], there('x', inode('A'))), true, 'written into the very directory that was staged')
    t.equal(isRecorded([adopted], there('x', inode('X'))), false)
    t.equal(isRecorded([adopted], there('x', unborn('A'))), false, 'a number alone does not make it ours')
  },
)

await t.test('an agent that finds content as it is to be enters its name where none is', async (t) => {
  const { fs } = await published(ModelProcess, { publisher: 'agent' })
  const again = { publisher: 'agent', agent: 'one' } as const
  const [outcome] = await publish([directoryPublication(fs, { target, files: { a: '1' }, ...again })])
  t.match(outcome, { outcome: 'unchanged' })
  t.equal((await readRecord(fs, target))?.keeper, 'one')
})

await t.test('an agent takes in content that another one keeps, or that was let go; a person does not', async (t) => {
  for (const [agent, isLetGo] of [
    ['two', false],
    ['two', true],
    ['one', true],
    [undefined, true],
  ] as const) {
    const { fs, beside, calls } = await published(ModelProcess, { publisher: 'agent', agent: 'one' })
    if (isLetGo) await letGo(fs, target, { agent: 'one' })
    const by = agent && ({ publisher: 'agent', agent } as const)
    t.match(await publish([directoryPublication(fs, { target, files: { a: '1' }, ...by })]), [{ outcome: 'unchanged' }])
    t.equal((await readRecord(fs, target))?.keeper, agent ?? 'one')
    t.equal((await readPublication(fs, target))?.letGo === undefined, agent !== undefined)
    t.equal(beside().length, 3, 'the target, its lock and one record')
    const ofRecords = calls
      .filter((call) => /^(create|remove)File \S+\.\d+$/.test(call))
      .map((call) => call.split(' ')[0])
    t.strictSame(ofRecords.slice(-2), ['createFile', 'removeFile'])
    t.equal(fs.descriptors, 0)
  }
})
