/*
 * A disk that fails a write or a flush, and what the real file system says of it: the completion of an asynchronous fsync cannot be
 * made to fail by strace.
 */
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { startWriteOutAll, syncAll, syncOnThreads } from '../../../src/durable/posix/sync.js'
import { Disk, missingForDisk } from '../../disk/disk.js'

const missing = await missingForDisk([])
const skip = missing.length === 0 ? false : `needs ${missing.join(', ')}`
const size = 2 ** 24
const block = Buffer.alloc(4096, 'x')

for (const sync of [syncAll, syncOnThreads]) {
  await t.test(`${sync.name}: each descriptor has its own answer`, { skip }, async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'holdfast-failing-'))
    t.teardown(() => rmSync(directory, { recursive: true, force: true }))
    const disk = await Disk.create(size)
    t.teardown(() => disk.destroy())
    const device = openSync(disk.device, 'r+')
    const good = openSync(join(directory, 'good'), 'w')
    t.teardown(() => [device, good].forEach((descriptor) => closeSync(descriptor)))

    await disk.ask('reset')
    await disk.ask('fail flush 1 1')
    writeSync(device, block, 0, block.length, 0)
    const outcomes = await sync([good, device, good])
    t.same([outcomes[0], outcomes[2]], [undefined, undefined])
    t.match(outcomes[1], { code: 'EIO', syscall: 'fsync' }, 'the flush has failed')

    await disk.ask('reset')
    await disk.ask('fail write 1 1')
    writeSync(device, block, 0, block.length, 0)
    t.match((await sync([device]))[0], { code: 'EIO', syscall: 'fsync' }, 'the write has failed')
    t.equal((await sync([device]))[0], undefined, 'which is reported once: a second fsync proves nothing')

    await disk.ask('reset')
    await disk.ask('fail write 1 1')
    writeSync(device, block, 0, block.length, 0)
    const [hinted] = await startWriteOutAll([device])
    t.match(hinted, { code: 'EIO', syscall: 'sync_file_range' }, 'the hint is reported, if it comes first')
    t.equal((await sync([device]))[0], undefined, 'and takes the error with it: so it counts as a failed fsync')

    await disk.ask('reset')
    await disk.ask('fail write 1 1')
    writeSync(device, block, 0, block.length, 0)
    t.same(await startWriteOutAll([device, good]), [undefined, undefined], 'only the last is waited for')
    t.match(
      (await sync([device, good]))[0],
      { code: 'EIO', syscall: 'fsync' },
      'what failed before it, the fsync reports',
    )
  })
}
