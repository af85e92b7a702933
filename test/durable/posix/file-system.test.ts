import { execFileSync, spawnSync } from 'node:child_process'
import { closeSync, constants, existsSync, openSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { failure } from '../intercepted.js'
import { modeOf, scratch } from '../scratch.js'
import { replaceCall } from '../system-calls.js'

const fs = new NodeFileSystem()
const isRoot = process.geteuid?.() === 0

function opened(t: Test, path: string, flags: number): number {
  const descriptor = openSync(path, flags)
  t.teardown(() => closeSync(descriptor))
  return descriptor
}

const openDirectory = (t: Test, path: string): number => opened(t, path, constants.O_RDONLY | constants.O_DIRECTORY)

async function read(file: number, known?: number): Promise<Buffer> {
  const pieces: Buffer[] = []
  // Each piece is a view of a buffer that is used again.
  for await (const piece of fs.read(file, known)) pieces.push(Buffer.from(piece))
  return Buffer.concat(pieces)
}

/** What proc(5) says of an open descriptor: its flags, but for those that count only while it is opened. */
function flagsOf(descriptor: number): number {
  const text = readFileSync(`/proc/self/fdinfo/${descriptor}`, 'latin1')
  return Number.parseInt(/^flags:\s*(\d+)/m.exec(text)?.[1] ?? '0', 8)
}

/** What opening a FIFO comes to, which without O_NONBLOCK waits for its other end. */
async function doesNotWait(opening: Promise<number>): Promise<unknown> {
  const late = new Promise((resolve) => setTimeout(resolve, 60_000, 'waits').unref())
  return Promise.race([opening.catch((error: unknown) => error), late])
}

await t.test('a write that takes only a part of the bytes is gone on with, from where it stopped', async (t) => {
  const directory = scratch(t)
  const parent = openDirectory(t, directory)
  const bytes = Buffer.from(Array.from({ length: 1000 }, (_, index) => index % 251))
  let calls = 0
  replaceCall(t, 'write', (real) => (...args) => {
    calls += 1
    const [file, buffer, offset, length, ...rest] = args as [number, Buffer, number, number]
    return real(file, buffer, offset, Math.min(length, 300), ...rest)
  })
  const file = await fs.createFile(parent, 'file')
  await fs.write(file, bytes)
  await fs.write(file, new Uint8Array())
  await fs.close(file)
  t.equal(calls, 4, 'nothing is written where there is nothing to write')
  t.same(readFileSync(join(directory, 'file')), bytes)
})

await t.test('a write that fails half-way is a failure, of the file that a person knows', async (t) => {
  const directory = scratch(t)
  let calls = 0
  replaceCall(t, 'write', (real) => (...args) => {
    calls += 1
    const [file, buffer, offset, , position, done] = args as [number, Buffer, number, number, null, (e: Error) => void]
    if (calls < 3) real(file, buffer, offset, 1, position, done)
    else done(failure('ENOSPC', 'write'))
  })
  const file = await fs.createFile(openDirectory(t, directory), 'file')
  await t.rejects(fs.write(file, Buffer.from('content')), { code: 'ENOSPC', path: join(directory, 'file') })
  await fs.close(file)
  t.equal(readFileSync(join(directory, 'file'), 'utf8'), 'co')
})

await t.test('a read that brings a part, and sizes around those of the buffers: every byte, once', async (t) => {
  const directory = scratch(t)
  const parent = openDirectory(t, directory)
  const sizes = [0, 1, 16_383, 16_384, 16_385, 262_143, 262_144, 262_145]
  for (const size of sizes) writeFileSync(join(directory, `${size}`), Buffer.alloc(size, 'abcdefg'))
  const all = async (hasGrown: boolean): Promise<void> => {
    for (const size of sizes) {
      const file = await fs.openFile(parent, `${size}`)
      const expected = Buffer.alloc(size, 'abcdefg')
      t.ok(expected.equals(await read(file)), `${size} bytes`)
      t.ok(expected.equals(await read(file, size)), `${size} bytes, which are known to be as many`)
      if (hasGrown) t.ok(expected.equals(await read(file, 10)), `${size} bytes, of which ten were known`)
      await fs.close(file)
    }
  }
  await all(true)
  replaceCall(t, 'read', (real) => (...args) => {
    const [file, buffer, offset, length, ...rest] = args as [number, Buffer, number, number]
    return real(file, buffer, offset, Math.min(length, 7000), ...rest)
  })
  await all(false)
})

await t.test('openFile, openAppend, openLock and openDirectory follow no link, and wait for no FIFO', async (t) => {
  const directory = scratch(t)
  const parent = openDirectory(t, directory)
  writeFileSync(join(directory, 'file'), 'one ')
  symlinkSync('file', join(directory, 'link'))
  symlinkSync('nowhere', join(directory, 'dangling'))
  spawnSync('mkfifo', [join(directory, 'fifo')])
  for (const [name, open] of [
    ['openFile', (name: string) => fs.openFile(parent, name)],
    ['openAppend', (name: string) => fs.openAppend(parent, name)],
    ['openLock', (name: string) => fs.openLock(parent, name)],
    ['openDirectory', (name: string) => fs.openDirectory(parent, name)],
  ] as const) {
    await t.rejects(open('link'), { code: /ELOOP|ENOTDIR/, path: join(directory, 'link') }, `${name} follows no link`)
    await t.rejects(open('dangling'), { code: /ELOOP|ENOTDIR/ }, `${name} makes nothing through a link`)
  }
  t.notOk(existsSync(join(directory, 'nowhere')))
  for (const name of ['file', 'dangling']) await t.rejects(fs.createFile(parent, name), { code: 'EEXIST' }, name)

  const fifo = await doesNotWait(fs.openFile(parent, 'fifo'))
  t.type(fifo, 'number', 'a FIFO that nobody writes to')
  const lock = await doesNotWait(fs.openLock(parent, 'fifo'))
  t.type(lock, 'number', 'a FIFO as a lock')
  for (const opened of [fifo, lock]) await fs.close(opened as number)
  const file = await fs.openAppend(parent, 'file')
  await fs.write(file, Buffer.from('two '))
  await fs.write(file, Buffer.from('three'))
  t.equal((await read(file)).toString(), 'one two three', 'what is appended to can be read')
  await fs.close(file)
  t.equal(readFileSync(join(directory, 'file'), 'utf8'), 'one two three')
})

await t.test('new files and directories are the user’s alone, and children inherit no descriptor', async (t) => {
  const directory = scratch(t)
  const parent = openDirectory(t, directory)
  const { O_RDWR, O_APPEND, O_NOFOLLOW, O_NONBLOCK, O_DIRECTORY } = constants
  const closeOnExec = 0o2000000
  const largeFile = 0o100000
  const created = await fs.createFile(parent, 'created')
  const lock = await fs.openLock(parent, 'lock')
  const again = await fs.openLock(parent, 'lock')
  const append = await fs.openAppend(parent, 'created')
  const self = await fs.openPath(directory)
  const flags = (descriptor: number): number => flagsOf(descriptor) & ~largeFile
  t.equal(flags(created), O_RDWR | O_APPEND | O_NOFOLLOW | closeOnExec)
  for (const one of [lock, again]) t.equal(flags(one), O_RDWR | O_NOFOLLOW | O_NONBLOCK | closeOnExec)
  t.equal(flags(append), O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | closeOnExec)
  t.equal(flags(self), O_DIRECTORY | closeOnExec)
  for (const descriptor of [created, lock, again, append, self]) await fs.close(descriptor)
  t.equal(modeOf(join(directory, 'created')), '600')
  t.equal(modeOf(join(directory, 'lock')), '600')
  await fs.createDirectory(parent, 'private')
  t.equal(modeOf(join(directory, 'private')), '700')
  await t.rejects(fs.close(created), { code: 'EBADF', path: `descriptor ${created}` })
})

await t.test('an inode says when it was made, and one without names is closed all the same', async (t) => {
  const directory = scratch(t)
  const parent = openDirectory(t, directory)
  const file = await fs.createFile(parent, 'file')
  const { birth, inode, links } = await fs.attributes(file)
  const stats = statSync(join(directory, 'file'), { bigint: true })
  t.same([birth, inode, links], [stats.birthtimeNs, stats.ino, 1])
  t.equal((await fs.look(parent, 'file'))?.birth, 0n, 'lstat(2) does not say it reliably')
  await fs.removeFile(parent, 'file')
  t.equal((await fs.attributes(file)).links, 0)
  await fs.close(file)
  await t.rejects(fs.attributes(file), { code: 'EBADF' })
})

await t.test('staged files: a quarter of the descriptors that there may be, 256 at most, one at least', async (t) => {
  const module = new URL('../../../src/durable/posix/file-system.js', import.meta.url).href
  const script = `
    import { NodeFileSystem } from ${JSON.stringify(module)}
    process.stdout.write(String(new NodeFileSystem().stagedFiles))`
  for (const [limit, bound] of [
    [100, 25],
    [1020, 255],
    [1024, 256],
    [4096, 256],
  ] as const) {
    const node = [process.execPath, '--input-type=module', '--eval', script]
    const { stdout, stderr } = spawnSync('prlimit', [`--nofile=${limit}:${limit}`, ...node], { encoding: 'utf8' })
    t.equal(stdout, `${bound}`, `${limit} descriptors ${stderr}`)
  }
})

await t.test('200 targets under 256 descriptors are published in parts; two that overlap reject before', async (t) => {
  const directory = scratch(t)
  const module = new URL('../../../src/durable/publish/replace.js', import.meta.url).href
  const script = `
    import { replaceDirectories } from ${JSON.stringify(module)}
    const target = (index) => ${JSON.stringify(directory)} + '/parent' + index + '/certs'
    const all = Array.from({ length: 200 }, (_, index) => ({ target: target(index), files: { a: 'x' }, history: { keep: 1, maxAge: null } }))
    const said = []
    const inside = { target: target(0) + '/in/it', files: {} }
    await replaceDirectories([...all, inside]).catch((error) => said.push(error.constructor.name))
    for (const text of ['x', 'y', 'y']) {
      for (const { files } of all) files.a = text
      const outcomes = (await replaceDirectories(all)).map((one) => one.error?.message ?? one.outcome)
      said.push(...new Set(outcomes))
    }
    process.stdout.write(said.join(' '))`
  const node = [process.execPath, '--input-type=module', '--eval', script]
  const { stdout, stderr } = spawnSync('sh', ['-c', 'ulimit -n 256; exec "$@"', 'sh', ...node], { encoding: 'utf8' })
  t.equal(stdout, 'OverlappingTargets created replaced unchanged', stderr)
})

await t.test('openLock opens the lock of a read-only mount', { skip: !isRoot && 'needs root' }, async (t) => {
  const directory = scratch(t)
  writeFileSync(join(directory, 'lock'), '')
  execFileSync('mount', ['--bind', directory, directory])
  t.teardown(() => execFileSync('umount', [directory]))
  execFileSync('mount', ['-o', 'remount,bind,ro', directory])
  const lock = await fs.openLock(openDirectory(t, directory), 'lock')
  t.ok(fs.tryLock(lock))
  await fs.close(lock)
})
