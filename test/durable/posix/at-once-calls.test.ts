/**
 * Which calls run at once and which on a thread, and that each ends: by calls of node:fs that the test answers, and a clock of the test.
 */
// Own process: koffi is changed before native/ is loaded.
import { openSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { aioKernel } from '../../native/aio-kernel.js'
import { answer } from '../../native/libc-calls.js'
import * as native from '../../../native/index.js'
import { clock } from '../../../src/clock.js'
import { AtOnceFileSystem } from '../../../src/durable/posix/at-once.js'
import { call, isNameless } from '../../../src/durable/posix/calls.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import * as calls from '../../../src/durable/posix/calls.js'
import { fsync, syncAll } from '../../../src/durable/posix/sync.js'
import { codeOf } from '../../../src/errors.js'
import { failure } from '../intercepted.js'
import { scratch } from '../scratch.js'
import { replaceCall } from '../system-calls.js'

type Done = ((error: Error | null, value?: unknown) => void) | undefined

/** What a call comes to where all that it waits for has been answered: its value, or its errno. */
async function endOf(start: () => Promise<unknown>): Promise<unknown> {
  const goesOn = async (): Promise<string> => {
    for (let turn = 0; turn < 20; turn++) await nextTurn()
    return 'it does not end'
  }
  try {
    return await Promise.race([start(), goesOn()])
  } catch (error) {
    return codeOf(error) ?? 'a defect'
  }
}

/** A number that is no descriptor: the test answers all calls on it, and on names below it. */
const own = 999_999
const pathOf = (name: string): string => `/proc/self/fd/${own}/${name}`

/** Answers a call of node:fs on a thread and at once; records which. Throws on an endless repetition. */
function answered(t: Test, name: string, answerOne: (...args: readonly unknown[]) => unknown): string[] {
  const made: string[] = []
  const isOwn = ([first]: readonly unknown[]): boolean => String(first).includes(String(own))
  const answer = (...args: readonly unknown[]): unknown => {
    if (made.length > 100) throw new Error('it is called without end')
    return answerOne(...args)
  }
  replaceCall(t, `${name}Sync`, (real) => (...args) => {
    if (!isOwn(args)) return real(...args)
    made.push('at once')
    return answer(...args)
  })
  replaceCall(t, name, (real) => (...args) => {
    if (!isOwn(args)) return real(...args)
    made.push('on a thread')
    const done = args.pop() as Done
    try {
      done?.(null, answer(...args))
    } catch (error) {
      done?.(error as Error)
    }
    return undefined
  })
  return made
}

/** A clock that only the test moves. Throws on an endless repetition. */
function ownClock(t: Test): { now: number } {
  const own = { now: clock.now() }
  let asked = 0
  t.intercept(clock, 'now', {
    value: () => {
      asked += 1
      if (asked > 10_000) throw new Error('it is asked without end')
      return own.now
    },
  })
  return own
}

await t.test('a call ends with its answer or its failure, and so does an fsync', async (t) => {
  t.equal(await endOf(() => call<number>(String, (done) => done(null, 7))), 7)
  t.equal(await endOf(() => call<number>(String, (done) => done(failure('EIO', 'read')))), 'EIO')
  let isBroken = false
  answered(t, 'fsync', () => {
    if (isBroken) throw failure('EIO', 'fsync')
  })
  t.equal(await endOf(() => fsync(own)), undefined)
  isBroken = true
  t.equal(await endOf(() => fsync(own)), 'EIO')
})

await t.test('a barrier gives the turn on to the next, in a lane and without one', async (t) => {
  aioKernel(t, {})
  answer(t, { io_setup: () => 0 })
  const lane = new native.Lane()
  for (let time = 1; time <= 2; time++) {
    t.strictSame(await endOf(() => syncAll([7, 8])), [undefined, undefined])
    t.strictSame(await endOf(() => lane.run(() => syncAll([7]))), [undefined])
  }
})

await t.test('a call of node:fs gives its answer or its error, on a thread and at once', async (t) => {
  const made = answered(t, 'open', (path) => {
    if (path === pathOf('none')) throw failure('ENOENT', 'open')
    return 7
  })
  const ends: unknown[] = []
  const open = (path: string): void => calls.open(path, 0, 0o600, (error, file) => ends.push(codeOf(error) ?? file))
  for (const path of ['a', 'none'].map(pathOf)) {
    open(path)
    native.atOnce(() => open(path))
  }
  t.strictSame(made, ['on a thread', 'at once', 'on a thread', 'at once'])
  t.strictSame(ends, [7, 7, 'ENOENT', 'ENOENT'])
})

await t.test('calls run at once for a millisecond, and the next ones after a turn of the event loop', async (t) => {
  const made = answered(t, 'unlink', () => undefined)
  const fs = new AtOnceFileSystem()
  const remove = (): Promise<unknown> => endOf(() => fs.removeFile(own, 'name'))
  const clock = ownClock(t)
  await nextTurn()
  const ends = [remove()]
  clock.now += 0.9
  ends.push(remove())
  t.strictSame(made, ['at once', 'at once'], 'both of one turn, before anything else is done')
  clock.now += 0.1
  ends.push(remove())
  await Promise.all(ends.slice(0, 2))
  t.equal(made.length, 2)
  t.strictSame(await Promise.all(ends), [undefined, undefined, undefined])
  t.strictSame(made, ['at once', 'at once', 'at once'])
  t.equal(await endOf(() => new NodeFileSystem().removeFile(own, 'name')), undefined)
  t.equal(made.at(-1), 'on a thread', 'a call of somebody else')
})

await t.test('reads and writes of up to 64 KiB run at once, longer ones on a thread', async (t) => {
  const fs = new AtOnceFileSystem()
  const most = 64 * 1024
  for (const [size, how] of [
    [1, 'at once'],
    [most, 'at once'],
    [most + 1, 'on a thread'],
  ] as const) {
    const written = answered(t, 'write', (_file, _bytes, _offset, length) => length)
    t.equal(await endOf(() => fs.write(own, Buffer.alloc(size))), undefined)
    t.strictSame(written, [how], `${size} bytes are written`)
    const read = answered(t, 'read', (_file, _buffer, _offset, _length, position) => size - Number(position))
    const lengths: number[] = []
    const reading = async (): Promise<void> => {
      for await (const piece of fs.read(own, size)) lengths.push(piece.length)
    }
    t.equal(await endOf(reading), undefined)
    t.strictSame([lengths, read], [[size], [how]], `${size} bytes are read`)
  }
})

await t.test('a write-out starts at once, and the wait for the last is another call', async (t) => {
  const handed: unknown[] = []
  answer(t, { sync_file_range: (file, _offset, _length, flags) => handed.push([file, flags]) && 0 })
  t.strictSame(await endOf(() => new AtOnceFileSystem().startWriteOut([7, 8])), [undefined, undefined])
  t.strictSame(handed, [
    [7, 2],
    [8, 7],
  ])
})

await t.test('after a call of more than a tenth of a second, all run on threads', async (t) => {
  const clock = ownClock(t)
  let takes = 0
  const made = answered(t, 'unlink', () => (clock.now += takes))
  const fs = new AtOnceFileSystem()
  for (takes of [100, 101, 0, 0]) t.type(await endOf(() => fs.removeFile(own, 'name')), 'number')
  t.strictSame(made, ['at once', 'at once', 'on a thread', 'on a thread'])
})

await t.test(
  'a nameless file is closed on a thread, since its end can wait for a disk; all others at once',
  async (t) => {
    const path = join(scratch(t), 'file')
    const opened = (): number => {
      writeFileSync(path, '')
      return openSync(path, 'r')
    }
    const files = [opened(), (unlinkSync(path), opened()), own]
    t.strictSame(files.map(isNameless), [true, false, false])
    const closed: string[] = []
    // Other code closes its files meanwhile.
    const tell = (file: unknown, how: string): unknown => files.includes(Number(file)) && closed.push(how)
    let close: (...args: unknown[]) => unknown
    replaceCall(t, 'closeSync', (real) => {
      close = real
      return (file) => {
        tell(file, 'at once')
        return real(file)
      }
    })
    replaceCall(t, 'close', () => (file, done) => {
      tell(file, 'on a thread')
      close(file)
      ;(done as Done)?.(null)
    })
    const fs = new NodeFileSystem()
    const ends = []
    for (const file of files) ends.push(await endOf(() => fs.close(file)))
    t.strictSame(ends, [undefined, undefined, 'EBADF'])
    t.strictSame(closed, ['on a thread', 'at once', 'at once'])
  },
)
