import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { describeDisk, machineDigest, otherFileSystem } from '../../torture/disk.js'
import type { Device, DiskDescription } from '../../torture/types.js'
import { scratch } from '../cli/holdfast.js'

const withoutUuid: DiskDescription = {
  fileSystem: 'ext4',
  mountPoint: '/mnt/disk',
  root: '/',
  source: '/dev/sda1',
  options: ['rw'],
  devices: [],
}
const disk: DiskDescription = { ...withoutUuid, uuid: 'one' }

await t.test("otherFileSystem tells an unmounted disk, and another one, from the run's", async (t) => {
  const cases: [string, Partial<DiskDescription>, RegExp | undefined][] = [
    ['the same', {}, undefined],
    ['the same under another device name', { source: '/dev/sdb1' }, undefined],
    ['what it covers', { mountPoint: '/' }, /ext4 at \/mnt\/disk \(UUID one\).*ext4 at \/ /],
    ['another file system', { fileSystem: 'xfs' }, /xfs at/],
    ['another UUID', { uuid: 'two' }, /UUID two/],
    ['another directory of it', { root: '/sub' }, /the run is on/],
  ]
  for (const [name, change, expected] of cases) {
    const other = otherFileSystem(disk, { ...disk, ...change })
    if (expected === undefined) t.equal(other, undefined, name)
    else t.match(other, expected, name)
  }
  t.equal(otherFileSystem(disk, withoutUuid), undefined, 'a UUID that udev has not found yet')
  const on = (device: Partial<Device>, uuid?: string): DiskDescription => ({
    ...withoutUuid,
    ...(uuid !== undefined && { uuid }),
    devices: [{ name: 'sda', model: 'A', bytes: 10 ** 12, ...device }],
  })
  t.equal(otherFileSystem(on({}), on({ name: 'sdb' })), undefined, 'the same device under another name')
  t.match(
    otherFileSystem(on({}), on({ model: 'B' })),
    /\(A, 1000000000000 bytes\), and .*\(B, /,
    'no UUID, another model',
  )
  t.match(otherFileSystem(on({}, 'one'), on({ bytes: 10 ** 9 })), /1000000000 bytes/, 'half a UUID, another size')
  t.equal(otherFileSystem(on({}, 'one'), on({ bytes: 10 ** 9 }, 'one')), undefined, 'the UUID decides')
})

await t.test('describeDisk finds the file system that a directory is on', async (t) => {
  const directory = join(scratch(t), 'new')
  mkdirSync(directory)
  const found = describeDisk(directory)
  t.match(found, { fileSystem: /^\w/, mountPoint: /^\//, root: /^\//, options: [/./] })
  for (const device of found.devices) t.match(device, { name: /./ })
  t.match(machineDigest(), /^[0-9a-f]{32}$/)
})
