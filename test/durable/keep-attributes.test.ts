/** `attributes: keep`: mode and owner of existing entries are the administrator's, and a change of them is no drift. */
import { chmodSync, chownSync, existsSync, readFileSync, readlinkSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import t from 'tap'
import { history, replaceDirectory as replaceInCore } from '../../src/durable/index.js'
import { PlannedTree } from '../../src/durable/publish/planned-tree.js'
import { readPublication, replaceDirectory, replaceFile, verifyDirectory } from '../../src/index.js'
import { contents, scratch, scratchWith } from './scratch.js'
import { planFor } from './plan.js'

const asRoot = process.geteuid?.() === 0
const user = process.geteuid?.() ?? 0

/** Mode and owner, as `640 12:34`. */
function attributesOf(path: string): string {
  const { mode, uid, gid } = statSync(path)
  return `${(mode & 0o7777).toString(8)} ${uid}:${gid}`
}

/** What an administrator does; without root, the mode alone. */
function give(path: string, mode: number, [uid, gid]: readonly [number, number]): string {
  if (asRoot) chownSync(path, uid, gid)
  chmodSync(path, mode)
  return attributesOf(path)
}

await t.test('a plan closes its streams, and calls close on nothing else', async (t) => {
  const stream = Readable.from(['x'])
  const planned = PlannedTree.ofDirectory(planFor('/target', { files: { a: 'in memory', b: stream, 'sub/c': '' } }), {
    uid: 0,
    gid: 0,
  })
  const closing = planned.close().then(
    () => 'closed',
    () => 'fails',
  )
  t.equal(await closing, 'closed')
  t.ok(stream.destroyed)
})

await t.test('each existing entry keeps its mode and owner; a new one gets those of the target', async (t) => {
  const target = join(scratch(t), 'target')
  const replace = (files: Record<string, string>) =>
    replaceDirectory(target, { attributes: 'keep', fileMode: 0o604, files })
  t.equal((await replace({ a: '1', 'sub/b': '1', gone: '1' })).outcome, 'created')
  t.equal(attributesOf(join(target, 'a')), `604 ${user}:${process.getegid?.() ?? 0}`)
  const [root, a, sub] = [
    give(target, 0o750, [12, 34]),
    give(join(target, 'a'), 0o640, [12, 35]),
    give(join(target, 'sub'), 0o2710, [13, 34]),
  ]
  const first = await replace({ a: '2', 'sub/b': '1', 'new/c': '3', gone: '1' })
  t.equal(first.outcome, 'replaced')
  t.same(contents(target), { a: '2', 'sub/b': '1', 'new/c': '3', gone: '1' })
  t.strictSame([target, join(target, 'a'), join(target, 'sub')].map(attributesOf), [root, a, sub])
  const owner = asRoot ? '12:34' : root.split(' ')[1]
  t.strictSame([join(target, 'new'), join(target, 'new/c')].map(attributesOf), [`750 ${owner}`, `604 ${owner}`])
  t.equal((await replace({ a: '2', 'sub/b': '1', 'new/c': '3', gone: '1' })).digest, first.digest)
  chmodSync(join(target, 'a'), 0o4755)
  await t.rejects(replace({ a: '3' }), {
    reason: 'TargetUnfit',
    published: false,
    path: join(target, 'a'),
    message: /a has mode 4755, .* at most 0777; .*\(chmod 0755\)/,
  })
  t.equal(contents(target).a, '2')
})

await t.test('a change of mode or owner is no drift; one of the content is', async (t) => {
  const target = join(scratch(t), 'target')
  const options = { files: { a: '1', 'sub/b': '1' }, attributes: 'keep' } as const
  const { digest } = await replaceDirectory(target, options)
  const changed = [give(target, 0o700, [12, 34]), give(join(target, 'a'), 0o444, [12, 34])]
  const intact = { intact: true, digest, actual: digest, differences: [] }
  t.match(await verifyDirectory(target), intact)
  t.match(await readPublication(target), { durable: true, settled: true })
  const inode = statSync(target).ino
  t.match(await replaceDirectory(target, options), { outcome: 'unchanged', digest }, 'as the record names it')
  t.equal(statSync(target).ino, inode)
  t.strictSame([attributesOf(target), attributesOf(join(target, 'a'))], changed)
  chmodSync(join(target, 'a'), 0o644)
  writeFileSync(join(target, 'a'), 'x')
  t.match(await verifyDirectory(target), { intact: false, differences: [{ path: 'a', problem: 'content' }] })
  t.equal((await replaceDirectory(target, options)).outcome, 'replaced')
  t.equal(attributesOf(join(target, 'a')).slice(0, 3), '644', 'what drifted is repaired with the mode that it has')
})

await t.test('who no longer keeps them has them set, and who begins to need not publish', async (t) => {
  const target = join(scratch(t), 'target')
  const files = { a: '1' }
  await replaceDirectory(target, { files })
  t.equal((await replaceDirectory(target, { files, attributes: 'keep' })).outcome, 'unchanged')
  give(join(target, 'a'), 0o640, [12, 34])
  t.match(await verifyDirectory(target), { intact: true }, 'the record says whose they are')
  t.equal((await replaceDirectory(target, { files })).outcome, 'replaced')
  t.equal(attributesOf(join(target, 'a')), `600 ${user}:${process.getegid?.() ?? 0}`)
  give(join(target, 'a'), 0o640, [12, 34])
  t.match(await verifyDirectory(target), { intact: false, differences: [{ path: 'a', problem: 'mode' }] })
})

await t.test('a file, with content from a stream; and the form symlink', async (t) => {
  const [root, file] = scratchWith(t, 'file')
  await replaceFile(file, 'old', { mode: 0o600 })
  const kept = give(file, 0o640, [12, 34])
  const stream = Readable.from([Buffer.alloc(700_000, 'a'), Buffer.alloc(700_000, 'b')])
  t.match(await replaceFile(file, stream, { attributes: 'keep' }), { outcome: 'replaced' })
  t.equal(readFileSync(file).length, 1_400_000)
  t.equal(attributesOf(file), kept)

  const target = join(root, 'links')
  const replace = (a: string) => replaceDirectory(target, { files: { a }, publish: 'symlink', attributes: 'keep' })
  await replace('1')
  const own = give(target, 0o700, [12, 34])
  const a = give(join(target, readlinkSync(join(target, '..data')), 'a'), 0o640, [12, 34])
  t.match(await verifyDirectory(target), { intact: true })
  t.equal((await replace('1')).outcome, 'unchanged')
  t.equal((await replace('2')).outcome, 'replaced')
  t.strictSame([attributesOf(target), attributesOf(join(target, 'a'))], [own, a])
  t.match(await verifyDirectory(target), { intact: true })
})

await t.test('an entry keeps its mode, user or group where that alone has changed', async (t) => {
  const file = join(scratch(t), 'file')
  const group = process.getegid?.() ?? 0
  let text = 0
  for (const [mode, owner] of [
    [0o640, [user, group]],
    [0o600, [12, group]],
    [0o600, [user, 34]],
  ] as const) {
    await replaceFile(file, String(text++), { mode: 0o600 })
    const kept = give(file, mode, owner)
    await replaceFile(file, String(text++), { mode: 0o600, attributes: 'keep' })
    t.equal(attributesOf(file), kept)
  }
})

await t.test("the library's replaceFile keeps what the caller does not name, and makes no directories", async (t) => {
  const [root, file] = scratchWith(t, 'file')
  const own = `${user}:${process.getegid?.() ?? 0}`
  writeFileSync(file, 'old')
  const kept = give(file, 0o644, [1000, 1000])
  const owner = kept.slice(4)
  await replaceFile(file, 'new')
  t.equal(attributesOf(file), kept, 'neither is named')
  give(file, 0o640, [1000, 1000])
  t.match(await verifyDirectory(file), { intact: true }, 'and a change of them is no drift')
  await replaceFile(file, 'newer', { mode: 0o604 })
  t.equal(attributesOf(file), `604 ${owner}`, 'the mode is named')
  t.match(await replaceFile(file, 'newer', { mode: 0o604 }), { outcome: 'unchanged' })
  const [uid = 0, gid = 0] = own.split(':').map(Number)
  give(file, 0o4755, [1000, 1000])
  await t.rejects(replaceFile(file, 'x'), { reason: 'TargetUnfit', published: false, message: /has mode 4755/ })
  await replaceFile(file, 'x', { mode: 0o600 })
  give(file, 0o640, [1000, 1000])
  await replaceFile(file, 'y', { owner: { uid, gid } })
  t.equal(
    attributesOf(file),
    `${asRoot ? 600 : 640} ${own}`,
    'the owner is named, and the former one may have set the mode',
  )
  give(file, 0o640, [1000, 1000])
  await replaceFile(file, 'z', { attributes: 'set' })
  t.equal(attributesOf(file), `600 ${own}`, 'the defaults, for a caller that asks for them')

  const below = join(root, 'typo/file')
  const refused = {
    code: 'ENOENT',
    reason: 'TargetUnfit',
    published: false,
    message: /typo does not exist, .*parents: true/,
  }
  await t.rejects(replaceFile(below, 'x'), refused)
  t.notOk(existsSync(join(root, 'typo')))
  t.match(await replaceFile(below, 'x', { parents: true }), { outcome: 'created' })
  t.equal(attributesOf(below), `600 ${own}`)
})

await t.test('an entry of another type, or a missing one, passes nothing on', async (t) => {
  const planned = PlannedTree.ofFile(Buffer.from('1'), 0o600, { uid: 1, gid: 2 })
  t.throws(() => planned.tree, 'before it is read')
  await planned.read()
  const { digest } = planned.tree
  const directory = { type: 'directory', path: '', mode: 0o755, uid: 12, gid: 34, sha256: '' } as const
  for (const found of [undefined, { entries: [], digest: '' }, { entries: [directory], digest: '' }]) {
    await planned.keep('/target', found)
    t.match(planned.root, { mode: 0o600, owner: { uid: 1, gid: 2 } })
    t.equal(planned.tree.digest, digest)
  }
})

await t.test(
  'earlier contents keep their attributes, and a rollback gives them the present mode and owner',
  async (t) => {
    const target = join(scratch(t), 'target')
    const replace = (a: string) =>
      replaceInCore(target, { files: { a }, attributes: 'keep', history: { keep: 3, maxAge: null } })
    await replace('1')
    give(join(target, 'a'), 0o640, [12, 34])
    await replace('2')
    const now = give(join(target, 'a'), 0o444, [13, 34])
    t.match(await history.read(target), [{ state: 'present' }, { state: 'whole' }])
    await history.rollBack(target, { pin: { reason: 'test', until: 'released' } })
    t.same(contents(target), { a: '1' })
    t.equal(attributesOf(join(target, 'a')), now)
    t.match(await verifyDirectory(target), { intact: true })
  },
)
