/** What this program makes of machines unlike this one: of their limits, mounts, processes and disks, as the kernel tells them. */
import fs, { closeSync, constants, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { NodeFileSystem, bound } from '../../../src/durable/posix/file-system.js'
import { commandOf, processText } from '../../../src/durable/posix/holdings.js'
import { codeOf, failureOf } from '../../../src/errors.js'
import { failure } from '../intercepted.js'
import { scratch } from '../scratch.js'
import { replaceCall, texts } from '../system-calls.js'

const system = new NodeFileSystem()

function opened(t: Test, path: string): number {
  const descriptor = openSync(path, 'r')
  t.teardown(() => closeSync(descriptor))
  return descriptor
}

await t.test('openLock makes a missing lock, and none where it may not open the existing one', async (t) => {
  const parent = opened(t, scratch(t))
  const codes = ['EACCES']
  const asked: unknown[] = []
  replaceCall(t, 'open', () => (_path, flags, _mode, done) => {
    asked.push(flags)
    ;(done as (error: Error) => void)(failure(codes.shift() ?? 'ENOSPC', 'open'))
  })
  const lock = async (): Promise<unknown> => codeOf(await failureOf(system.openLock(parent, 'lock')))
  const { O_RDWR, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants
  const there = O_RDWR | O_NOFOLLOW | O_NONBLOCK
  t.equal(await lock(), 'EACCES')
  t.strictSame(asked.splice(0), [there])
  codes.push('ENOENT')
  t.equal(await lock(), 'ENOSPC')
  t.strictSame(asked, [there, there | O_CREAT])
})

await t.test('a share of the open files that this process may have, the soft limit, and one at least', async (t) => {
  const limits = (soft: string): Record<string, string> => ({
    '/proc/self/limits': `Limit                     Soft Limit           Hard Limit           Units\nMax open files            ${soft}                 4096                 files\n`,
  })
  for (const [soft, share] of [
    ['64', 16],
    ['1024', 256],
    ['1028', 256],
    ['2', 1],
    ['unlimited', 256],
  ] as const) {
    texts(t, limits(soft))
    t.equal(bound(256, 1 / 4), share, soft)
  }
})

await t.test(
  'of its descriptors, a step may use a quarter for staged files, a 32nd for directories, a 64th for calls',
  async (t) => {
    for (const [limit, ...shares] of [
      [192, 48, 6, 3],
      [64, 16, 2, 1],
      [1_000_000, 256, 32, 8],
    ] as const) {
      texts(t, { '/proc/self/limits': `Max open files            ${limit}    ${limit}    files\n` })
      const { stagedFiles, openDirectories, callsAtATime } = new NodeFileSystem()
      t.strictSame([stagedFiles, openDirectories, callsAtATime], shares, `${limit} descriptors`)
    }
  },
)

await t.test('mountsBelow answers the mounts below a directory by relative names', async (t) => {
  const root = scratch(t)
  const line = (mountPoint: string): string => `1 1 0:1 / ${mountPoint} rw - tmpfs none rw\n`
  texts(t, { '/proc/self/mountinfo': ['/', '/proc', root, `${root}/a`, `${root}/a/b`, `${root}x`].map(line).join('') })
  t.strictSame(await system.mountsBelow(opened(t, root)), ['a', 'a/b'])
  const below = root.slice(1)
  t.strictSame(await system.mountsBelow(opened(t, '/')), ['proc', below, `${below}/a`, `${below}/a/b`, `${below}x`])
})

await t.test('a process that has ended has no name, and is in no control group', async (t) => {
  // More than any kernel gives (PID_MAX_LIMIT).
  const none = 2 ** 23
  t.strictSame([processText(none, 'comm'), processText(none, 'cgroup')], ['', ''])
  t.equal(commandOf(none), '')
  t.equal(commandOf(process.pid), readFileSync('/proc/self/comm', 'utf8').trim())
  t.match(processText(process.pid, 'cgroup'), /^\d+:/)
})

await t.test('free answers bytes, and inodes where the file system counts them', async (t) => {
  const { statfs } = fs.promises
  t.teardown(() => Object.assign(fs.promises, { statfs }))
  const free = async (files: number, ffree: number): Promise<unknown> => {
    Object.assign(fs.promises, { statfs: () => Promise.resolve({ bsize: 512, bavail: 3, bfree: 5, files, ffree }) })
    return system.free(opened(t, '/'))
  }
  t.strictSame(await free(9, 7), { bytes: 1536, inodes: 7, blockSize: 512 })
  t.strictSame(await free(1, 1), { bytes: 1536, inodes: 1, blockSize: 512 })
  t.strictSame(await free(0, 0), { bytes: 1536, inodes: undefined, blockSize: 512 }, 'as btrfs says')
})

await t.test('read makes one call where the size says that this was all, with a known or unknown size', async (t) => {
  const path = join(scratch(t), 'file')
  for (const size of [1, 16_383, 16_384, 100_000]) {
    writeFileSync(path, Buffer.alloc(size))
    const file = opened(t, path)
    for (const known of [undefined, size]) {
      let calls = 0
      replaceCall(t, 'read', (real) => (...args) => {
        calls += 1
        return real(...args)
      })
      const lengths: number[] = []
      for await (const piece of system.read(file, known)) lengths.push(piece.length)
      t.strictSame([lengths, calls], [[size], 1], `${size} bytes`)
    }
  }
})
