import { hash } from 'node:crypto'
import t from 'tap'
import {
  describes,
  encodeAppendix,
  encodeRecord,
  isOfOtherVersion,
  parseRecord,
} from '../../../src/durable/record/record.js'
import type { RecordBody } from '../../../src/durable/record/record-fields.js'

const object = (name: string, resourceVersion: string, more: object = {}) => ({
  kind: 'Secret',
  namespace: 'n',
  name,
  uid: 'u',
  paths: ['a'],
  resourceVersion,
  ...more,
})
const body: RecordBody = {
  name: 'certs',
  kind: 'exchange',
  boot: 'this boot',
  before: null,
  after: 'sha256:1',
  owned: false,
  publishedAt: 7,
  objects: [object('a', '1'), object('b', '1')],
  hooks: ['reload', 'restart'],
  entries: [],
  place: {
    within: '/etc/certs',
    parent: { inode: '1', birth: '2' },
    target: { inode: '3', birth: '4' },
  },
  attributes: null,
}
const text = (...parts: Uint8Array[]): string => Buffer.concat(parts).toString()
const settled = encodeAppendix({ settled: true })
const parse = (record: string, name = 'certs', boot = 'this boot') => parseRecord(record, name, 5, boot)
/** Any line under a right checksum. */
const line = (json: string): Uint8Array => Buffer.from(`${hash('sha256', json)} ${json}\n`)
const record = encodeRecord(body)

await t.test('appended lines count, but for those that are damaged', async (t) => {
  t.match(parse(text(record)), { sequence: 5, committed: false, trusted: false, otherBoot: false, unknown: {} })
  t.match(parse(text(record, settled)), { committed: true, trusted: true })
  const hook = encodeAppendix({ hook: 'reload' })
  t.same(parse(text(record, hook, settled))?.pendingHooks, ['restart'])
  const torn = text(settled).slice(0, -2)
  const changed = text(settled).replace('true', 'null')
  const unspaced = text(settled).replace(' ', '_')
  const strange = [line('"settled"'), line('null'), line('{')].map((one) => text(one))
  for (const damage of [`${torn}\n`, changed, unspaced, ...strange]) {
    t.match(parse(text(record) + damage), { committed: false }, damage)
    t.match(parse(text(record) + damage + text(settled)), { committed: true }, `a line after ${damage}`)
    t.equal(parse(damage + text(record)), undefined, `a record after ${damage}`)
  }
  t.match(parse(text(record) + torn), { committed: false }, 'a torn line')
  t.match(parse(text(record) + torn + text(settled)), { committed: false }, 'a line that was glued to a torn one')
  t.match(parse(text(record, line('{}'), settled)), { committed: true }, 'a line of a later version is passed over')
  t.equal(parse(text(record).slice(0, -1)), undefined, 'without its end it is torn')
  t.equal(parse(''), undefined)
})

await t.test('objects are the newest; the record again takes nothing back', async (t) => {
  const newer = encodeAppendix({ objects: [object('b', '2')] })
  t.match(parse(text(record, newer))?.objects, [object('a', '1'), object('b', '2')])
  t.match(parse(text(record, newer, record))?.objects, [object('a', '1'), object('b', '2')])
  for (const other of [{ kind: 'ConfigMap' }, { namespace: 'm' }, { name: 'c' }]) {
    const added = encodeAppendix({ objects: [object('b', '3', other)] })
    t.equal(parse(text(record, added))?.objects.length, 3, `another ${Object.keys(other)[0]} is another object`)
  }
})

await t.test('under another boot it came from the disk', async (t) => {
  t.match(parse(text(record), 'certs', 'another boot'), { trusted: true, otherBoot: true, committed: false })
  t.match(parse(text(record, settled), 'certs', 'another boot'), { trusted: true, otherBoot: true, committed: true })
})

await t.test('a record names staging names only, and times within a Date', async (t) => {
  const other = (change: object): unknown => parse(text(encodeRecord({ ...body, ...change })))
  const name = '.holdfast-0123456789abcdef-0123456789abcdef'
  const retired = { name, inode: '1', until: 8, entries: [] }
  const staging = { name, staged: '1', old: '2' }
  const hold = { reason: '', since: 7, until: 8 }
  t.ok(other({ retired: [retired], staging, hold }))
  for (const wrong of ['../certs', 'certs', '', `${name}/..`, `${name}.foreign`, '.holdfast-0123456789abcdef.lock']) {
    t.equal(other({ retired: [{ ...retired, name: wrong }] }), undefined, wrong)
    t.equal(other({ staging: { ...staging, name: wrong } }), undefined, wrong)
  }
  for (const time of [8.64e15 + 1, -8.64e15 - 1]) {
    t.equal(other({ retired: [{ ...retired, until: time }] }), undefined)
    t.equal(other({ hold: { ...hold, since: time } }), undefined)
    t.equal(other({ hold: { ...hold, until: time } }), undefined)
    t.equal(other({ publishedAt: time }), undefined)
  }
})

