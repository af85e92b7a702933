// Own process: calls of its hung disks hold the threads of the process.
import { execFileSync, spawn } from 'node:child_process'
import { closeSync, existsSync, fsyncSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import { until } from '../until.js'
import { scratch } from '../durable/scratch.js'
import { Disk, missingForDisk } from './disk.js'
import { readLog } from './write-log.js'

const missing = await missingForDisk(['ext4'])
const options = missing.length === 0 ? {} : { skip: `needs ${missing.join(', ')}` }
const megabyte = 2 ** 20

async function diskFor(test: Test): Promise<Disk> {
  const disk = await Disk.create(64 * megabyte)
  test.teardown(() => disk.destroy())
  return disk
}

/** Writes blocks to the device and syncs it; undefined, or the errno of what failed. */
function writeAndSync(disk: Disk, ...blocks: { at: number; bytes: Buffer }[]): string | undefined {
  const device = openSync(disk.device, 'r+')
  try {
    for (const { at, bytes } of blocks) writeSync(device, bytes, 0, bytes.length, at)
    fsyncSync(device)
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code
  } finally {
    closeSync(device)
  }
}

const block = (text: string, at: number): { at: number; bytes: Buffer } => ({
  at,
  bytes: Buffer.alloc(4096, text),
})

void t.test('a flush takes as long as asked, and disk and kernel count the same', options, async (t) => {
  const disk = await diskFor(t)
  await disk.flushTime(30)
  await disk.ask('reset')
  const kernel = disk.kernelFlushes()
  const start = performance.now()
  t.equal(writeAndSync(disk, block('a', 0), block('b', megabyte)), undefined)
  t.ok(performance.now() - start >= 30, 'the sync waited for the flush')
  const counts = await disk.counts()
  t.equal(counts.flushes, 1)
  t.equal(counts.writes, 2)
  t.equal(counts.writtenBytes, 8192)
  t.equal(disk.kernelFlushes() - kernel, 1)
})

void t.test('the disk reads written bytes back, from the device and from a saved image', options, async (t) => {
  const disk = await diskFor(t)
  const places = [0, 5 * megabyte, 64 * megabyte - 4096]
  writeAndSync(disk, ...places.map((at) => block(`at ${at};`, at)))
  const image = join(scratch(t), 'image')
  await disk.ask(`save ${image}`)
  const saved = readFileSync(image)
  t.equal(saved.length, 64 * megabyte)
  for (const at of places) {
    t.same(saved.subarray(at, at + 4096), block(`at ${at};`, at).bytes)
    const direct = [`if=${disk.device}`, 'iflag=direct', 'bs=4096', 'count=1', `skip=${at / 4096}`, 'status=none']
    t.same(execFileSync('dd', direct), block(`at ${at};`, at).bytes, 'past the page cache')
  }
})

void t.test('the chosen flush or write fails, and no other', options, async (t) => {
  const disk = await diskFor(t)
  for (const what of ['flush', 'write']) {
    await disk.ask('reset')
    await disk.ask(`fail ${what} 2 1`)
    const outcomes = [1, 2, 3].map((round) => writeAndSync(disk, block(`${what} ${round}`, 0)))
    t.same(outcomes, [undefined, 'EIO', undefined], what)
  }
  await disk.ask('reset')
  await disk.ask('fail flush 1 1000')
  t.same(
    [1, 2].map(() => writeAndSync(disk, block('x', 0))),
    ['EIO', 'EIO'],
    'for good',
  )
})

void t.test('the write log tells which bytes were durable when', options, async (t) => {
  const disk = await diskFor(t)
  const path = join(scratch(t), 'log')
  await disk.ask('reset')
  await disk.ask(`log ${path}`)
  writeAndSync(disk, block('one', 4096))
  await disk.ask('mark one is durable')
  await disk.ask('fail flush 2 1')
  writeAndSync(disk, block('two', 8192))
  await disk.ask('log off')
  writeAndSync(disk, block('three', 4096))
  const records = [...readLog(path)]
  t.same(
    records.map(({ kind, number, offset }) => [kind, number, offset]),
    [
      ['write', 1, 4096],
      ['flush-begun', 1, 0],
      ['flush-ended', 1, 0],
      ['mark', 0, 0],
      ['write', 2, 8192],
      ['flush-begun', 2, 0],
      ['flush-failed', 2, 0],
    ],
  )
  t.same(records[0]?.data, block('one', 0).bytes)
  t.equal(records[3]?.data.toString(), 'one is durable')
})

void t.test('a reader of a torn write log reads up to the cut, and refuses it', options, async (t) => {
  const disk = await diskFor(t)
  const path = join(scratch(t), 'log')
  await disk.ask(`log ${path}`)
  writeAndSync(disk, block('one', 0))
  execFileSync('truncate', ['-s', '-1', path])
  const read: string[] = []
  t.throws(() => {
    for (const { kind } of readLog(path)) read.push(kind)
  }, /ends inside the record/)
  t.same(read, ['write', 'flush-begun'])
})

void t.test('commands that make no sense are refused, and the disk goes on', options, async (t) => {
  const disk = await diskFor(t)
  for (const command of ['fly', 'flush-time soon', 'fail read 1 1', 'fail write x 1', 'mark nothing is logged']) {
    await t.rejects(disk.ask(command), { message: /^disk: / }, command)
  }
  t.equal(writeAndSync(disk, block('x', 0)), undefined)
})

void t.test('a file system on it, and nothing left behind', options, async (t) => {
  const disk = await Disk.create(64 * megabyte)
  const { device, mountPoint } = disk
  const backingFile = readFileSync(`/sys/block/${device.slice('/dev/'.length)}/loop/backing_file`, 'utf8')
  try {
    await disk.format('ext4')
    await disk.mount()
    execFileSync('cp', ['/proc/self/status', join(mountPoint, 'file')])
    await disk.unmount()
    await disk.mount()
    t.ok(existsSync(join(mountPoint, 'file')), 'survives being unmounted')
  } finally {
    await disk.destroy()
  }
  t.notOk(existsSync(mountPoint))
  t.notOk(readFileSync('/proc/self/mounts', 'utf8').includes(mountPoint))
  // Another test may have the device by now: the kernel gives its number out again.
  const inUse = execFileSync('losetup', ['--list', '--noheadings', '--output', 'BACK-FILE']).toString()
  t.not(backingFile.trim(), '')
  t.notOk(inUse.includes(backingFile.trim()), `${backingFile.trim()}: ${inUse}`)
  await disk.destroy()
})

void t.test('the process that made it is killed: the mount and the loop device vanish', options, async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-killed-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  const program = new URL('killed-owner.js', import.meta.url).pathname
  const child = spawn(process.execPath, [program], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, TMPDIR: directory },
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const owner = JSON.parse((await lines.next()).value as string) as { pid: number; device: string }
  const backing = `/sys/block/${owner.device.slice('/dev/'.length)}/loop/backing_file`
  t.ok(existsSync(backing), 'the device is in use')
  process.kill(owner.pid, 'SIGKILL')
  // The pipe ends with the last process that holds it: the disk's own.
  for await (const line of lines) t.comment(line)
  await until('the device is free', () => !existsSync(backing))
})
