import { closeSync, openSync } from 'node:fs'
import { release } from 'node:os'
import t from 'tap'
import { mountId } from '../../native/index.js'
import { idFromProcess } from '../../src/durable/posix/mount.js'

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
