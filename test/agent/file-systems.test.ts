import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import t from 'tap'
import { beside, fileSystemOf, fileSystemsNow, onFileSystem } from '../../src/agent/file-systems.js'
import { parseMount } from '../../src/mountinfo.js'
import { Lane } from '../../native/index.js'
import { threadsOfLane } from '../../native/loop.js'
import { SimulatedTime } from '../simulated-time.js'

const table = [
  '21 1 8:1 / / rw - ext4 /dev/sda1 rw',
  '22 21 8:2 / /var/lib rw - xfs /dev/sda2 rw',
  '23 21 0:40 / /mnt/usb\\040disk rw - ext4 /dev/sdb1 rw',
  '24 22 8:1 /srv /var/lib/bound rw - ext4 /dev/sda1 rw',
  '25 23 0:50 / /mnt/usb\\040disk rw - nfs4 server:/ rw',
].map(parseMount)

await t.test('a path is on the file system of the nearest mount above it', async (t) => {
  for (const [path, device] of [
    ['/', '8:1'],
    ['/etc/certs', '8:1'],
    ['/var/library/certs', '8:1'],
    ['/var/lib', '8:2'],
    ['/var/lib/etcd/nothing/of/this/exists', '8:2'],
    ['/var/lib/bound/certs', '8:1'],
    ['/mnt/usb disk/certs', '0:50'],
  ] as const) {
    t.equal(fileSystemOf(path, table), device, path)
  }
  t.match(fileSystemOf('/proc/self'), /^\d+:\d+$/, 'of this machine')
})

await t.test('calls within a moment share one read of the mounts', async (t) => {
  const time = new SimulatedTime(t)
  const reads = t.capture(fs, 'readFileSync', fs.readFileSync)
  syncBuiltinESMExports()
  t.teardown(() => syncBuiltinESMExports())
  const mountinfo = () => reads().filter(({ args }) => String(args[0]).endsWith('/mountinfo')).length
  await time.advance(1_100)
  for (let count = 0; count < 5; count++) {
    t.equal(fileSystemsNow()('/proc/self'), fileSystemOf('/proc/self'))
    await beside('/proc/self', () => Promise.resolve())
  }
  t.equal(mountinfo(), 1)
  await time.advance(1_100)
  fileSystemsNow()
  t.equal(mountinfo(), 1, 'and again a while later')
})

await t.test('work on one file system keeps no more threads than its lane has, and all of it is done', async (t) => {
  let running = 0
  let most = 0
  const ended: (() => void)[] = []
  const call = (value: number) =>
    new Promise<number>((resolve) => {
      Lane.current?.enter(() => {
        running += 1
        most = Math.max(most, running)
        ended.push(() => {
          running -= 1
          Lane.current?.leave()
          resolve(value)
        })
      })
    })
  const values = Array.from({ length: 3 * threadsOfLane }, (_, value) => value)
  await onFileSystem('9:9', async () => {
    const calls = Promise.all(values.map(call))
    t.equal(running, threadsOfLane)
    let other: Lane | undefined
    await onFileSystem('9:10', () => {
      other = Lane.current
      return Promise.resolve()
    })
    t.not(other, Lane.current, 'another file system has a lane of its own')
    while (ended.length > 0) ended.shift()?.()
    t.strictSame(await calls, values)
  })
  t.equal(most, threadsOfLane)
  t.equal(Lane.current, undefined)
})
