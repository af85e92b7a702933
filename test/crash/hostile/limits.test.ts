/*
 * A file system that has no room, no inodes, or is read-only; files that may not be changed; names and amounts at the limit. Tests with a
 * mount or chattr need root: CI runs them.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { contents, kept, scratch, scratchWith } from '../../durable/scratch.js'
import { environment, executable, library } from '../syscalls/distribution.js'

const { replaceDirectory, replaceFile } = await library()
const skip = process.geteuid?.() === 0 ? false : 'needs root (mount, chattr): run by CI'
const old = { 'tls.crt': 'old', 'tls.key': 'old' }

/** A file system in memory, of the test's own. */
function tmpfs(t: Test, options: string): { at: string; remount: (options: string) => void } {
  const at = join(scratch(t), 'mounted')
  mkdirSync(at)
  execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', at])
  t.teardown(() => execFileSync('umount', ['--lazy', at]))
  return { at, remount: (changed) => execFileSync('mount', ['-o', `remount,${changed}`, at]) }
}

/** Runs the program; answers its exit code and its error. */
function holdfast(
  root: string,
  args: readonly string[],
  input = '',
): { code: number | null; error: Record<string, unknown> } {
  const command = [executable(root), ...args, '-o', 'json']
  const { status, stdout } = spawnSync(process.execPath, command, {
    env: environment,
    input,
    encoding: 'utf8',
  })
  return { code: status, error: (JSON.parse(stdout) as { error?: Record<string, unknown> }).error ?? {} }
}

/** Both forms fail with `code`; the old content stays, without a leftover. */
async function refuses(
  t: Test,
  at: string,
  files: Record<string, string>,
  code: string,
  reason: string,
): Promise<void> {
  const target = join(at, 'certs')
  const before = readdirSync(at).sort()
  const fault = { name: 'DurableWriteError', code, published: false, reason }
  await t.rejects(replaceDirectory(target, { files }), fault)
  t.same(contents(target), old, 'the directory is unchanged')
  t.same(readdirSync(at).sort(), before, 'what was staged is gone')
  const root = scratch(t)
  for (const [path, text] of Object.entries(files)) writeFileSync(join(root, path), text)
  mkdirSync(join(root, 'from'))
  for (const [path, text] of Object.entries(files)) writeFileSync(join(root, 'from', path), text)
  const { code: exit, error } = holdfast(root, ['replace', target, '--from', join(root, 'from')])
  t.equal(exit, 1)
  t.match(error, { code, published: false, reason })
  t.same(contents(target), old)
  t.same(readdirSync(at).sort(), before, 'and after the command, too')
}

await t.test('a full disk', { skip }, async (t) => {
  const { at } = tmpfs(t, 'size=128k')
  const target = join(at, 'certs')
  await replaceDirectory(target, { files: old })
  const large = { 'tls.crt': 'new', 'tls.key': 'x'.repeat(200_000) }
  await refuses(t, at, large, 'ENOSPC', 'NoSpace')
  await t.rejects(replaceFile(join(at, 'pod.yaml'), large['tls.key']), { code: 'ENOSPC', published: false })
  t.notOk(existsSync(join(at, 'pod.yaml')))
  t.equal((await replaceDirectory(target, { files: { a: 'small' } })).outcome, 'replaced', 'what fits is published')
})

await t.test('a disk without a single free byte', { skip }, async (t) => {
  const { at } = tmpfs(t, 'size=64k')
  await replaceDirectory(join(at, 'certs'), { files: old })
  const { bavail, bsize } = statfsSync(at)
  writeFileSync(join(at, 'filler'), 'x'.repeat(bavail * bsize))
  await refuses(t, at, { 'tls.crt': 'new', 'tls.key': 'new' }, 'ENOSPC', 'NoSpace')
})

await t.test('no inodes', { skip }, async (t) => {
  const { at } = tmpfs(t, 'size=1m,nr_inodes=16')
  await replaceDirectory(join(at, 'certs'), { files: old })
  const { ffree } = statfsSync(at)
  for (const room of [0, 1, 3]) {
    for (let index = room; index < ffree; index++) writeFileSync(join(at, `filler-${index}`), '')
    await refuses(t, at, { 'tls.crt': 'new', 'tls.key': 'new' }, 'ENOSPC', 'NoSpace')
    for (const name of readdirSync(at)) if (name.startsWith('filler')) execFileSync('rm', [join(at, name)])
  }
  t.equal((await replaceDirectory(join(at, 'certs'), { files: { a: 'new' } })).outcome, 'replaced')
})

