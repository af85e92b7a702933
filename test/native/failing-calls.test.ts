/** The arguments that native/ hands to libc and the kernel, and its reading of each answer: also of those that no disk here would give. */
// Own process: koffi is changed before native/ is loaded.
import { constants, openSync } from 'node:fs'
import { constants as osConstants } from 'node:os'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { answer, type Answer, failureOf, memoryAt, without } from './libc-calls.js'
import * as native from '../../native/index.js'
import { callAsync, declare } from '../../native/libc.js'

const { errno } = osConstants

/** One failed call each: its arguments, and its error. */
await t.test('a failure names the call and its errno, and each call gets the constants of the kernel', async (t) => {
  const called: unknown[] = []
  const fails = (code: Answer) => {
    return (...args: readonly unknown[]): Answer => {
      called.push(args)
      return code
    }
  }
  answer(t, {
    flock: fails('ENOLCK'),
    fsetxattr: fails('ENOSPC'),
    setrlimit: fails('EPERM'),
    prctl: fails('EINVAL'),
    sync_file_range: fails('EIO'),
    umount2: fails('EBUSY'),
    mount: fails('EACCES'),
    unshare: fails('EPERM'),
    openat2: fails('ENOSYS'),
  })
  const value = Buffer.from('x')
  // Linux, include/uapi/linux/{fcntl,fs,mount,prctl,resource,sched,xattr}.h.
  const limit = new Uint8Array(new BigUint64Array([1n, 1n]).buffer)
  const calls: [() => unknown, failure: string, ...handed: unknown[][]][] = [
    [() => native.tryLock(7), 'flock ENOLCK', [7, 2 | 4]],
    [() => native.setAttribute(7, 'user.a', value), 'fsetxattr ENOSPC', [7, 'user.a', value, 1, 0]],
    [() => native.disableCoreDumps(), 'setrlimit EPERM', [4, limit], [4, 0]],
    [() => native.startWriteOut(7, false), 'sync_file_range EIO', [7, 0, 0, 2]],
    [() => native.startWriteOut(7, true), 'sync_file_range EIO', [7, 0, 0, 1 | 2 | 4]],
    [() => native.unmount('/a'), 'umount2 EBUSY', ['/a', 2]],
    [() => native.bindMount('/a', '/b'), 'mount EACCES', ['/a', '/b', null, 0x1000, null]],
    [() => native.mountMemory('/a'), 'mount EACCES', ['none', '/a', 'tmpfs', 0, 'mode=0755,size=1m']],
    [() => native.enterOwnMountNamespace(), 'unshare EPERM', [0x20000]],
    [() => native.startInOwnPidNamespace(), 'unshare EPERM', [0x20000000]],
  ]
  for (const [call, failure, ...handed] of calls) {
    t.equal(await failureOf(call), failure)
    t.same(called.splice(0), handed, failure)
  }
  answer(t, { prctl: fails(0), openat2: fails(42) })
  t.equal(await failureOf(() => native.disableCoreDumps()), undefined, 'the second choice')
  t.equal(await failureOf(native.openOnSameMount(7, 'a', 0)), 42, 'no flag is none too few')
})

await t.test('a mount has an ID where the kernel says that it has told it', async (t) => {
  const asked: unknown[] = []
  const statx = (mask: number, result: Answer) => {
    return (...args: readonly unknown[]): Answer => {
      asked.push(args.slice(0, 4))
      const view = memoryAt(args[4])
      view.setUint32(0, mask, true)
      view.setBigUint64(144, 77n, true)
      return result
    }
  }
  const id = (mask: number, result: Answer): number | undefined => {
    answer(t, { statx: statx(mask, result) })
    return native.mountId(7)
  }
  t.equal(id(0x17ff, 0), 77)
  t.equal(id(0x7ff, 0), undefined, 'before Linux 5.8: all but that')
  t.equal(id(0x17ff, 'ENOSYS'), undefined, 'a call that fails has told nothing')
  // AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID | STATX_BTIME.
  t.same(new Set(asked.map((args) => JSON.stringify(args))), new Set(['[7,"",20480,6144]']))
})

