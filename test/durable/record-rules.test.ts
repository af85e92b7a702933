/** The meaning of a record: the effect of appended lines, its demands on a reader, and how long an operator's word holds. */
import { hash } from 'node:crypto'
import { inspect } from 'node:util'
import t from 'tap'
import {
  describes,
  digestBy,
  encodeAppendix,
  encodeRecord,
  isInForce,
  isOfOtherVersion,
  isPinned,
  parseRecord,
  recordBody,
  type StoredRecord,
} from '../../src/durable/record/record.js'
import { enveloped, isBody, knownFields, type RecordBody } from '../../src/durable/record/record-fields.js'
import type { Generation, Hold, Pin } from '../../src/durable/types.js'
import { record } from './judge-rows.js'
import { treeOf, valueOf } from './judgements.js'

/** Any line under a right checksum. */
const line = (value: unknown): string => {
  const json = JSON.stringify(value)
  return `${hash('sha256', json)} ${json}\n`
}
const bodyOf = (stored: StoredRecord): RecordBody =>
  Object.fromEntries(Object.entries(stored).filter(([field]) => field in knownFields)) as unknown as RecordBody

/** The record with these fields, and these lines behind it, after parsing. */
function read(fields: Partial<StoredRecord>, ...lines: string[]): Partial<StoredRecord> {
  const body = Buffer.from(encodeRecord({ ...bodyOf(record(1, null, 'a')), ...fields })).toString()
  return parseRecord(body + lines.join(''), 'certs', 1, 'b') ?? {}
}
const appended = (...args: Parameters<typeof encodeAppendix>): string => Buffer.from(encodeAppendix(...args)).toString()

await t.test('a line counts in any order, and changes nothing that it does not say', async (t) => {
  const before = { attributes: 'x', keepsAttributes: false, hooks: ['one', 'two'] } as const
  const lines = [appended({ hook: 'one' }), appended({ settled: true })]
  for (const order of [lines, lines.toReversed()])
    t.match(read(before, ...order), { ...before, pendingHooks: ['two'], committed: true })
  t.match(read(before), { ...before, pendingHooks: ['one', 'two'], committed: false })
})

await t.test('a line that holds something else than it may is passed over', async (t) => {
  const before = { attributes: 'x', keepsAttributes: true, hooks: ['one'] } as const
  for (const wrong of [{ settled: 1 }, { settled: false }, { hook: 7 }, { attributes: 7 }, { within: '/moved' }]) {
    t.strictSame(read(before, line(wrong)), read(before), JSON.stringify(wrong))
  }
  for (const wrong of [{ within: 7 }, { objects: {} }, { objects: [7] }]) {
    t.strictSame(read(before, line(wrong)), read(before), JSON.stringify(wrong))
  }
})

await t.test('text that is no record is neither one of this version nor of a newer one', async (t) => {
  for (const value of [undefined, null, 7, 'x', {}, []]) {
    const answer = valueOf(() => isBody(value))
    t.equal(answer, false, inspect(value))
  }
  t.ok(isBody(enveloped(bodyOf(record(1, null, 'a')))))
  for (const [text, expected] of [
    [line({}), false],
    [line({ requires: ['time-travel'] }), false],
    [line({ version: 1 }), false],
    [line({ version: 1, requires: ['hold'] }), false],
    [line({ version: 1, requires: ['time-travel'] }), true],
    [line({ version: 2 }), true],
    [line({ version: 1, relocation: { as: 'removed' }, removing: { since: 0 } }), false],
    [line({ version: 0 }), true],
    ['', false],
  ] as const) {
    t.equal(isOfOtherVersion(text), expected, text)
  }
})

await t.test('the disk’s content is named by the record that is of it, else by itself', async (t) => {
  const kept = record(1, null, 'a', { keepsAttributes: true })
  t.equal(digestBy(kept, treeOf('a')), 'a')
  t.equal(digestBy(kept, treeOf('b')), 'a', 'the same but for what is the administrator’s')
  t.equal(digestBy(record(1, null, 'a'), treeOf('b')), 'b')
  t.equal(digestBy(kept, undefined), undefined)
  const entry = { path: 'a', type: 'file', sha256: 'x', mode: 0, uid: 0, gid: 0 } as const
  t.notOk(describes(kept, { digest: 'b', entries: [entry] }), 'one more entry')
  t.notOk(describes({ ...kept, entries: [entry] }, treeOf('b')), 'one less')
})

await t.test('a hold and a pin are in force until their end, or until a call ends them', async (t) => {
  const hold = (until: Hold['until']) => isInForce({ reason: '', since: 5, until }, 10)
  t.strictSame([hold(null), hold(11), hold(10), hold(9)], [true, true, false, false])
  t.equal(isInForce(undefined, 10), false)
  const pin = (until: Pin['until']) => isPinned({ reason: '', since: 5, until, from: [], digest: 'a' }, 10)
  t.strictSame([pin('newer'), pin('released'), pin(11), pin(10), pin(9)], [true, true, true, false, false])
  t.equal(isPinned(undefined, 10), false)
  t.equal(isInForce({ reason: '', since: 20, until: null }, 10), true, 'a clock that stands before its beginning')
})

const generation: Generation = {
  name: '.holdfast-0123456789abcdef.1-0123456789abcdef',
  sequence: 1,
  digest: 'a',
  why: 'published',
  publishedAt: 0,
  replacedAt: 1,
  objects: [],
}
const hold: Hold = { reason: '', since: 0, until: null }
const pin: Pin = { reason: '', since: 0, until: 'newer', from: [], digest: 'a' }

await t.test('an older version refuses a record whose words it would ignore with harm, and no other', async (t) => {
  const asked = (said: object) => enveloped({ ...bodyOf(record(1, null, 'a')), ...said }).requires
  t.equal(asked({}), undefined)
  const history = { keep: 2, maxAge: null, generations: [] }
  const retired = [{ name: generation.name, inode: '1', until: 7, entries: [] }]
  const rows: [object, string[] | undefined][] = [
    [{ hold }, ['hold']],
    [{ pin }, ['pin']],
    [{ removing: { since: 1 } }, ['removing']],
    [{ retired }, ['retired']],
    [{ history }, undefined],
    [{ history: { ...history, generations: [generation] } }, ['history']],
    [{ history: { ...history, generations: [generation, { ...generation, sequence: 0 }] } }, ['history', 'adopted']],
    [{ hold, history }, ['hold']],
    [{ hold, retired, pin }, ['hold', 'retired', 'pin']],
  ]
  for (const [said, requires] of rows) {
    t.strictSame(asked(said), requires, JSON.stringify(said))
  }
  t.equal(asked({ retired: [] }), undefined, 'an empty list says nothing')
})

await t.test('recordBody keeps all but what is changed, and the hooks that have run', async (t) => {
  const relocation = { from: '/was/certs', as: 'removed', state: 'both', since: 1 } as const
  const said = { hooks: ['one', 'two'], hold, pin, relocation, movedTo: '/is/certs', publisher: 'agent' } as const
  const stored = record(1, null, 'a', { ...said, pendingHooks: ['two'], unknown: { later: 'x' } })
  const same = { ...bodyOf(record(1, null, 'a')), ...said, later: 'x', hooks: ['two'] }
  const again = (changes: Parameters<typeof recordBody>[1]): unknown =>
    JSON.parse(JSON.stringify(recordBody(stored, changes)))
  t.strictSame(again({}), same)
  const { hold: _, movedTo, ...rest } = same
  t.ok(movedTo)
  t.strictSame(again({ hold: undefined, movedTo: undefined, why: 'adopted' }), { ...rest, why: 'adopted' })
})
