/** Removal of any entry: the meaning of each failed call, and the directories that it makes writable first. */
import { chmodSync, chownSync, existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { codeOf, failureOf } from '../../../src/errors.js'
import type { FileSystem } from '../../../src/durable/file-system.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { attempt, makeWritable, remove, removeInside } from '../../../src/durable/path/remove.js'
import { failure, intercepted } from '../intercepted.js'
import { scratch } from '../scratch.js'

const isRoot = process.geteuid?.() === 0

/** A user other than root, as far as the program can tell. */
class Owner extends NodeFileSystem {
  override readonly user = { uid: isRoot ? 4711 : (process.geteuid?.() ?? 0), gid: process.getegid?.() ?? 0 }
}

/** All calls, in order; a call of this name fails on this name, once. */
function watched(real: NodeFileSystem, fails?: { call: string; on: string; code: string }) {
  const calls: string[] = []
  let left = 1
  const { fs } = intercepted((call, args) => {
    const name = typeof args[1] === 'string' ? args[1] : ''
    calls.push(`${call} ${name}`.trim())
    if (fails?.call === call && fails.on === name && left-- > 0) throw failure(fails.code, call)
  }, real)
  return { fs, calls }
}

async function inDirectory<T>(
  fs: FileSystem,
  path: string,
  use: (directory: Awaited<ReturnType<FileSystem['openPath']>>) => Promise<T>,
): Promise<T> {
  const directory = await fs.openPath(path)
  try {
    return await use(directory)
  } finally {
    await fs.close(directory)
  }
}

/** A tree with a file at each level, and a file beside it. */
function tree(t: Test): string {
  const root = scratch(t)
  mkdirSync(join(root, 'tree/below'), { recursive: true })
  for (const name of ['file', 'tree/a', 'tree/below/b']) writeFileSync(join(root, name), '')
  return root
}

await t.test('what removing a name answers tells a directory from a failure', async (t) => {
  // The name, the errno of its removal as a file, the error, and whether a stat follows.
  const rows = [
    ['file', undefined, undefined, false],
    ['file', 'ENOENT', undefined, false],
    ['file', 'EIO', 'EIO', false],
    ['file', 'EPERM', 'EPERM', true],
    ['file', 'EISDIR', 'EISDIR', true],
    ['tree', undefined, undefined, true],
    ['tree', 'EPERM', undefined, true],
    ['tree', 'EIO', 'EIO', false],
    ['tree', 'EROFS', 'EROFS', false],
    ['nothing', undefined, undefined, false],
  ] as const
  for (const [name, code, thrown, isLookedAt] of rows) {
    const root = tree(t)
    const fails = code === undefined ? undefined : { call: 'removeFile', on: name, code }
    const { fs, calls } = watched(new NodeFileSystem(), fails)
    const error = await inDirectory(fs, root, (parent) => failureOf(remove(fs, parent, name)))
    const row = `${name}, ${code}`
    t.equal(codeOf(error), thrown, row)
    t.equal(calls.includes(`look ${name}`), isLookedAt, row)
    t.equal(existsSync(join(root, name)), thrown !== undefined || (name === 'file' && code === 'ENOENT'), row)
  }
})

await t.test('remove makes each directory writable before it lists it, and removes it after its entries', async (t) => {
  const root = tree(t)
  for (const path of ['tree', 'tree/below']) chmodSync(join(root, path), 0o555)
  if (isRoot) for (const path of ['tree', 'tree/below']) chownSync(join(root, path), 4711, -1)
  const { fs, calls } = watched(new Owner())
  await inDirectory(fs, root, (parent) => remove(fs, parent, 'tree'))
  t.notOk(existsSync(join(root, 'tree')))
  const order = calls.filter((call) => /^(setMode|list|removeDirectory)/.test(call))
  const emptied = ['setMode', 'list']
  t.strictSame(order, [...emptied, ...emptied, 'removeDirectory below', 'removeDirectory tree'])
})

await t.test(
  'a directory is opened up by its owner, where it has to be',
  { skip: !isRoot && 'needs root' },
  async (t) => {
    const root = scratch(t)
    // Its owner, its mode, and the mode that it gets.
    const rows = [
      [4711, 0o700, undefined],
      [4711, 0o755, undefined],
      [4711, 0o777, undefined],
      [4711, 0o500, 0o700],
      [4711, 0o600, 0o700],
      [4711, 0o300, 0o700],
      [4711, 0o000, 0o700],
      [4711, 0o555, 0o755],
      [4712, 0o555, undefined],
      [0, 0o000, undefined],
    ] as const
    for (const [uid, mode, becomes] of rows) {
      const path = join(root, `${uid}-${mode.toString(8)}`)
      mkdirSync(path)
      chownSync(path, uid, -1)
      chmodSync(path, mode)
      for (const [real, expected] of [
        [new NodeFileSystem(), undefined],
        [new Owner(), becomes],
      ] as const) {
        const { fs, calls } = watched(real)
        await inDirectory(fs, path, (directory) => makeWritable(fs, directory))
        t.equal(calls.includes('setMode'), expected !== undefined, path)
        t.equal(statSync(path).mode & 0o7777, expected ?? mode, path)
      }
    }
  },
)

await t.test('remove tells the failure of one entry from one of the file system', async (t) => {
  const ofTheEntry = ['ENOENT', 'EACCES', 'EPERM', 'EBUSY', 'EISDIR', 'ENOTDIR', 'ELOOP', 'ETXTBSY']
  const root = tree(t)
  const removed = (fs: FileSystem): Promise<boolean> =>
    inDirectory(fs, root, (directory) => removeInside(fs, directory, 'tree/below/b'))
  for (const code of ofTheEntry) {
    t.equal(await removed(watched(new NodeFileSystem(), { call: 'removeFile', on: 'b', code }).fs), false, code)
  }
  for (const code of ['EIO', 'EROFS', 'ENOSPC', 'EMFILE']) {
    const { fs } = watched(new NodeFileSystem(), { call: 'removeFile', on: 'b', code })
    t.equal(codeOf(await failureOf(removed(fs))), code)
  }
  t.ok(existsSync(join(root, 'tree/below/b')))
  t.equal(await removed(new NodeFileSystem()), true)
  t.notOk(existsSync(join(root, 'tree/below/b')))
})

await t.test('what may fail is logged, and left to the next run', async (t) => {
  const logged: [object, string][] = []
  const warn = (fields: object, message: string): void => void logged.push([fields, message])
  const log = { debug: warn, info: warn, error: warn, warn }
  await attempt(log, '/a', 'it stays', async () => {})
  await attempt(log, '/a', 'it stays', () => undefined)
  t.strictSame(logged, [])
  await attempt(log, '/a', 'it stays', () => Promise.reject(new Error('odd')))
  t.strictSame(logged, [[{ path: '/a', error: 'Error: odd' }, 'it stays; the next run retries']])
})