await t.test('only what this version understands, of this target, is its record', async (t) => {
  const other = (change: object): string => text(encodeRecord({ ...body, ...change }))
  t.equal(parse(text(record), 'other'), undefined)
  t.equal(parse(other({ version: 2 })), undefined)
  t.equal(parse(other({ requires: ['time-travel'] })), undefined)
  t.match(parse(other({ requires: [] })), { name: 'certs' })
  t.equal(parse(other({ place: { within: 7 } })), undefined)
  t.match(parse(other({ futureField: 'x' }))?.unknown, { futureField: 'x' })
  t.equal(parse(other({ movedTo: 'x' })), undefined, 'no absolute path')
  t.equal(parse(other({ relocation: { from: '/a', since: 1, state: 'x', as: 'removed' } })), undefined)
  t.equal(parse(other({ pin: 'x' })), undefined, 'a pin that is none')
  t.notOk(isOfOtherVersion(text(record)))
  t.notOk(isOfOtherVersion(other({ requires: [] })))
  t.notOk(isOfOtherVersion(text(settled)), 'a line that is no record')
  t.notOk(isOfOtherVersion(other({ version: 2 }).slice(1)), 'a torn one')
  t.ok(isOfOtherVersion(other({ version: 2 })))
  t.ok(isOfOtherVersion(other({ requires: ['time-travel'] })))
})

await t.test('with kept mode and owner, a record describes its paths, types and contents', async (t) => {
  const entry = { type: 'file', path: 'a', mode: 0o600, uid: 0, gid: 0, sha256: 'x' } as const
  const isOf = (found: object[], keepsAttributes = true): boolean =>
    describes(
      { after: 'sha256:1', entries: [entry], keepsAttributes },
      {
        digest: 'sha256:2',
        entries: found as never,
      },
    )
  t.ok(isOf([{ ...entry, mode: 0o644, uid: 7 }]))
  t.notOk(isOf([{ ...entry, mode: 0o644 }], false))
  for (const other of [{ path: 'b' }, { type: 'directory' }, { sha256: 'y' }]) t.notOk(isOf([{ ...entry, ...other }]))
  t.notOk(isOf([]))
  t.notOk(isOf([entry, { ...entry, path: 'b' }]))
  const untouched = { after: 'sha256:1', entries: [] } as never
  t.ok(describes(untouched, { digest: 'sha256:1', entries: [entry] }), 'the digest tells all')
  t.notOk(describes(untouched, undefined))
})

/** As 0.1.0 wrote it; what 0.2.0 writes has the same fields. */
const recorded =
  'c686c4db0ee1634b111b6fd0a4089f75233503833cd825297b169486726d8995 {"version":1,"name":"certs","kind":"exchange","boot":"6fc3df41-e745-49a3-a22f-0b2848dc1f16","before":"sha256:64258066be5647a4530f1cb3b24dcbbbc35180990109cd061e60743ed078a61f","after":"sha256:456c6e38b4fd6d443ecf0e5e138d9e313daea3c9c2268d60a257f6b695506fab","owned":true,"publishedAt":1795618059057,"objects":[],"hooks":["reload"],"entries":[{"type":"directory","path":"","mode":493,"uid":0,"gid":0,"sha256":""},{"type":"file","path":"a","mode":384,"uid":0,"gid":0,"sha256":"d4735e3a265e16eee03f59718b9b5d03019c07d8b6c51f90da3a666eec13ab35"}],"attributes":null,"staging":{"name":".holdfast-254090ae56ea8af2-a91bc77363433916","staged":"10020869","old":"10020866"},"history":{"keep":3,"maxAge":null,"hooks":["reload"],"generations":[{"name":".holdfast-254090ae56ea8af2.1-a91bc77363433916","sequence":1,"digest":"sha256:64258066be5647a4530f1cb3b24dcbbbc35180990109cd061e60743ed078a61f","publishedAt":1795618059001,"replacedAt":1795618059055,"why":"published","objects":[]}]},"requires":["history"],"place":{"within":"/tmp/compat-i4qiIy/certs","parent":{"inode":"10020864","birth":"1795618058976459405"},"target":{"inode":"10020869","birth":"1795618059052459409"}}}\n' +
  '814c65aa7a135cfe9e65776a61032a4437813699b45d16b8af7fcc2b32a3c774 {"settled":true}\n'

await t.test('parseRecord reads the records of 0.1.0 and 0.2.0 as a whole', async (t) => {
  const read = parseRecord(recorded, 'certs', 2, '6fc3df41-e745-49a3-a22f-0b2848dc1f16')
  t.match(read, { committed: true, owned: true, pendingHooks: ['reload'], sequence: 2 })
  t.match(read?.history, { keep: 3, maxAge: null, generations: [{ sequence: 1, why: 'published' }] })
  t.strictSame(read?.place.target, { inode: '10020869', birth: '1795618059052459409' })
})
