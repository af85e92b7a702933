/** Whose the entry under a staging name is after a kill: the disk compared with the claims of the records. */
import { lstatSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Attributes } from '../../src/durable/file-system.js'
import { namesFor } from '../../src/durable/path/names.js'
import { claimOf, quarantineForeign, type StagingClaims } from '../../src/durable/keep/quarantine.js'
import type { Tree, TreeEntry } from '../../src/durable/path/tree.js'
import { silent } from '../../src/log.js'
import { intercepted } from './intercepted.js'
import { scratch } from './scratch.js'

const names = namesFor('certs')
const random = '0123456789abcdef'
const name = names.staging(random)

type Put = (path: string) => void
const empty: Put = (path) => mkdirSync(path)
const filled: Put = (path) => {
  mkdirSync(path)
  writeFileSync(join(path, 'a'), '')
}
const file: Put = (path) => writeFileSync(path, '')
/** The file of `filled`, as a record lists it. */
const sha256OfNothing = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
const a = { path: 'a', type: 'file', sha256: sha256OfNothing } as TreeEntry
const none = undefined

type Claim = Omit<StagingClaims[number], 'boot' | 'staging'>
const replacing: Claim = { before: 'old', after: 'new', entries: [a] }
const first: Claim = { ...replacing, before: null }
const removing: Claim = { ...first, removing: { since: 0 } }
const another: Claim = { before: 'x', after: 'y', entries: [] }

interface Row {
  readonly what: string
  readonly put: Put
  /** The claim of the record, and whose number the entry has. */
  readonly claim: Claim | undefined
  readonly number?: 'staged' | 'old'
  readonly known?: readonly TreeEntry[]
  readonly more?: readonly Claim[]
  readonly isOwn: boolean
}

const rows: readonly Row[] = [
  { what: 'nothing', put: () => undefined, claim: replacing, isOwn: true },
  { what: 'what no record names', put: file, claim: none, isOwn: true },
  { what: 'what was staged', put: filled, claim: replacing, number: 'staged', isOwn: true },
  { what: 'another directory', put: filled, claim: replacing, isOwn: false },
  { what: 'another file', put: file, claim: replacing, isOwn: false },
  { what: 'old content of which no record tells', put: filled, claim: replacing, number: 'old', isOwn: true },
  { what: 'old content as it was read', put: filled, claim: replacing, number: 'old', known: [a], isOwn: true },
  { what: 'old content with more in it', put: filled, claim: replacing, number: 'old', known: [], isOwn: false },
  {
    what: 'old content with more in it than it was published with',
    put: filled,
    claim: replacing,
    number: 'old',
    more: [another, { ...another, after: 'old' }],
    isOwn: false,
  },
  {
    what: 'old content as it was published',
    put: filled,
    claim: replacing,
    number: 'old',
    more: [another, { ...replacing, after: 'old' }],
    isOwn: true,
  },
  { what: 'old content without a digest', put: filled, claim: first, number: 'old', known: [a], isOwn: true },
  { what: 'what is being removed', put: filled, claim: removing, number: 'old', isOwn: true },
  { what: 'what has the number of a link that it replaced', put: empty, claim: first, number: 'old', isOwn: false },
]

await t.test('quarantineForeign renames a foreign entry durably, and no other', async (t) => {
  const parent = scratch(t)
  const syncs: string[] = []
  const { fs } = intercepted((call) => {
    if (call === 'sync') syncs.push(call)
  })
  const directory = await fs.openPath(parent)
  const boot = await fs.bootId()
  const area = { fs, parent: directory, path: join(parent, 'certs'), names, log: silent }
  for (const { what, put, claim, number, known, more = [], isOwn } of rows) {
    const path = join(parent, name)
    put(path)
    const inode = `${lstatSync(path, { bigint: true, throwIfNoEntry: false })?.ino}`
    const staging = {
      name,
      staged: '1',
      old: '2',
      ...(number && { [number]: inode }),
      ...(known && { entries: known }),
    }
    const records = [...(claim ? [{ ...claim, boot, staging }] : []), ...more.map((one) => ({ ...one, boot }))]
    syncs.length = 0
    t.same(await quarantineForeign(area, [random], [], records).catch(String), isOwn ? [random] : [], what)
    t.same(readdirSync(parent), what === 'nothing' ? [] : [isOwn ? name : names.quarantine(random)], what)
    t.equal(syncs.length, isOwn ? 0 : 1, what)
    for (const left of readdirSync(parent)) rmSync(join(parent, left), { recursive: true })
  }
  await fs.close(directory)
})

await t.test('the record of a removal names what goes', async (t) => {
  const attributes = { inode: 7n } as Attributes
  const tree: Tree = { entries: [{ ...a, mode: 0o600, uid: 0, gid: 0 }], digest: '' }
  const entries = [a]
  t.same(claimOf(name, { attributes, tree, opened: undefined }), { name, staged: '7', old: 'none' })
  t.same(claimOf(name, { attributes, tree, opened: 3 }), { name, staged: '7', old: '7', entries })
})
