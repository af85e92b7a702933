/** The kernel's possible answers to a barrier by AIO, and the outcome of each: first of a scripted kernel, then of the real one. */
// Own process: koffi is changed before native/ is loaded.
import { closeSync, constants as modes, mkdtempSync, openSync, rmSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { answer, type Answer, failureOf, memoryAt, withDirt } from './libc-calls.js'
import { aioKernel, type Script } from './aio-kernel.js'
import * as native from '../../native/index.js'

const { errno } = constants

type Outcomes = Awaited<ReturnType<native.AioContext['sync']>>
const codes = (outcomes: Outcomes): (string | undefined)[] =>
  outcomes.map((outcome) => outcome && `${outcome.syscall} ${outcome.code}`)

interface Barrier extends Script {
  readonly files: readonly number[]
  readonly outcomes: readonly (string | undefined)[]
  readonly calls: readonly string[]
}

const ok = undefined

/** One barrier each: the kernel's answers, the outcome, and the requests. */
const barriers: Record<string, Barrier> = {
  'all at once': {
    files: [7, 8, 9],
    outcomes: [ok, ok, ok],
    calls: ['submit 7,8,9: 3', 'collect 3 to 3'],
  },
  'each its own answer, out of order': {
    files: [7, 8, 9],
    completions: [
      [
        [2, -errno.EIO],
        [0, 0],
        [1, -errno.ENOSPC],
      ],
    ],
    outcomes: [ok, 'fsync ENOSPC', 'fsync EIO'],
    calls: ['submit 7,8,9: 3', 'collect 3 to 3'],
  },
  'fewer answers than are waited for, and what the one before left in the buffer': {
    files: [6, 7, 8, 9],
    completions: [
      [
        [0, 0],
        [1, 0],
      ],
      [[2, 0]],
      [[3, -errno.EIO]],
    ],
    outcomes: [ok, ok, ok, 'fsync EIO'],
    calls: ['submit 6,7,8,9: 4', 'collect 4 to 4', 'collect 2 to 2', 'collect 1 to 1'],
  },
  'interrupted while one is in flight': {
    files: [7],
    completions: ['EINTR', [[0, -errno.EIO]]],
    outcomes: ['fsync EIO'],
    calls: ['submit 7: 1', 'collect 1 to 1', 'collect 1 to 1'],
  },
  'a full ring with one in flight: collected first, then gone on with': {
    files: [7, 8, 9],
    submits: [1, 'EAGAIN'],
    completions: [[[0, 0]]],
    outcomes: [ok, ok, ok],
    calls: ['submit 7,8,9: 1', 'submit 8,9: EAGAIN', 'collect 1 to 1', 'submit 8,9: 2', 'collect 2 to 2'],
  },
  'a full ring with two in flight: one is waited for': {
    files: [7, 8, 9],
    submits: [2, 'EAGAIN'],
    completions: [[[1, 0]]],
    outcomes: [ok, ok, ok],
    calls: ['submit 7,8,9: 2', 'submit 9: EAGAIN', 'collect 1 to 2', 'submit 9: 1', 'collect 2 to 2'],
  },
  'a full ring with nothing in flight: its own failure': {
    files: [7, 8],
    submits: ['EBADF', 'EAGAIN'],
    outcomes: ['io_submit EBADF', 'io_submit EAGAIN'],
    calls: ['submit 7,8: EBADF', 'submit 8: EAGAIN'],
  },
  'the first is refused, whatever the kernel thinks of AIO': {
    files: [7, 8, 9],
    submits: ['EINVAL'],
    outcomes: ['io_submit EINVAL', ok, ok],
    calls: ['submit 7,8,9: EINVAL', 'submit 8,9: 2', 'collect 2 to 2'],
  },
  'one behind the first is refused': {
    files: [7, 8, 9],
    submits: [1, 'ENOSYS'],
    outcomes: [ok, 'io_submit ENOSYS', ok],
    calls: ['submit 7,8,9: 1', 'submit 8,9: ENOSYS', 'submit 9: 1', 'collect 2 to 2'],
  },
}

/** The kernel's table of contexts is never asked: the number is handed to the script alone. */
function context(t: Test, made: Answer = 0): native.AioContext {
  answer(t, { io_setup: () => made })
  // The kernel refuses a context that is not zero (io_setup(2)), and reads each byte of a request.
  return withDirt(0xaa, () => native.AioContext.create())
}

for (const [name, { files, outcomes, calls, ...script }] of Object.entries(barriers)) {
  await t.test(`a barrier: ${name}`, async (t) => {
    const kernel = aioKernel(t, script)
    const one = context(t)
    t.same(codes(await one.sync(files)), outcomes)
    t.same(kernel.calls, calls)
    t.equal(one.broken, false)
  })
}

await t.test('AIO that is refused: nothing is in flight, and the context is whole', async (t) => {
  for (const code of ['ENOSYS', 'EPERM', 'EACCES', 'EAGAIN'] as const) {
    const kernel = aioKernel(t, { submits: [code] })
    const one = context(t)
    const refused = await one.sync([7, 8]).catch((error: unknown) => error)
    t.match(refused, { name: 'AioRefused', reason: { code, syscall: 'io_submit' } }, code)
    t.same(kernel.calls, [`submit 7,8: ${code}`], 'not one more')
    t.equal(one.broken, false)
    t.throws(() => context(t, code), { name: 'AioRefused', reason: { code, syscall: 'io_setup' } })
  }
  answer(t, { io_setup: (_count, address) => Number(memoryAt(address).getBigUint64(0, true)) })
  t.doesNotThrow(() => withDirt(0xaa, () => native.AioContext.create()), 'the context is zero before it is made')
})

await t.test('answers that cannot be collected: the context is not used again, even with one in flight', async (t) => {
  const kernel = aioKernel(t, { completions: ['EIO'] })
  const one = context(t)
  t.equal(await failureOf(one.sync([7])), 'io_getevents EIO')
  t.equal(one.broken, true)
  const asked = kernel.calls.length
  for (const files of [[8], [-1]]) t.match(await failureOf(one.sync(files)), /has unanswered requests and may not be/)
  t.equal(kernel.calls.length, asked, 'the kernel is not asked')
})

await t.test("an answer to an earlier barrier's request is not taken for this one's", async (t) => {
  const first = aioKernel(t, {})
  const one = context(t)
  await one.sync([7, 8])
  const [earlier] = first.taken
  const second = aioKernel(t, { completions: [[[earlier?.data ?? 0n, -errno.EIO]], [[0, 0]], [[1, 0]]] })
  t.same(codes(await one.sync([7, 8])), [ok, ok])
  t.same(second.calls.slice(1), ['collect 2 to 2', 'collect 2 to 2', 'collect 1 to 1'])
  const data = [...first.taken, ...second.taken].map((request) => request.data)
  t.equal(new Set(data).size, 4, 'no two requests have the same data')
})

const directory = mkdtempSync(join(tmpdir(), 'holdfast-aio-'))
t.teardown(() => rmSync(directory, { recursive: true, force: true }))

function openFiles(test: Test, count: number): number[] {
  const descriptors = Array.from({ length: count }, (_, index) =>
    openSync(join(directory, `file-${index}`), modes.O_RDWR | modes.O_CREAT),
  )
  test.teardown(() => descriptors.forEach((fd) => closeSync(fd)))
  return descriptors
}

await t.test('files and a directory, all at once', async (t) => {
  const context = native.AioContext.create()
  const fds = openFiles(t, 5)
  fds.push(openSync(directory, modes.O_RDONLY))
  t.same(await context.sync(fds), [undefined, undefined, undefined, undefined, undefined, undefined])
  t.same(await context.sync([]), [])
})

await t.test('more than fit in flight', async (t) => {
  const context = native.AioContext.create()
  const fds = openFiles(t, native.maximumInFlight * 5)
  const outcomes = await context.sync(fds)
  t.equal(outcomes.length, native.maximumInFlight * 5)
  t.ok(outcomes.every((outcome) => outcome === undefined))
})

await t.test('a bad descriptor is its own failure, and the context goes on', async (t) => {
  const context = native.AioContext.create()
  const [first, second, third] = openFiles(t, 3) as [number, number, number]
  const outcomes = await context.sync([first, second, 999_999, third])
  t.same(
    outcomes.map((outcome) => outcome?.code),
    [undefined, undefined, 'EBADF', undefined],
  )
  t.notOk(context.broken)
  t.same(await context.sync([first]), [undefined])
})

await t.test('arguments are checked before the call', async (t) => {
  const context = native.AioContext.create()
  await t.rejects(context.sync([Number.NaN]), { name: 'TypeError', message: 'not a file descriptor: NaN' })
  await t.rejects(context.sync([-1]), { name: 'TypeError' })
  await t.rejects(context.sync([1.5]), { name: 'TypeError' })
})
