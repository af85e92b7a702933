// Own process: it sets by which calls a process syncs, which is decided once.
import { closeSync, constants, mkdirSync, openSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import {
  barrier,
  merged,
  type PendingSync,
  shared,
  sharedDirectory,
  syncBelow,
} from '../../../src/durable/path/barrier.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { behindLeadingCommit, startWriteOutAll, syncAll, syncOnThreads } from '../../../src/durable/posix/sync.js'
import { failure } from '../intercepted.js'
import { scratch } from '../scratch.js'

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

const real = new NodeFileSystem()

/** What the barrier calls, and how each call goes, by descriptor. */
class Watched extends NodeFileSystem {
  readonly calls: string[] = []
  readonly failures = new Map<string, Error>()

  #answer(call: string, descriptors: readonly number[]): Promise<(Error | undefined)[]> {
    this.calls.push(`${call} ${descriptors.join()}`)
    const whole = this.failures.get(call)
    if (whole) throw whole
    return Promise.resolve(descriptors.map((descriptor) => this.failures.get(`${call} ${descriptor}`)))
  }

  override async startWriteOut(files: readonly number[]) {
    return this.#answer('write-out', files)
  }

  override async sync(descriptors: readonly number[]) {
    return this.#answer('fsync', descriptors)
  }
}

const pending = (descriptor: number, type: 'file' | 'directory', ...owners: string[]): PendingSync<string> => ({
  descriptor,
  type,
  owners,
})
const all = [pending(1, 'file', 'a'), pending(2, 'file', 'b'), pending(3, 'directory', 'a', 'b')]

await t.test('a barrier: the files are written out, then everything is synced, in one call each', async (t) => {
  const fs = new Watched()
  t.equal((await barrier(fs, all)).size, 0)
  t.same(fs.calls, ['write-out 1,2', 'fsync 1,2,3'])
  const directories = new Watched()
  await barrier(directories, [pending(3, 'directory', 'a')])
  t.same(directories.calls, ['fsync 3'], 'directories have no write-out')
  const nothing = new Watched()
  await barrier(nothing, [])
  t.same(nothing.calls, [])
})

await t.test(
  'a failure is that of each who needed it, the first one, and nothing of theirs is tried again',
  async (t) => {
    const fs = new Watched()
    const [first, second] = [new Error('first'), new Error('second')]
    fs.failures.set('write-out 1', first).set('fsync 3', second)
    t.same(
      await barrier(fs, all),
      new Map([
        ['a', first],
        ['b', second],
      ]),
    )
    t.same(fs.calls, ['write-out 1,2', 'fsync 2,3'], 'an fsync would answer 0 for what the write-out has lost')
    const both = new Watched()
    both.failures.set('fsync 1', first).set('fsync 3', second)
    t.same(
      await barrier(both, all),
      new Map([
        ['a', first],
        ['b', second],
      ]),
    )
    const none = new Watched()
    none.failures.set('write-out 1', first).set('write-out 2', second)
    await barrier(none, all)
    t.same(none.calls, ['write-out 1,2'], 'nobody is left who needs a sync')
    const refused = new Watched()
    refused.failures.set('fsync', second)
    t.same(
      await barrier(refused, all),
      new Map([
        ['a', second],
        ['b', second],
      ]),
      'nobody knows what has reached the disk',
    )
  },
)

await t.test('a directory that several need is synced once; the same inode on another device is another', async (t) => {
  const root = scratch(t)
  const descriptor = openSync(root, 'r')
  t.teardown(() => closeSync(descriptor))
  const attributes = await real.attributes(descriptor)
  const same = await sharedDirectory(real, descriptor)
  t.same(same, shared(descriptor, attributes))
  const other = shared(91, { ...attributes, device: attributes.device + 1 })
  const third = shared(92, { ...attributes, inode: attributes.inode + 1n })
  const needs = new Map([
    ['a', [same, other]],
    ['b', [{ ...same, descriptor: 93 }, third]],
  ])
  t.same(
    merged(['a', 'b'], (owner) => needs.get(owner) ?? []),
    [
      { descriptor, type: 'directory', owners: ['a', 'b'] },
      { descriptor: 91, type: 'directory', owners: ['a'] },
      { descriptor: 92, type: 'directory', owners: ['b'] },
    ],
  )
})

await t.test(
  'syncBelow syncs each entry below a directory to the last, and the open descriptors behind them',
  async (t) => {
    const root = scratch(t)
    mkdirSync(join(root, 'sub'))
    for (const name of ['a', 'sub/b', 'sub/c']) writeFileSync(join(root, name), '')
    const synced: string[][] = []
    const opens: string[] = []
    class Bounded extends NodeFileSystem {
      override readonly stagedFiles = 3
      override openDirectory(parent: number, name: string): Promise<number> {
        opens.push(name)
        return super.openDirectory(parent, name)
      }
      override async sync(descriptors: readonly number[]) {
        if (synced.length > 4) throw new Error('it does not end')
        synced.push(descriptors.map((fd) => readlinkSync(`/proc/self/fd/${fd}`).slice(root.length)).sort())
        return super.sync(descriptors)
      }
    }
    const fs = new Bounded()
    const opened = await fs.openPath(root)
    const before = readdirSync('/proc/self/fd').length
    await syncBelow(fs, opened, [opened])
    t.equal(readdirSync('/proc/self/fd').length, before, 'nothing else stays open')
    t.strictSame(opens, ['sub'], 'a directory comes behind what is in it, and is opened once')
    t.strictSame(synced.flat().sort(), ['', '/a', '/sub', '/sub/b', '/sub/c'])
    t.strictSame(
      synced.map((paths) => paths.length),
      [3, 2],
    )
    t.ok(synced[1]?.includes(''), 'the directory itself is the last')
    rmSync(join(root, 'sub'), { recursive: true })
    rmSync(join(root, 'a'))
    synced.splice(0)
    await syncBelow(fs, opened, [opened])
    t.strictSame(synced, [['']], 'one with nothing in it, too')
    mkdirSync(join(root, 'sub'))
    writeFileSync(join(root, 'sub/b'), '')
    class Failing extends NodeFileSystem {
      override readonly stagedFiles = 1
      override sync(): Promise<(Error | undefined)[]> {
        return Promise.resolve([failure('EIO', 'fsync')])
      }
    }
    await t.rejects(syncBelow(new Failing(), opened, [opened]), { code: 'EIO' })
    t.equal(readdirSync('/proc/self/fd').length, before, 'nor does it where one cannot be synced')
    await fs.close(opened)
  },
)
