/** Mounts a disk in a private mount namespace, says so, and waits for its kill: for disk.test.ts. */
import { Disk } from './disk.js'
import { enterPrivateMounts } from './private-mounts.js'

await enterPrivateMounts()
const disk = await Disk.create(64 * 2 ** 20)
await disk.format('ext4')
await disk.mount()
console.log(JSON.stringify({ pid: process.pid, device: disk.device }))
setInterval(() => undefined, 1000)