await t.test('attributes longer than the kernel allows, and names that are no text', async (t) => {
  const sizes: unknown[] = []
  const tooSmall = (size: unknown): Answer => (sizes.push(size) > 2 ? 0 : 'ERANGE')
  answer(t, {
    fgetxattr: (_file, _name, _value, size) => tooSmall(size),
    flistxattr: (_file, _names, size) => tooSmall(size),
  })
  t.equal(await failureOf(native.getAttribute(7, 'user.a')), 'fgetxattr ERANGE')
  t.same(sizes.splice(0), [256, 65_536], 'XATTR_SIZE_MAX')
  t.equal(await failureOf(native.listAttributes(7)), 'flistxattr ERANGE')
  t.same(sizes, [256, 65_536])
  answer(t, {
    flistxattr(_file, names) {
      ;(names as Uint8Array).set([0xff, 0])
      return 2
    },
  })
  t.equal(await failureOf(native.listAttributes(7)), 'flistxattr EILSEQ')
})

await t.test('where a file system has no attributes, or a file not this one, there is none', async (t) => {
  for (const code of ['ENOTSUP', 'ENODATA'] as const) {
    answer(t, { fgetxattr: () => code, lgetxattr: () => code, flistxattr: () => 'ENOTSUP' })
    t.equal(await failureOf(native.getAttribute(7, 'user.a')), undefined, code)
    t.equal(await failureOf(native.getAttributeAt('/a', 'user.a')), undefined, code)
    t.strictSame(await failureOf(native.listAttributes(7)), [])
  }
})

await t.test('freed memory goes back to the system, where libc can do that', async (t) => {
  const pads: unknown[] = []
  answer(t, { malloc_trim: (pad) => pads.push(pad) })
  without(['malloc_trim'], () => native.returnFreedMemory())
  t.same(pads, [], 'musl')
  native.returnFreedMemory()
  t.same(pads, [0])
  native.returnFreedMemory()
  t.same(pads, [0, 0])
})

/** Every turn that is waited for behind calls which are answered at once. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await setImmediate()
}

function inLane(work: () => void): void {
  void new native.Lane().run(() => {
    work()
    return Promise.resolve()
  })
}

await t.test('so many calls at a time, and the next once one has ended, however it has', async (t) => {
  const parent = declare('getppid', 'int', [])
  let started = 0
  const held: ((answer: Answer) => void)[] = []
  answer(t, {
    getppid() {
      started += 1
      return new Promise<Answer>((resolve) => held.push(resolve))
    },
  })
  const ended: unknown[] = []
  const call = (): unknown =>
    callAsync(parent).then(
      (result) => ended.push(result),
      (error: unknown) => ended.push(error),
    )
  const failure = new Error('koffi has no memory for it')
  for (const [bound, run] of [
    [32, (work: () => void) => work()],
    [4, inLane],
  ] as const) {
    started = 0
    run(() => Array.from({ length: bound + 2 }, call))
    await settled()
    t.equal(started, bound)
    held.shift()?.('ENOMEM')
    await settled()
    t.equal(started, bound + 1, 'in the place of one that has ended')
    held.shift()?.(failure)
    await settled()
    t.equal(started, bound + 2, 'in the place of one that has failed')
    t.match(ended.splice(0), [{ result: -1, errno: errno.ENOMEM }, failure])
    for (const end of held.splice(0)) end(0)
    await settled()
    t.equal(ended.splice(0).length, bound, 'all of them')
  }
})

await t.test('the kernel answers the calls that the test does not', async (t) => {
  const file = openSync('/proc/self/status', constants.O_RDONLY)
  t.type(native.mountId(file), 'number')
  t.equal(await failureOf(native.listAttributes(999_999)), 'flistxattr EBADF')
})
