/** Mounts that come and go over directories: the kernel says so, and a process that waits for it does not wake up. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { MountWatch } from '../../src/agent/watch-mounts.js'
import { silent } from '../../src/log.js'
import { scratch } from '../durable/scratch.js'
import { wakeups } from '../e2e/process-figures.js'
import { signalOf, until } from '../until.js'

const mayMount = spawnSync('unshare', ['--mount', 'true']).status === 0

/** Directories on two places, and what a watch of them reports. */
function scene(t: Test) {
  const root = scratch(t)
  const [disk, other] = [join(root, 'disk'), join(root, 'other')]
  for (const path of [disk, other]) mkdirSync(path)
  const paths = [join(disk, 'certs'), join(other, 'certs')]
  const reports: string[] = []
  const watch = new MountWatch(
    () => paths,
    (path) => void reports.push(path),
    signalOf(t),
    silent,
  )
  return { disk, paths, watch, reports }
}

await t.test(
  'the watch reports a mount over a directory, and its end; and none for other directories',
  { skip: !mayMount && 'needs root to mount' },
  async (t) => {
    const { disk, paths, watch, reports } = scene(t)
    const umount = () => spawnSync('umount', [disk]).status
    t.teardown(umount)
    watch.note()
    watch.start()
    t.strictSame(reports, [], 'what is mounted already is no news')
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', disk])
    await until('the mount is reported', () => reports.length === 1)
    t.equal(umount(), 0)
    await until('its end is reported', () => reports.length === 2)
    t.strictSame(reports, [paths[0], paths[0]])
  },
)

await t.test(
  'the watch reports a mount that comes after the first comparison and before the watch has begun',
  { skip: !mayMount && 'needs root to mount' },
  (t) => {
    const { disk, paths, watch, reports } = scene(t)
    watch.note()
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', disk])
    t.teardown(() => spawnSync('umount', ['--lazy', disk]))
    paths.push(join(disk, 'added'))
    watch.note()
    watch.start()
    t.strictSame(reports, [paths[0]])
    t.end()
  },
)

await t.test('a process that only waits does not wake up, and what waits ends with its watch', async (t) => {
  let failed = 0
  const log = { ...silent, warn: () => void (failed += 1) }
  const ending = new AbortController()
  const watch = new MountWatch(
    () => ['/srv/certs'],
    () => undefined,
    ending.signal,
    log,
  )
  watch.start()
  t.equal(failed, 0)
  // Other programs of the machine may mount meanwhile: in one of these windows none does, and the process just waits.
  const windows: number[] = []
  while (windows.length < 40 && !windows.some((woken) => woken < 4)) {
    const before = wakeups(process.pid)
    await new Promise((resolve) => setTimeout(resolve, 500))
    windows.push(wakeups(process.pid) - before)
  }
  t.ok(Math.min(...windows) < 4, `${windows.join(', ')} times`)
  ending.abort()
})
