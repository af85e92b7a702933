import fc from 'fast-check'
import t from 'tap'
import { inheritedList, listWithMode, modeByList, namedIn, writersBy } from '../../../src/durable/path/access-list.js'
import { holds } from '../../property.js'

const tags = { owner: 0x01, user: 0x02, group: 0x04, namedGroup: 0x08, mask: 0x10, other: 0x20 } as const

type Row = readonly [tag: keyof typeof tags, permissions: number, id?: number | undefined]

function list(...rows: readonly Row[]): Uint8Array {
  const bytes = Buffer.alloc(4 + 8 * rows.length)
  bytes.writeUInt32LE(2)
  rows.forEach(([tag, permissions, id = 0xffffffff], index) => {
    bytes.writeUInt16LE(tags[tag], 4 + 8 * index)
    bytes.writeUInt16LE(permissions, 6 + 8 * index)
    bytes.writeUInt32LE(id, 8 + 8 * index)
  })
  return bytes
}

const same = (a: Uint8Array | undefined, b: Uint8Array): boolean => a !== undefined && Buffer.compare(a, b) === 0

await t.test('a mode is what the list says of owner, owning group and others, and not its mask', async (t) => {
  const opened = list(['owner', 6], ['user', 4, 1000], ['group', 0], ['mask', 4], ['other', 0])
  t.equal(modeByList(opened, 0o4640), 0o4600)
  t.equal(modeByList(undefined, 0o640), 0o640)
  t.equal(
    modeByList(list(['owner', 0o16], ['group', 0o14], ['other', 0o10]), 0),
    0o640,
    'of each no more than three bits',
  )
  const another = Buffer.concat([Buffer.from([9]), opened.subarray(1)])
  for (const bytes of [Buffer.alloc(0), Buffer.from([9, 0, 0, 0]), another, opened.subarray(0, 11)]) {
    t.equal(modeByList(bytes, 0o640), 0o640, 'no list of this version')
    t.equal(inheritedList(bytes, 0o640), undefined)
  }
  const shifted = Buffer.concat([Buffer.from('x'), opened]).subarray(1)
  t.equal(modeByList(shifted, 0o640), 0o600, 'in the middle of a buffer')
})

await t.test('a new mode changes these three entries alone', async (t) => {
  const permissions = fc.integer({ min: 0, max: 7 })
  const id = fc.integer({ min: 0, max: 0xfffffffe })
  const rows = fc
    .tuple(permissions, fc.array(fc.tuple(id, permissions)), permissions, permissions, permissions)
    .map(([owner, users, group, mask, other]): Row[] => [
      ['owner', owner],
      ...users.map(([user, may]): Row => ['user', may, user]),
      ['group', group],
      ['mask', mask],
      ['other', other],
    ])
  const mode = fc.integer({ min: 0, max: 0o7777 })
  const rule = fc.property(rows, mode, mode, (before, asked, now) => {
    const after = listWithMode(list(...before), asked)
    const parts = { owner: asked >> 6, group: asked >> 3, other: asked } as Partial<Record<Row[0], number>>
    const expected = before.map(([tag, may, who]): Row => [tag, (parts[tag] ?? may) & 7, who])
    return (
      same(after, list(...expected)) &&
      modeByList(after, now) === ((now & 0o7000) | (asked & 0o777)) &&
      same(listWithMode(after, modeByList(list(...before), 0)), list(...before))
    )
  })
  await holds(t, 'named entries and the mask stay', rule)
})

await t.test("a default list opens a new entry to no user beyond its mode's group bits", async (t) => {
  const rows: Row[] = [
    ['owner', 7],
    ['user', 5, 1000],
    ['group', 5],
    ['mask', 5],
    ['other', 5],
  ]
  const opened = list(...rows)
  const key = list(['owner', 6], ['user', 5, 1000], ['group', 0], ['mask', 0], ['other', 0])
  t.ok(same(inheritedList(opened, 0o600), key))
  t.strictSame(namedIn(key), [])
  const shared = list(['owner', 6], ['user', 5, 1000], ['group', 4], ['mask', 4], ['other', 0])
  t.ok(same(inheritedList(opened, 0o640), shared))
  t.strictSame(namedIn(shared), ['user:1000:r--'])
  const odd = list(['owner', 7], ['user', 7, 1], ['group', 7], ['mask', 6], ['other', 5])
  t.ok(same(inheritedList(odd, 0o630), list(['owner', 6], ['user', 7, 1], ['group', 3], ['mask', 2], ['other', 0])))
  t.equal(inheritedList(list(['owner', 7], ['group', 5], ['other', 5]), 0o640), undefined, 'the mode says all')
})

await t.test('whom a list lets in, within its mask', async (t) => {
  const rows: Row[] = [
    ['owner', 6],
    ['user', 6, 7],
    ['user', 1, 8],
    ['group', 7],
    ['namedGroup', 7, 9],
    ['mask', 6],
    ['other', 4],
  ]
  t.strictSame(namedIn(list(...rows)), ['user:7:rw-', 'group:9:rw-'])
  t.strictSame(
    writersBy(list(...rows)).map(({ kind, id }) => `${kind} ${id}`),
    ['user 7', 'group 9'],
  )
  t.strictSame(writersBy(list(['user', 5, 7], ['mask', 7])), [], 'who may read and execute alone')
  t.strictSame(writersBy(list(['user', 7, 7], ['mask', 5])), [], 'beyond its mask')
  t.strictSame(namedIn(list(['user', 1, 7])), ['user:7:--x'], 'without a mask')
})

await t.test('bytes that are no list say nothing', async (t) => {
  const answer = (ask: () => unknown): unknown => {
    try {
      return ask()
    } catch {
      return 'thrown'
    }
  }
  const bytes = list(['owner', 7], ['mask', 7], ['other', 7])
  const otherVersion = Buffer.from(bytes)
  otherVersion.writeUInt32LE(3)
  for (const none of [otherVersion, bytes.subarray(0, 3), bytes.subarray(0, -1)]) {
    t.equal(
      answer(() => modeByList(none, 0o640)),
      0o640,
    )
    t.equal(
      answer(() => inheritedList(none, 0o640)),
      undefined,
    )
    t.strictSame(
      answer(() => namedIn(none)),
      [],
    )
    t.strictSame(
      answer(() => writersBy(none)),
      [],
    )
  }
})
