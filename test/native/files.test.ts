import { spawnSync } from 'node:child_process'
import {
  closeSync,
  constants,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import {
  directoryFlags,
  getAttribute,
  getAttributeAt,
  listAttributes,
  openNoSymlinks,
  openOnSameMount,
  removeAttribute,
  setAttribute,
  SystemError,
  workingDirectory,
} from '../../native/index.js'

const directory = mkdtempSync(join(tmpdir(), 'holdfast-open-'))
t.teardown(() => rmSync(directory, { recursive: true }))
mkdirSync(join(directory, 'sub'))
writeFileSync(join(directory, 'sub', 'file'), '')
symlinkSync('sub', join(directory, 'link'))
const fd = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY)
t.teardown(() => closeSync(fd))

await t.test('openOnSameMount opens an entry of the same mount, and follows no link', async (t) => {
  const zero = openOnSameMount(fd, 'sub/file', 0)
  await t.resolves(zero, 'no flag at all')
  closeSync(await zero)
  closeSync(await openOnSameMount(fd, 'sub', directoryFlags))
  closeSync(await openOnSameMount(fd, 'sub/file', constants.O_RDONLY))
  await t.rejects(openOnSameMount(fd, 'link', directoryFlags), { code: 'ELOOP', syscall: 'openat2' })
  await t.rejects(openOnSameMount(fd, 'missing', directoryFlags), { code: 'ENOENT' })
})

await t.test('openOnSameMount answers EXDEV for an entry of another mount: /proc below the root', async (t) => {
  const root = openSync('/', constants.O_RDONLY | constants.O_DIRECTORY)
  t.teardown(() => closeSync(root))
  t.equal(spawnSync('mountpoint', ['-q', '/proc']).status, 0, '/proc is a mount here')
  await t.rejects(openOnSameMount(root, 'proc', directoryFlags), { code: 'EXDEV', syscall: 'openat2', path: 'proc' })
})

await t.test('no part of a path may be a link, whether it is opened from a directory or not', async (t) => {
  mkdirSync(join(directory, 'sub', 'deep'))
  for (const [from, path] of [
    [fd, 'sub/deep'],
    [workingDirectory, join(directory, 'sub', 'deep')],
    [workingDirectory, '/proc/sys'],
  ] as const) {
    const opened = await openNoSymlinks(from, path, directoryFlags)
    const flags = /^flags:\s*(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${opened}`, 'latin1'))?.[1] ?? ''
    t.ok(Number.parseInt(flags, 8) & 0o2000000, 'O_CLOEXEC: no child keeps it')
    closeSync(opened)
  }
  for (const path of ['link', 'link/deep']) {
    await t.rejects(openNoSymlinks(fd, path, directoryFlags), { code: 'ELOOP', syscall: 'openat2', path })
  }
  await t.rejects(openNoSymlinks(fd, 'sub/file', directoryFlags), { code: 'ENOTDIR' })
  for (const flags of [-1, 0x80000000, 0.5]) await t.rejects(openNoSymlinks(fd, 'sub', flags), { name: 'TypeError' })
})

await t.test('attributes of any length come back as they were set', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-xattr-'))
  const fd = openSync(join(directory, 'file'), 'w')
  t.teardown(() => {
    closeSync(fd)
    rmSync(directory, { recursive: true })
  })
  try {
    await setAttribute(fd, 'user.short', Buffer.from('x'))
  } catch (error) {
    if (!(error instanceof SystemError) || error.code !== 'ENOTSUP') throw error
    t.pass(`${directory} takes no user attributes: nothing to read back`)
    return
  }
  for (const length of [0, 1, 255, 256, 257, 2000]) {
    const value = Buffer.alloc(length, 'label')
    await setAttribute(fd, 'user.label', value)
    t.same(Buffer.from((await getAttribute(fd, 'user.label')) ?? 'none'), value, `${length} bytes`)
  }
  t.same((await listAttributes(fd)).filter((name) => name.startsWith('user.')).sort(), ['user.label', 'user.short'])
  for (let index = 0; index < 40; index++) await setAttribute(fd, `user.one-of-many-${index}`, Buffer.alloc(0))
  t.equal((await listAttributes(fd)).filter((name) => name.startsWith('user.one-of-many')).length, 40)
  await t.rejects(listAttributes(999_999), { code: 'EBADF', syscall: 'flistxattr' })
  t.equal(await getAttribute(fd, 'user.other'), undefined)
  const path = join(directory, 'file')
  t.same(Buffer.from((await getAttributeAt(path, 'user.short')) ?? 'none').toString(), 'x')
  await removeAttribute(fd, 'user.short')
  await removeAttribute(fd, 'user.short')
  t.equal(await getAttributeAt(path, 'user.short'), undefined)
  await t.rejects(getAttributeAt(join(directory, 'none'), 'user.short'), { code: 'ENOENT', syscall: 'lgetxattr' })
  await t.rejects(removeAttribute(999_999, 'user.short'), { code: 'EBADF', syscall: 'fremovexattr' })
  await t.rejects(getAttribute(999_999, 'user.label'), { code: 'EBADF', syscall: 'fgetxattr' })
})
