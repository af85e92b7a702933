/** Where durability counts as proven: by the file system's type, its options, and ext4's journal. */
import { closeSync, openSync, readdirSync, readlinkSync } from 'node:fs'
import t from 'tap'
import { idFromProcess, isProven, mountOf } from '../../../src/durable/posix/mount.js'
import { mountDetails } from '../../../src/mountinfo.js'

await t.test('what makes a mount a proven one', async (t) => {
  // No block device has this number, and so no journal.
  const device = '0:0'
  const cases: [string, readonly string[], boolean][] = [
    ['xfs', ['rw', 'noatime'], true],
    ['btrfs', ['rw'], true],
    ['xfs', ['rw', 'nobarrier'], false],
    ['btrfs', ['nobarrier', 'rw'], false],
    ['xfs', ['barrier=0'], false],
    ['xfs', ['barrier=1'], true],
    ['ext4', ['rw'], false],
    ['ext3', ['rw'], false],
    ['tmpfs', ['rw'], false],
    ['overlay', ['rw'], false],
    ['unknown', [], false],
  ]
  for (const [type, options, proven] of cases)
    t.equal(isProven({ type, device, options }), proven, `${type} ${options.join()}`)
})

await t.test('mountOf tells a mount by its ID, anew at each call', async (t) => {
  for (const path of ['/', '/proc', '/', '/dev']) {
    const fd = openSync(path, 'r')
    const id = idFromProcess(fd)
    const { type, root, mountPoint } = mountDetails(id) ?? {}
    t.match(mountOf(fd), { id, type, root, mountPoint }, path)
    t.match(mountOf(fd), { id, type }, `${path}, again`)
    closeSync(fd)
  }
  const fd = openSync('/proc', 'r')
  t.equal(mountDetails(idFromProcess(fd))?.type, 'proc')
  closeSync(fd)
})

await t.test('a mount in no table, as that of the event loop, has no proven durability', async (t) => {
  const fd = Number(readdirSync('/proc/self/fd').find(isOfKernel))
  const outcome = outcomeOf(() => mountOf(fd))
  t.notOk(outcome instanceof Error, 'that is no failure')
  t.match(outcome, { type: 'unknown', proven: false })
})

function isOfKernel(descriptor: string): boolean {
  return String(outcomeOf(() => readlinkSync(`/proc/self/fd/${descriptor}`))).startsWith('anon_inode:')
}

function outcomeOf(call: () => unknown): unknown {
  try {
    return call()
  } catch (error) {
    return error
  }
}
