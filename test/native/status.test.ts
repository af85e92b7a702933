// Own process: koffi is changed before native/ is loaded.
import { closeSync, mkdtempSync, openSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { release, tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { answer, type Answer } from './libc-calls.js'
import { identityAt, mountId } from '../../native/index.js'
import { idFromProcess } from '../../src/durable/posix/mount.js'

/** Which file a path leads to, in the numbers of stat(2). */

await t.test('a file has the numbers that stat(2) tells, by a link, too', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-test-'))
  t.teardown(() => rmSync(directory, { recursive: true }))
  symlinkSync('/proc/self', join(directory, 'link'))
  for (const path of ['/', '/proc/self', '/dev/null', directory, join(directory, 'link')]) {
    const { dev, ino } = statSync(path, { bigint: true })
    t.same(await identityAt(path), { device: Number(dev), inode: ino }, path)
  }
  await t.rejects(identityAt(join(directory, 'none')), { code: 'ENOENT', syscall: 'statx' })
  await t.rejects(identityAt('a\0b'), { name: 'TypeError' })
})

await t.test('identityAt puts large device numbers together as libuv does, and asks no server', async (t) => {
  const asked: unknown[] = []
  const statx = (...[at, path, flags, mask, memory]: readonly unknown[]): Answer => {
    asked.push([at, path, flags, mask])
    const view = new DataView((memory as Uint8Array).buffer)
    view.setBigUint64(32, 2n ** 60n, true)
    view.setUint32(136, 0x12345, true)
    view.setUint32(140, 0x6789ab, true)
    return 0
  }
  answer(t, { statx })
  // gnu_dev_makedev(3): the low 12 and 8 bits of the two first.
  t.same(await identityAt('/a'), { device: 0x12006789345ab, inode: 2n ** 60n })
  t.same(asked, [[-100, '/a', 0x4000, 0x100]])
})

/** statx(2) tells it since Linux 5.8. */
const [major = 0, minor = 0] = release().split('.').map(Number)
const isTold = major > 5 || (major === 5 && minor >= 8)

await t.test('mountId equals the ID in /proc, where the kernel has it', async (t) => {
  for (const path of ['/', '/proc', '/dev', '/sys']) {
    const fd = openSync(path, 'r')
    const id = mountId(fd)
    t.equal(id, isTold ? idFromProcess(fd) : undefined, path)
    closeSync(fd)
  }
  t.equal(mountId(999_999), undefined, 'a descriptor that is not open')
  t.throws(() => mountId(-1), { name: 'TypeError' })
})
