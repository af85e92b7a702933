import { closeSync, openSync } from 'node:fs'
import t from 'tap'
import { mountId } from '../../native/index.js'
import { idFromProcess } from '../../src/durable/posix/mount.js'

await t.test('the ID of a mount is the one that /proc has, where the kernel tells', (t) => {
  for (const path of ['/', '/proc', '/dev', '/sys']) {
    const fd = openSync(path, 'r')
    const id = mountId(fd)
    if (id !== undefined) t.equal(id, idFromProcess(fd), path)
    closeSync(fd)
  }
  t.equal(mountId(999_999), undefined, 'a descriptor that is not open')
  t.throws(() => mountId(-1), { name: 'TypeError' })
  t.end()
})
