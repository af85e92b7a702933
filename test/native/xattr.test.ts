import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import {
  getAttribute,
  getAttributeAt,
  listAttributes,
  removeAttribute,
  setAttribute,
  SystemError,
} from '../../native/index.js'

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
