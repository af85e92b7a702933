/** How the agent notices a disk that hangs while it writes nothing there: for no write to the disk, and seldom at rest. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { askToWrite, HangingState } from '../../../src/agent/report/hanging-state.js'
import { silent } from '../../../src/log.js'
import { Disk, missingForDisk, type FileSystem } from '../../disk/disk.js'
import { frozenThreads } from '../../disk/frozen-disks.js'
import { SimulatedTime } from '../../simulated-time.js'
import { until } from '../../until.js'

const fileSystems: readonly FileSystem[] = ['ext4', 'xfs', 'btrfs']
const missing = await missingForDisk(fileSystems)
const options = missing.length === 0 ? {} : { skip: `needs ${missing.join(', ')}` }

for (const fileSystem of fileSystems) {
  await t.test(`a question to ${fileSystem} writes nothing, and waits while it is frozen`, options, async (t) => {
    const disk = await Disk.create()
    t.teardown(() => disk.destroy())
    await disk.format(fileSystem)
    await disk.mount()
    const directory = join(disk.mountPoint, 'state')
    mkdirSync(directory)
    /** What the disk has written once the file system has nothing left to write. */
    const written = async (): Promise<number> => {
      execFileSync('sync', ['--file-system', directory])
      return (await disk.counts()).writtenBytes
    }
    let before = -1
    await until('the file system is at rest', async () => before === (before = await written()))
    for (let asked = 0; asked < 100; asked++) await askToWrite(directory)
    t.equal(await written(), before)

    execFileSync('fsfreeze', ['--freeze', disk.mountPoint])
    let isAnswered = false
    const asked = askToWrite(directory).then(() => (isAnswered = true))
    try {
      await until('a thread waits for the disk', () => frozenThreads(process.pid) > 0)
      t.notOk(isAnswered)
    } finally {
      execFileSync('fsfreeze', ['--unfreeze', disk.mountPoint])
    }
    t.ok(await asked)
    execFileSync('mount', ['-o', 'remount,ro', disk.mountPoint])
    await t.resolves(askToWrite(directory), 'a file system that may only be read has answered')
  })
}

await t.test(
  'an agent asks each two seconds after a change, each fifteen at rest, and not once it is closed',
  async (t) => {
    const stateDirectory = mkdtempSync(join(tmpdir(), 'holdfast-state-'))
    t.teardown(() => rmSync(stateDirectory, { recursive: true }))
    // A question takes a file of this name away, if there is one.
    const name = join(stateDirectory, '.holdfast-may-write')
    const time = new SimulatedTime(t)
    const state = new HangingState({ stateDirectory, log: silent, text: () => '', changed: () => undefined })
    t.teardown(() => state.close())
    const idle = (): Promise<void> => Promise.resolve()
    /** The next question comes after just so many milliseconds. */
    const asksAfter = async (milliseconds: number, when: string): Promise<void> => {
      writeFileSync(name, '')
      await time.advance(milliseconds - 1)
      t.ok(existsSync(name), `${when}: not before`)
      await time.advance(1)
      await until(`it has asked ${when}`, () => !existsSync(name))
      // A write waits for the question that is under way.
      await state.watch(idle)
    }
    state.changed()
    await asksAfter(2_000, 'after a change')
    writeFileSync(name, '')
    await state.watch(() => time.advance(10_000))
    t.ok(existsSync(name), 'not during a write')
    await asksAfter(2_000, 'after a write')
    await time.advance(30_000)
    await state.watch(idle)
    await asksAfter(15_000, 'at rest')
    state.changed()
    await asksAfter(2_000, 'after another change')
    for (const again of ['once more', 'and once more']) {
      writeFileSync(name, '')
      await until(again, () => time.advance(1_000).then(() => !existsSync(name)))
    }
    state.close()
    state.changed()
    writeFileSync(name, '')
    await state.watch(() => time.advance(60_000))
    await time.advance(60_000)
    t.ok(existsSync(name), 'not once it is closed')
  },
)
