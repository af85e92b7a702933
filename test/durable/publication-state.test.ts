/** The state of a publication: its record compared with the disk, and no more than the record says. */
import { chmodSync, mkdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { FileSystem } from '../../src/durable/file-system.js'
import { formDifferences, publicationIn, readRecord, readPublishedFiles } from '../../src/durable/look/inspect.js'
import { TargetSnapshot } from '../../src/durable/look/snapshot.js'
import { namesFor } from '../../src/durable/path/names.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { compare, encodeRecord, recordBody, type StoredRecord } from '../../src/durable/record/record.js'
import type { TreeEntry } from '../../src/durable/path/tree.js'
import type { Generation, Hold, Pin, Publication } from '../../src/durable/types.js'
import { codeOf } from '../../src/errors.js'
import { failure, intercepted } from './intercepted.js'
import { committed, parent, record, target, within } from './judge-rows.js'
import { valueOf } from './judgements.js'
import { scratch, scratchWith } from './scratch.js'

const clock = 1000
/** Its clock stands still. */
class Here extends NodeFileSystem {
  override now(): number {
    return clock
  }
}
const names = namesFor('certs')
const random = '0123456789abcdef'
const hold: Hold = { reason: '', since: 0, until: clock + 1 }
const pin: Pin = { reason: '', since: 0, until: clock + 1, from: [], digest: 'b' }

/** The state of `certs` in this directory by these records, newest first. */
async function said(root: string, records: readonly StoredRecord[], fs: FileSystem = new Here()) {
  const parent = await fs.openPath(root)
  const failed = (): Partial<Publication> => ({ path: 'it fails' })
  const saying = publicationIn(new TargetSnapshot(fs, join(root, 'certs'), parent, 'certs', records)).then(
    (found) => found?.state,
    failed,
  )
  return saying.finally(() => fs.close(parent))
}

await t.test('publicationIn of a record with nothing but the content answers nothing else', async (t) => {
  const root = scratch(t)
  t.equal(await said(root, []), undefined)
  const first = {
    path: join(root, 'certs'),
    sequence: 1,
    digest: 'a',
    actual: undefined,
    settled: true,
    durable: false,
  }
  const plain = { ...first, publishedAt: new Date(0), objects: [], pendingHooks: [], differences: [] }
  t.strictSame(await said(root, [record(1, null, 'a', committed)]), plain)
  const over = { hold: { ...hold, until: clock }, pin: { ...pin, until: clock } }
  t.strictSame(await said(root, [record(1, null, 'a', { ...committed, ...over })]), plain, 'what is over is not said')
  const relocation = { from: '/was', since: 1, state: 'both', as: 'removed' } as const
  const words = { hold, pin, relocation, movedTo: '/is' }
  const all = { ...committed, ...words, removing: { since: 1 } }
  t.strictSame(await said(root, [record(1, null, 'a', all)]), { ...plain, ...words, removing: true })
})

await t.test('publicationIn reports old content while it is there, and since when', async (t) => {
  const root = scratch(t)
  const generation = (sequence: number): Generation => ({
    name: names.generation(sequence, random),
    sequence,
    digest: 'a',
    why: 'published',
    objects: [],
    publishedAt: sequence,
    replacedAt: 10 * sequence,
  })
  const history = { keep: 3, maxAge: null, generations: [3, 2, 1].map(generation) }
  const name = names.staging(random)
  const tell = async (inode: string): Promise<Partial<Publication> | undefined> => {
    const retired = [{ name, inode, until: 7, entries: [] }]
    const { pastSince, retired: stays } = (await said(root, [record(4, null, 'b', { history, retired })])) ?? {}
    return { ...(pastSince && { pastSince }), ...(stays && { retired: stays }) }
  }
  t.strictSame(await tell('1'), {})
  for (const [sequence, since] of [
    [3, 30],
    [1, 10],
    [2, 10],
  ] as const) {
    mkdirSync(join(root, names.generation(sequence, random)))
    t.strictSame(await tell('1'), { pastSince: new Date(since) }, 'the oldest that is there')
  }
  mkdirSync(join(root, name))
  t.strictSame(await tell(`${statSync(join(root, name)).ino}`), { pastSince: new Date(10), retired: true })
  t.strictSame(await tell('1'), { pastSince: new Date(10) }, 'somebody else’s under that name')
})

await t.test(
  'the record that fits the disk speaks, else the newest; inodes count for as long as they last',
  async (t) => {
    const root = scratch(t)
    mkdirSync(join(root, 'certs'))
    const digest = (await said(root, [record(1, null, 'a')]))?.actual ?? ''
    const { ino, birthtimeNs } = statSync(join(root, 'certs'), { bigint: true })
    const replaced = { inode: `${ino}`, birth: `${birthtimeNs}` }
    const aborted = record(3, digest, 'c', { place: { within, parent, target, replaced } })
    const records = [aborted, record(2, null, digest), record(1, null, 'a')]
    t.match(await said(root, records), { digest, actual: digest })
    t.match(await said(root, records.slice(0, 1)), { digest: 'c', actual: digest })
    t.match(await said(root, [record(3, digest, 'c'), ...records.slice(1)]), { digest: 'c', actual: digest }, 'drift')
    const durable = async (otherBoot: boolean, lasting: boolean) => {
      const fs = new Here()
      const mount = fs.mount.bind(fs)
      Object.assign(fs, { mount: async (one: number) => ({ ...(await mount(one)), lasting }) })
      return (await said(root, [record(1, null, digest, { trusted: true, otherBoot })], fs))?.durable
    }
    t.equal(await durable(true, false), true, 'numbers that a boot may deal out again are not asked for')
    t.equal(await durable(true, true), false, 'other inodes')
    t.equal(await durable(false, false), false, 'other inodes of this boot')
  },
)

await t.test('an entry differs in one way, the gravest', async (t) => {
  const entry: TreeEntry = { path: 'a', type: 'file', sha256: 'x', mode: 0o600, uid: 1, gid: 2 }
  const root: TreeEntry = { ...entry, path: '', type: 'directory', sha256: '' }
  const differences = (found: Partial<TreeEntry>[] | undefined, keeps?: boolean): string[] => {
    const tree = found && { digest: 'd', entries: [root, ...found.map((change) => ({ ...entry, ...change }))] }
    const recorded = { entries: [root, entry], ...(keeps !== undefined && { keepsAttributes: keeps }) }
    return compare(recorded, tree).map(({ path, problem }) => `${path} ${problem}`)
  }
  t.strictSame(differences([{}]), [])
  t.strictSame(
    valueOf(() => differences(undefined)),
    ['. missing', 'a missing'],
  )
  t.strictSame(differences([]), ['a missing'])
  t.strictSame(differences([{}, { path: 'b' }, { path: 'c' }]), ['b unexpected', 'c unexpected'])
  const changes: Partial<TreeEntry>[] = [{ gid: 3 }, { uid: 3 }, { mode: 0o640 }, { sha256: 'y' }, { type: 'symlink' }]
  const problems = ['owner', 'owner', 'mode', 'content', 'type']
  for (const [index, problem] of problems.entries()) {
    const change = changes.slice(0, index + 1).reduce((all, one) => ({ ...all, ...one }))
    t.strictSame(differences([change]), [`a ${problem}`])
    const kept = index < 3 ? [] : [`a ${problem}`]
    t.strictSame(differences([change], true), kept, 'where mode and owner are the administrator’s')
    t.strictSame(differences([change], false), [`a ${problem}`])
  }
})

/** A directory in the symlink form that holds `a`, and its differences from the record. */
async function form(t: Test, fields: Partial<StoredRecord>, root: object = {}): Promise<string[]> {
  const [directory, target] = scratchWith(t, 'certs')
  mkdirSync(join(target, `..1-${random}`), { recursive: true })
  writeFileSync(join(target, `..1-${random}`, 'a'), '')
  symlinkSync(`..1-${random}`, join(target, '..data'))
  symlinkSync('..data/a', join(target, 'a'))
  chmodSync(target, 0o750)
  const { uid, gid } = statSync(target)
  const entry = { path: 'a', type: 'file', sha256: '', mode: 0o600, uid, gid } as const
  const top = { ...entry, path: '', type: 'directory', mode: 0o750, ...root } as const
  const fs = new NodeFileSystem()
  const parent = await fs.openPath(directory)
  try {
    const marks = { kind: 'symlink', entries: [top, entry], ...fields } as const
    const found = await formDifferences(
      new TargetSnapshot(fs, target, parent, 'certs', []),
      record(1, null, 'a', marks),
    )
    return found.map(({ path, problem }) => `${path} ${problem}`)
  } finally {
    await fs.close(parent)
  }
}

await t.test(
  'mode and owner of a symlink directory itself are compared, where they are not the administrator’s',
  async (t) => {
    t.strictSame(await form(t, {}), [])
    t.strictSame(await form(t, { entries: [] }), ['a unexpected'], 'a record that says nothing of the directory')
    for (const [root, problem] of [
      [{ mode: 0o700 }, '. mode'],
      [{ uid: 4711 }, '. owner'],
      [{ gid: 4711 }, '. owner'],
      [{ mode: 0o700, uid: 4711 }, '. mode'],
    ] as const) {
      t.strictSame(await form(t, {}, root), [problem])
      t.strictSame(await form(t, { keepsAttributes: false }, root), [problem])
      t.strictSame(await form(t, { keepsAttributes: true }, root), [])
      t.strictSame(await form(t, { kind: 'exchange' }, root), [], 'of another form, its entries say all')
    }
  },
)

await t.test('readHold answers the hold or the pin in force, for any content of the target', async (t) => {
  const root = scratch(t)
  const fs = new Here()
  const word = async (fields: Partial<StoredRecord> | undefined): Promise<unknown> => {
    const file = join(root, names.record(1))
    rmSync(file, { force: true })
    const body = fields && {
      ...recordBody(record(1, null, 'a'), {}),
      ...fields,
    }
    if (body) writeFileSync(file, encodeRecord(body), { mode: 0o600 })
    return readRecord(fs, join(root, 'certs')).then(
      (said) => said?.hold,
      () => 'fails',
    )
  }
  t.equal(await word(undefined), undefined)
  t.equal(await word({}), undefined)
  t.strictSame(await word({ hold }), hold)
  t.strictSame(await word({ pin }), pin)
  t.strictSame(await word({ hold, pin }), hold)
  t.strictSame(await word({ hold: { ...hold, until: clock }, pin }), pin)
  t.equal(await word({ hold: { ...hold, until: clock }, pin: { ...pin, until: clock } }), undefined)
})

await t.test(
  'readPublishedFiles leaves missing files out, reports a failure, and leaves no descriptor open',
  async (t) => {
    const root = scratch(t)
    mkdirSync(join(root, 'certs/sub'), { recursive: true })
    writeFileSync(join(root, 'certs/sub/a'), 'x', { mode: 0o600 })
    let code = ''
    const { fs, open } = intercepted((call, [, name]) => {
      if (code !== '' && call === 'openFile' && name === 'a') throw failure(code, 'openat2')
    })
    const read = async (...paths: string[]): Promise<unknown> =>
      readPublishedFiles(fs, join(root, 'certs'), paths).catch((error: unknown) => codeOf(error) ?? 'fails')
    t.same(await read('sub/a', 'sub/b', 'none/a'), { 'sub/a': { content: Buffer.from('x'), mode: 0o600 } })
    code = 'EIO'
    t.equal(await read('sub/a'), 'EIO')
    t.equal(open.size, 0)
  },
)