await t.test('read-only, and writable again', { skip }, async (t) => {
  const { at, remount } = tmpfs(t, 'size=1m')
  const target = join(at, 'certs')
  await replaceDirectory(target, { files: old })
  remount('ro')
  await refuses(t, at, { 'tls.crt': 'new', 'tls.key': 'new' }, 'EROFS', 'PublishFailed')
  remount('rw')
  t.equal((await replaceDirectory(target, { files: { a: 'new' } })).outcome, 'replaced')
  t.same(kept(at), ['lock', 'record'])
})

/** Whether the file system that tests use knows the flag at all. */
function immutable(t: Test, path: string): boolean {
  if (spawnSync('chattr', ['+i', path]).status !== 0) return false
  t.teardown(() => spawnSync('chattr', ['-i', path]))
  return true
}

await t.test('an immutable parent, target or file', { skip }, async (t) => {
  const parent = join(scratch(t), 'parent')
  const target = join(parent, 'certs')
  mkdirSync(parent)
  await replaceDirectory(target, { files: old })
  if (!immutable(t, parent)) {
    t.comment('this file system has no immutable flag')
    return
  }
  await refuses(t, parent, { a: 'new' }, 'EPERM', 'PublishFailed')
  execFileSync('chattr', ['-i', parent])
  immutable(t, target)
  await refuses(t, parent, { a: 'new' }, 'EPERM', 'PublishFailed')
  execFileSync('chattr', ['-i', target])

  // The exchange does not touch the file, its removal does: the new content is there, and the old key stays for now.
  immutable(t, join(target, 'tls.key'))
  const outcome = await replaceDirectory(target, { files: { a: 'new' } }).catch((error: unknown) => error)
  t.same(contents(target), { a: 'new' }, 'the new content is visible')
  if (outcome instanceof Error) t.match(outcome, { code: 'EPERM', published: true }, 'and that is what it says')
  t.equal(kept(parent).filter((kind) => kind === 'staging').length, 1, 'the old content is still beside it')
  t.equal((await replaceDirectory(target, { files: { a: 'newer' } })).outcome, 'replaced', 'which hinders nobody')
  execFileSync('chattr', ['-R', '-i', parent])
  await replaceDirectory(target, { files: { a: 'newest' } })
  t.same(kept(parent), ['lock', 'record'], 'and goes when it can')
})

await t.test('names of 255 bytes, and of one more', async (t) => {
  const parent = scratch(t)
  const longest = ['n'.repeat(255), `${'ü'.repeat(127)}n`]
  for (const name of longest) {
    const files = { [name]: 'a', [`sub/${name}`]: 'b' }
    const target = join(parent, name)
    t.equal((await replaceDirectory(target, { files })).outcome, 'created')
    t.equal((await replaceDirectory(target, { files: { ...files, more: 'c' } })).outcome, 'replaced')
    t.same(contents(target), { ...files, more: 'c' })
    const tooLong = replaceDirectory(target, { files: { [`${name}n`]: 'a' } })
    await t.rejects(tooLong, { name: 'TypeError' })
    t.same(contents(target), { ...files, more: 'c' }, 'unchanged')
    await t.rejects(replaceDirectory(`${target}n`, { files }), { name: 'TypeError' })
  }
  t.same(kept(parent), ['lock', 'lock', 'record', 'record'])
  const file = join(scratch(t), 'n'.repeat(255))
  t.equal((await replaceFile(file, 'text')).outcome, 'created')
  t.equal((await replaceFile(file, 'other')).outcome, 'replaced')
  t.equal(readFileSync(file, 'utf8'), 'other')
})

await t.test('100 files of 1 MiB', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  const mebibyte = 2 ** 20
  const contentOf = (round: number): Record<string, Uint8Array> =>
    Object.fromEntries(
      Array.from({ length: 100 }, (_, index) => [`file-${index}`, Buffer.alloc(mebibyte, `${round} ${index} `)]),
    )
  for (const round of [1, 2]) {
    const files = contentOf(round)
    const { outcome } = await replaceDirectory(target, { files })
    t.equal(outcome, round === 1 ? 'created' : 'replaced')
    const wrong = Object.entries(files).filter(([name, bytes]) => !readFileSync(join(target, name)).equals(bytes))
    t.same(
      wrong.map(([name]) => name),
      [],
    )
    t.equal((await replaceDirectory(target, { files })).outcome, 'unchanged')
  }
  t.equal(statSync(join(target, 'file-99')).size, mebibyte)
  t.same(kept(parent), ['lock', 'record'])
})
