import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { DurableCalls } from '../../../src/durable/single-calls/durable-calls.js'
import { namesFor } from '../../../src/durable/path/names.js'
import { failure, intercepted } from '../intercepted.js'
import { contents, kept, scratch, scratchWith } from '../scratch.js'

const never = undefined

/** A disk that notes its calls; the `nth` call of this name fails. */
function watched(failing = '', nth = 1): { durable: DurableCalls; calls: string[]; open: Set<number> } {
  const calls: string[] = []
  const { fs, open } = intercepted((call) => {
    calls.push(call)
    if (call === failing && calls.filter((other) => other === call).length === nth) throw failure('EIO', call)
  })
  return { durable: new DurableCalls(fs), calls, open }
}

const inOrder = (calls: readonly string[], ...wanted: string[]): string =>
  calls.filter((call) => wanted.includes(call)).join()

/** Staging of this path that a predecessor left. */
function leave(path: string): string {
  const left = join(dirname(path), namesFor(path.slice(path.lastIndexOf('/') + 1)).staging('0123456789abcdef'))
  mkdirSync(left)
  writeFileSync(join(left, 'old'), '')
  return left
}

async function rejected(t: Test, work: Promise<unknown>, published: boolean, path: string): Promise<void> {
  await t.rejects(work, { name: 'DurableWriteError', code: 'EIO', published, message: new RegExp(path) })
}

await t.test(
  'replaceLink makes or replaces a link in one rename, durably, and leaves other entries alone',
  async (t) => {
    const [parent, path] = scratchWith(t, 'link')
    const { durable, calls, open } = watched()
    const left = leave(path)
    const bystander = join(parent, 'bystander')
    writeFileSync(bystander, 'kept')
    await durable.replaceLink(path, 'one')
    t.equal(readlinkSync(path), 'one')
    t.equal(inOrder(calls, 'createLink', 'rename', 'sync', 'createFile'), 'createLink,rename,sync,createFile')
    t.notOk(existsSync(left), 'what a predecessor left has gone')
    t.same(readdirSync(parent).sort(), ['bystander', 'link'])
    const before = calls.length
    await durable.replaceLink(path, 'one')
    t.equal(inOrder(calls.slice(before), 'createLink', 'rename', 'sync'), 'sync', 'the same is only made durable')
    await durable.replaceLink(path, 'two')
    t.equal(readlinkSync(path), 'two')
    await durable.replaceLink(bystander, 'three')
    t.equal(readlinkSync(bystander), 'three', 'a file is replaced')
    mkdirSync(join(parent, 'directory'))
    await t.rejects(durable.replaceLink(join(parent, 'directory'), 'x'), {
      code: 'EEXIST',
      reason: 'TargetForeign',
      published: false,
    })
    t.ok(lstatSync(join(parent, 'directory')).isDirectory())
    t.equal(open.size, 0)
  },
)

await t.test('replaceLink says whether the new link is visible when a call fails', async (t) => {
  const parent = scratch(t)
  for (const [call, published] of [
    ['createLink', false],
    ['rename', false],
    ['sync', true],
    ['createFile', true],
  ] as const) {
    const path = join(parent, call)
    await rejected(t, watched(call).durable.replaceLink(path, 'x'), published, path)
    t.equal(existsSync(dirname(path)) && readdirSync(parent).includes(call), published, call)
  }
})

await t.test('removeFile: durable whether it was there or not', async (t) => {
  const parent = scratch(t)
  const path = join(parent, 'pod.yaml')
  writeFileSync(path, '')
  const { durable, calls, open } = watched()
  t.equal(await durable.removeFile(path), true)
  t.notOk(existsSync(path))
  t.equal(inOrder(calls, 'removeFile', 'sync'), 'removeFile,sync')
  t.equal(await durable.removeFile(path), false)
  t.equal(inOrder(calls, 'removeFile', 'sync'), 'removeFile,sync,sync', 'a predecessor may not have come to its sync')
  t.equal(open.size, 0)
  writeFileSync(path, '')
  await rejected(t, watched('removeFile').durable.removeFile(path), false, path)
  t.ok(existsSync(path))
  await rejected(t, watched('sync').durable.removeFile(path), true, path)
  t.notOk(existsSync(path))
})

await t.test(
  'tidy removes the leftovers of a killed publication under the lock, and does not wait for it',
  async (t) => {
    const [parent, path] = scratchWith(t, 'link')
    const { durable, open } = watched()
    await durable.tidy(path)
    t.same(kept(parent), [], 'where nothing is left, not even a lock is made')
    const left = leave(path)
    const other = leave(join(parent, 'other'))
    const held = await durable.lock(join(parent, namesFor('link').lock), 0, never)
    await durable.tidy(path)
    t.ok(existsSync(left), 'a publication is under way')
    await held.release()
    await durable.tidy(path)
    t.notOk(existsSync(left))
    t.ok(existsSync(other), 'of another name')
    await durable.tidy(join(parent, 'none', 'link'))
    t.equal(open.size, 0)
  },
)

