/** What a barrier makes of each answer of the kernel: to AIO, to the threads that stand in for it, and to the hint before it. */
// Own process: it sets by which calls a process syncs, which is decided once.
import { closeSync, constants, openSync } from 'node:fs'
import { constants as osConstants } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { aioKernel } from '../../native/aio-kernel.js'
import { answer, type Answer } from '../../native/libc-calls.js'
import { Lane } from '../../../native/index.js'
import { startWriteOutAll, syncAll } from '../../../src/durable/posix/sync.js'
import { scratch } from '../scratch.js'
import { replaceCall } from '../system-calls.js'

const { errno } = osConstants

function file(t: Test, flags = constants.O_RDWR | constants.O_CREAT): number {
  const descriptor = openSync(join(scratch(t), 'file'), flags)
  t.teardown(() => closeSync(descriptor))
  return descriptor
}

const codes = (outcomes: readonly (Error | undefined)[]): (string | undefined)[] =>
  outcomes.map(
    (outcome) => outcome && `${(outcome as NodeJS.ErrnoException).syscall} ${(outcome as NodeJS.ErrnoException).code}`,
  )

/** Counts the contexts, and records the descriptors whose fsync runs on a thread. */
function watched(t: Test, made: () => Answer = () => 0): { contexts: () => number; synced: number[] } {
  let contexts = 0
  const synced: number[] = []
  answer(t, {
    io_setup() {
      contexts += 1
      return made()
    },
  })
  replaceCall(t, 'fsync', (real) => (...args) => {
    synced.push(args[0] as number)
    return real(...args)
  })
  return { contexts: () => contexts, synced }
}

await t.test('the hint: a file system that has no write-out has refused it, not failed to write', async (t) => {
  const rows: [Answer, string | undefined][] = [
    ['ENOSYS', undefined],
    ['ESPIPE', undefined],
    ['EPERM', undefined],
    ['EINVAL', undefined],
    ['EIO', 'sync_file_range EIO'],
    ['ENOSPC', 'sync_file_range ENOSPC'],
  ]
  for (const [code, outcome] of rows) {
    answer(t, { sync_file_range: () => code })
    t.same(codes(await startWriteOutAll([7])), [outcome], String(code))
  }
  const handed: unknown[] = []
  answer(t, {
    sync_file_range(descriptor, _offset, _length, flags) {
      handed.push([descriptor, flags])
      return descriptor === 9 ? 'EIO' : 0
    },
  })
  t.same(codes(await startWriteOutAll([7, 8, 9])), [undefined, undefined, 'sync_file_range EIO'])
  // SYNC_FILE_RANGE_WRITE; for the last, with both waits.
  t.same(handed, [
    [7, 2],
    [8, 2],
    [9, 7],
  ])
})

await t.test('no context is to be had: threads this time, and AIO again when the table has emptied', async (t) => {
  const descriptor = file(t)
  const answers: Answer[] = ['EAGAIN', 0]
  const { contexts, synced } = watched(t, () => answers.shift() ?? 0)
  const kernel = aioKernel(t, {})
  t.same(await syncAll([descriptor]), [undefined])
  t.same(synced, [descriptor])
  t.same(await syncAll([descriptor]), [undefined])
  t.same(await syncAll([descriptor]), [undefined])
  t.equal(contexts(), 2, 'and the context is kept for the next barrier')
  t.equal(kernel.taken.length, 2)
  t.equal(synced.length, 1)
})

await t.test('an fsync that AIO cannot do is done on a thread, whose answer counts', async (t) => {
  const { synced } = watched(t)
  const [good, bad] = [file(t), 999_999]
  const kernel = aioKernel(t, { submits: ['EINVAL', 'EINVAL', 'EBADF'] })
  t.same(codes(await syncAll([good, bad, 7])), [undefined, 'fsync EBADF', 'io_submit EBADF'])
  t.same(synced, [good, bad])
  t.equal(kernel.taken.length, 0)
  const failed = aioKernel(t, { completions: [[[0, -errno.EINVAL]]] })
  t.same(codes(await syncAll([good])), ['fsync EINVAL'], 'an fsync that has run and failed is not run again')
  t.equal(failed.taken.length, 1)
  t.equal(synced.length, 2)
})

await t.test(
  'after lost completions no descriptor counts as synced, and the next barrier makes a new context',
  async (t) => {
    const { contexts, synced } = watched(t)
    aioKernel(t, { completions: ['EIO'] })
    t.same(codes(await syncAll([7, 8])), ['io_getevents EIO', 'io_getevents EIO'])
    const before = contexts()
    aioKernel(t, {})
    t.same(await syncAll([7, 8]), [undefined, undefined])
    t.equal(contexts(), before + 1)
    t.same(synced, [], 'no fsync on a thread makes it good')
  },
)

/** A barrier whose completion is held back; how many are under way. */
function heldBarriers(t: Test): { running: () => number; end: () => void } {
  const held: (() => void)[] = []
  aioKernel(t, {})
  answer(t, {
    io_submit: (_context, count) => Number(count),
    io_getevents: () => new Promise<Answer>((resolve) => held.push(() => resolve('EIO'))),
  })
  return { running: () => held.length, end: () => held.shift()?.() }
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await setImmediate()
}

await t.test('one barrier at a time in a lane, and lanes beside one another', async (t) => {
  watched(t)
  const { running, end } = heldBarriers(t)
  const barriers: Promise<unknown>[] = []
  const [one, other] = [new Lane(), new Lane()]
  const begin = async (lane?: Lane): Promise<number> => {
    const barrier = (): Promise<unknown> => syncAll([7])
    barriers.push(lane ? lane.run(barrier) : barrier())
    await settled()
    return running()
  }
  t.equal(await begin(), 1)
  t.equal(await begin(), 1, 'without a lane, too')
  t.equal(await begin(one), 2)
  t.equal(await begin(one), 2)
  t.equal(await begin(other), 3)
  for (let left = 5; left > 0; left--) {
    end()
    await settled()
  }
  t.equal(running(), 0)
  const ended = await Promise.race([Promise.all(barriers).then(() => barriers.length), settled()])
  t.equal(ended, 5, 'each has had its turn')
})

await t.test('barriers use threads on request, and for good once the kernel has refused AIO', async (t) => {
  const descriptor = file(t)
  const { contexts, synced } = watched(t)
  const kernel = aioKernel(t, { submits: [1, 'EPERM'] })
  process.env['HOLDFAST_AIO'] = 'off'
  t.teardown(() => delete process.env['HOLDFAST_AIO'])
  t.same(await syncAll([descriptor]), [undefined])
  t.same([kernel.taken.length, synced.length], [0, 1])
  process.env['HOLDFAST_AIO'] = 'on'
  t.same(await syncAll([descriptor]), [undefined])
  t.same([kernel.taken.length, synced.length], [1, 1])
  t.same(await syncAll([descriptor]), [undefined])
  t.same([kernel.calls.length, synced.length], [3, 2], 'refused: by a thread')
  const before = contexts()
  t.same(await syncAll([descriptor]), [undefined])
  t.same([kernel.calls.length, synced.length, contexts()], [3, 3, before], 'not asked again')
})
