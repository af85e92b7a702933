import { closeSync, constants, openSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { behindLeadingCommit } from '../../src/durable/posix/lead-commit.js'
import { startWriteOutAll, syncAll, syncOnThreads } from '../../src/durable/posix/sync.js'
import { scratch } from './scratch.js'

await t.test('AIO and the threads answer alike: each descriptor its own outcome, in order', async (t) => {
  const root = scratch(t)
  const fds = Array.from({ length: 300 }, (_, index) =>
    openSync(join(root, `file-${index}`), constants.O_RDWR | constants.O_CREAT),
  )
  const notSyncable = openSync('/proc/self/status', 'r')
  t.teardown(() => [...fds, notSyncable].forEach((fd) => closeSync(fd)))
  const all = [...fds.slice(0, 100), 999_999, ...fds.slice(100), notSyncable]
  for (const sync of [syncAll, syncOnThreads]) {
    const outcomes = await sync(all)
    t.equal(outcomes.length, all.length)
    const failed = outcomes.flatMap((outcome, index) =>
      outcome ? [`${index} ${(outcome as NodeJS.ErrnoException).code ?? ''}`] : [],
    )
    t.same(failed, ['100 EBADF', '301 EINVAL'], sync.name)
  }
  process.env['HOLDFAST_AIO'] = 'off'
  t.teardown(() => delete process.env['HOLDFAST_AIO'])
  t.same(await syncAll(fds.slice(0, 3)), [undefined, undefined, undefined], 'the threads on demand')
})

await t.test('the hint: an error is reported, a file system that has no write-out is none', async (t) => {
  const root = scratch(t)
  const file = openSync(join(root, 'file'), 'w')
  t.teardown(() => closeSync(file))
  const [good, bad] = await startWriteOutAll([file, 999_999])
  t.equal(good, undefined)
  t.match(bad, { code: 'EBADF', syscall: 'sync_file_range' })
})

await t.test(
  'a leading commit is for large barriers on ext4 alone; the barrier itself is never left out',
  async (t) => {
    const unsyncable = openSync('/proc/self/status', 'r')
    t.teardown(() => closeSync(unsyncable))
    const own = new Set(Array.from({ length: 200 }, (_, index) => 1_000_000 + index))
    const descriptors = [...own, unsyncable]
    let barriers = 0
    const barrier = (): Promise<undefined[]> => {
      barriers += 1
      return Promise.resolve(descriptors.map(() => undefined))
    }
    t.same(
      await behindLeadingCommit(descriptors.slice(100), own, barrier),
      descriptors.map(() => undefined),
      'small',
    )
    const outcomes = await behindLeadingCommit(descriptors, own, barrier)
    t.equal(barriers, 2)
    t.same(
      outcomes,
      descriptors.map(() => undefined),
      'procfs: no leading commit, whose fsync would have failed',
    )
  },
)