await t.test('what cannot be looked at was not changed, and the error says so; nothing stays open', async (t) => {
  const [parent, path] = scratchWith(t, 'file')
  const request = { path, content: Buffer.from('1'), options: {} }
  const { durable, open } = watched()
  t.match(await durable.previewFile(request), { outcome: 'created' })
  t.equal(open.size, 0)
  const asked: [string, (durable: DurableCalls) => Promise<unknown>, string][] = [
    ['list', (durable) => durable.previewFile(request), 'read'],
    ['openPath', (durable) => durable.realPath(path), 'read'],
    ['list', (durable) => durable.isCommitted(path), 'read'],
    ['list', (durable) => durable.inDirectory(parent, (directory) => durable.fs.list(directory)), 'work in'],
  ]
  for (const [call, ask, doing] of asked) {
    const { durable, open } = watched(call)
    const message = new RegExp(`^could not ${doing} `)
    await t.rejects(ask(durable), { name: 'DurableWriteError', code: 'EIO', published: false, message })
    t.equal(open.size, 0)
  }
  const left = leave(path)
  t.match(await durable.previewFile(request), { outcome: 'created' })
  t.ok(existsSync(left), 'whoever only looks removes nothing')
  await t.rejects(watched('openLock').durable.tidy(path), { code: 'EIO', message: /could not lock/ })
})

await t.test('difference and realPath look, and make nothing', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  const { durable, open } = watched()
  const request = { target, files: { a: '1', b: '2', c: '3' } }
  t.ok(
    await durable
      .difference(request)
      .then(({ exists }) => !exists)
      .catch(() => false),
    'it is answered',
  )
  t.same(readdirSync(parent), [])
  const published = durable.publishDirectories([request], never)
  t.ok(await published.then(([result]) => result?.outcome === 'created').catch(() => false), 'it is published')
  const same = await durable.difference(request)
  t.same({ exists: same.exists, changes: same.changes }, { exists: true, changes: [] })
  const { changes } = await durable.difference({ target, files: { a: '1', b: 'other', d: '4' } })
  t.same(changes, [
    { path: 'b', change: 'change' },
    { path: 'd', change: 'add' },
    { path: 'c', change: 'remove' },
  ])
  t.same(contents(target), request.files)
  writeFileSync(join(parent, 'file'), '')
  await t.rejects(durable.difference({ target: join(parent, 'file'), files: {} }), {
    code: 'ENOTDIR',
    published: false,
  })
  symlinkSync('certs', join(parent, 'alias'))
  t.equal(await durable.realPath(join(parent, 'alias', 'new', 'x')), join(realpathSync(parent), 'certs', 'new', 'x'))
  t.equal(open.size, 0, 'nothing stays open')
})

await t.test('isCommitted and isDrifted say what the record proves', async (t) => {
  const target = join(scratch(t), 'certs')
  const { durable } = watched()
  t.same([await durable.isCommitted(target), await durable.isDrifted(target)], [undefined, undefined])
  const object = { kind: 'Secret', namespace: 'n', name: 's', uid: 'u', resourceVersion: '7', paths: ['a'] }
  t.same(await durable.recordedObjects(target), [])
  await durable.publishDirectories([{ target, files: { a: '1' }, objects: [object] }], never)
  t.same([await durable.isCommitted(target), await durable.isDrifted(target)], [true, false])
  t.same(await durable.recordedObjects(target), [object])
  // It becomes visible, perhaps not durably.
  await rejected(t, watched('sync', 2).durable.publishDirectories([{ target, files: { a: '2' } }], never), true, target)
  t.same(contents(target), { a: '2' })
  t.same([await durable.isCommitted(target), await durable.isDrifted(target)], [false, false])
  writeFileSync(join(target, 'a'), 'edited')
  t.same([await durable.isCommitted(target), await durable.isDrifted(target)], [false, true])
})

await t.test('syncTree: every file and directory below, the directory’s own name, and its ancestors', async (t) => {
  const parent = scratch(t)
  mkdirSync(join(parent, 'tree', 'deep'), { recursive: true })
  for (const name of ['tree/a', 'tree/deep/b']) writeFileSync(join(parent, name), '')
  const synced: string[] = []
  const { fs, open } = intercepted((call, args) => {
    if (call !== 'sync') return
    for (const fd of args[0] as number[]) synced.push(readlinkSync(`/proc/self/fd/${fd}`))
  })
  await new DurableCalls(fs).syncTree(join(parent, 'tree'))
  t.same(
    synced.filter((path) => path.startsWith(parent)).sort(),
    ['', '/tree', '/tree/a', '/tree/deep', '/tree/deep/b'].map((path) => `${parent}${path}`),
  )
  t.ok(synced.includes(dirname(parent)))
  t.equal(open.size, 0)
  await rejected(t, watched('sync').durable.syncTree(join(parent, 'tree')), true, parent)
})
