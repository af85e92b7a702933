import { chownSync, closeSync, constants, mkdirSync, openSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { publish } from '../../../src/durable/publish/publish.js'
import { directoryPublication } from '../../../src/durable/publish/replace.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { OldMetadata, stagingMode } from '../../../src/durable/publish/stage.js'
import { setMetadata } from '../../../src/durable/path/kept-attributes.js'
import { readFileTree, readTree, type Tree } from '../../../src/durable/path/tree.js'
import { failing, intercepted } from '../intercepted.js'
import { modeOf, scratch } from '../scratch.js'

const isRoot = process.geteuid?.() === 0
const fs = new NodeFileSystem()

await t.test('a staged directory is writable by this user alone from its birth', async (t) => {
  for (const [mode, staged] of [
    [0o755, 0o755],
    [0o777, 0o755],
    [0o1777, 0o755],
    [0o2775, 0o755],
    [0o500, 0o700],
    [0o000, 0o700],
    [0o750, 0o750],
  ] as const) {
    t.equal(stagingMode(mode), staged, mode.toString(8))
  }
})

await t.test('stageTree makes directories with that mode, without a later chmod', async (t) => {
  const parent = scratch(t)
  const made: unknown[] = []
  const { fs } = intercepted((call, args) => {
    if (call === 'createDirectory') made.push(args[2])
  })
  for (const [index, form] of (['exchange', 'symlink'] as const).entries()) {
    const target = join(parent, form)
    const request = { target, files: { 'sub/a': '1' }, mode: 0o777, publish: form }
    const before = made.length
    t.match(await publish([directoryPublication(fs, request)]), [{ outcome: 'created' }])
    t.same(
      made.slice(before),
      Array.from({ length: 2 + index }, () => 0o755),
      form,
    )
    t.equal(modeOf(target), '777')
  }
})

await t.test(
  'the owner comes before the mode, whose set-user-ID bit chown(2) takes away',
  { skip: isRoot ? false : 'changing owners needs root: run by CI' },
  async (t) => {
    const path = join(scratch(t), 'file')
    writeFileSync(path, '', { mode: 0o600 })
    const file = openSync(path, constants.O_RDWR)
    t.teardown(() => closeSync(file))
    const state = (): string => `${statSync(path).uid} ${statSync(path).gid} ${modeOf(path)}`
    await setMetadata(fs, file, { target: path, mode: 0o4755, owner: { uid: 7, gid: 8 } })
    t.equal(state(), '7 8 4755')
    await setMetadata(fs, file, { target: path, mode: 0o4755, owner: { uid: 7, gid: 9 } })
    t.equal(state(), '7 9 4755', 'the group alone is another')
    await setMetadata(fs, file, { target: path, mode: 0o4755, owner: { uid: 6, gid: 9 } })
    t.equal(state(), '6 9 4755', 'the user alone is another')
    chownSync(path, 6, 9)
    t.equal(state(), '6 9 755', 'the kernel does take it away')
    await setMetadata(fs, file, { target: path, mode: 0o640, owner: { uid: 6, gid: 9 } })
    t.equal(state(), '6 9 640', 'the mode alone is another')
    await setMetadata(fs, file, { target: path, mode: 0o640 })
    t.equal(state(), '0 0 640', 'no owner means this user')
    const { changed } = await fs.attributes(file)
    await setMetadata(fs, file, { target: path, mode: 0o640, owner: { uid: 0, gid: 0 } })
    t.equal((await fs.attributes(file)).changed, changed, 'what is as it should be is not touched')
  },
)

await t.test('a label is that of the same path, else that of the nearest directory above it', async (t) => {
  const entry = (path: string, label?: string): Tree['entries'][number] => ({
    path,
    type: 'file',
    mode: 0,
    uid: 0,
    gid: 0,
    sha256: '',
    ...(label !== undefined && { label: Buffer.from(label) }),
  })
  const entries = [entry('', 'root'), entry('sub', 'of sub'), entry('sub/a', 'of a'), entry('bare')]
  const labelOf = (path: string, old: readonly Tree['entries'][number][]): Uint8Array | undefined =>
    new OldMetadata({ entries: old, digest: '' }, undefined).of(path, 'file', 0o600).label
  const of = (path: string): string => Buffer.from(labelOf(path, entries) ?? 'none').toString()
  t.equal(of('sub/a'), 'of a')
  t.equal(of('sub/b'), 'of sub')
  t.equal(of('sub/deep/c'), 'of sub')
  t.equal(of('subway'), 'root', 'a name that only begins alike')
  t.equal(of('bare'), 'root')
  t.equal(of(''), 'root')
  t.equal(new OldMetadata(undefined, undefined).of('a/b', 'file', 0o600).label, undefined)
  t.equal(labelOf('b/c', [entry('a', 'x')]), undefined)
})

await t.test('a label is set where it is another one, and nowhere else', async (t) => {
  const set: string[] = []
  class Labelled extends NodeFileSystem {
    override label(): Promise<Uint8Array> {
      return Promise.resolve(Buffer.from('now'))
    }
    override setLabel(_: number, label: Uint8Array): Promise<void> {
      set.push(Buffer.from(label).toString())
      return Promise.resolve()
    }
  }
  const path = join(scratch(t), 'file')
  writeFileSync(path, '', { mode: 0o600 })
  const file = openSync(path, constants.O_RDWR)
  t.teardown(() => closeSync(file))
  for (const label of ['now', 'other'])
    await setMetadata(new Labelled(), file, { target: path, mode: 0o600, label: Buffer.from(label) })
  t.same(set, ['other'])
})

await t.test('readTree reads the labels of all open entries, or of none', async (t) => {
  const root = scratch(t)
  mkdirSync(join(root, 'sub'))
  writeFileSync(join(root, 'sub/file'), '')
  class Labelled extends NodeFileSystem {
    override label(): Promise<Uint8Array> {
      return Promise.resolve(Buffer.from('now'))
    }
  }
  const labelled = new Labelled()
  const [opened, sub] = [await labelled.openPath(root), await labelled.openPath(join(root, 'sub'))]
  t.teardown(() => Promise.all([labelled.close(opened), labelled.close(sub)]))
  const labelsOf = ({ entries }: Tree) => entries.map(({ path, label }) => [path, label && String(label)])
  const paths = ['', 'sub', 'sub/file']
  t.same(
    labelsOf(await readTree(labelled, opened, true)),
    paths.map((path) => [path, 'now']),
  )
  t.same(
    labelsOf(await readTree(labelled, opened, false)),
    paths.map((path) => [path, undefined]),
  )
  t.same(labelsOf(await readFileTree(labelled, sub, 'file')), [['', 'now']])
})

await t.test('what cannot be kept is named by its path in the target', async (t) => {
  const path = join(scratch(t), 'file')
  writeFileSync(path, '', { mode: 0o600 })
  const file = openSync(path, constants.O_RDWR)
  t.teardown(() => closeSync(file))
  const { fs } = failing('setExtendedAttribute', 'EPERM', 'fsetxattr')
  const extended = new Map([['user.note', Buffer.from('x')]])
  for (const [inside, shown] of [
    ['', '/t'],
    ['sub/a', '/t/sub/a'],
  ] as [string, string][])
    await t.rejects(setMetadata(fs, file, { target: '/t', path: inside, mode: 0o600, extended }), {
      code: 'EPERM',
      path: shown,
    })
})
