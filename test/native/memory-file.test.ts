/** Files in memory, which other processes find among the descriptors of their maker. */
import { closeSync, fstatSync, readFileSync, readlinkSync, writeSync } from 'node:fs'
import t from 'tap'
import { createMemoryFile } from '../../native/index.js'

await t.test('a file in memory can be read by its name among the descriptors, until it is closed', async (t) => {
  const file = createMemoryFile('holdfast test:/a b')
  const path = `/proc/self/fd/${file}`
  t.equal(readlinkSync(path), '/memfd:holdfast test:/a b (deleted)')
  writeSync(file, 'content')
  t.equal(readFileSync(path, 'utf8'), 'content')
  t.equal(fstatSync(file).nlink, 0)
  closeSync(file)
  t.throws(() => createMemoryFile('x'.repeat(250)), { syscall: 'memfd_create', code: 'EINVAL' })
  t.throws(() => createMemoryFile('a\0b'), TypeError)
})
