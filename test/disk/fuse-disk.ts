/**
 * A disk in memory whose flushes take as long as one asks, as a block device: a FUSE server in a process of its own, started
 * by disk.ts as `node fuse-disk.js MOUNTPOINT BYTES` in a mount namespace of its own. MOUNTPOINT is a regular file, which
 * becomes the disk. A loop device with direct I/O on it turns every flush of the block layer into one FSYNC here.
 *
 * The namespace is not for tidiness. A process that is killed unmounts what it alone has kept mounted before it gives its
 * descriptors up; were that a file system on this disk, the last flush would wait for ever for the dying server.
 *
 * It says `ready DEVICE` once that is so. Then each line on standard input is a command, and gets one line of answer, `ok …`
 * or `error …`:
 *
 *     flush-time MICROSECONDS      how long each flush takes; 0 at first
 *     counts                       reads, writes, written bytes, flushes, discards as JSON
 *     reset                        the counts start at 0 again, and no fault is pending
 *     fail write|flush N TIMES     the N-th from the last reset, and the TIMES - 1 after it, answer EIO
 *     log FILE | log off           append every write and flush to FILE: see write-log.ts
 *     log-base BYTES               offsets in the log are so much more, so that disks can share one
 *     mark TEXT                    a record of one's own in the log
 *     save FILE                    the disk's present content, as a sparse file
 *     load FILE                    such a file becomes the disk's content; not logged, and nothing may be mounted
 *
 * It ends, and the disk with it, when standard input does: nothing outlives the process that asked for it.
 */
import { spawn } from 'node:child_process'
import { closeSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { Worker } from 'node:worker_threads'
import { cell, createState, type DiskState } from './disk-state.js'
import { appendRecord, kind } from './write-log.js'

const [mountPoint, size] = process.argv.slice(2)
if (mountPoint === undefined || !Number.isSafeInteger(Number(size))) {
  throw new Error('usage: fuse-disk MOUNTPOINT BYTES')
}
const state = createState(openSync('/dev/fuse', 'r+'), Number(size))

/** Runs a program with the FUSE descriptor as its descriptor 3; what it prints. */
function run(program: string, ...args: string[]): Promise<string> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit', state.fuse] })
  let printed = ''
  child.stdout?.on('data', (piece: Buffer) => (printed += piece.toString()))
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => {
      if (code === 0) resolve(printed.trim())
      else reject(new Error(`${program} ${args.join(' ')} ended with ${code ?? 'a signal'}`))
    })
  })
}

/** mount(8) hands the descriptor to mount(2); `-i` keeps it from looking for a helper. */
async function attach(target: string): Promise<string> {
  const options = 'fd=3,rootmode=100600,user_id=0,group_id=0'
  await run('mount', '-i', '-t', 'fuse', '-o', options, 'holdfast-disk', target)
  return run('losetup', '--find', '--show', '--direct-io=on', target)
}

function integer(text: string | undefined): bigint {
  if (text === undefined || !/^\d+$/.test(text)) throw new Error(`not a number: ${text ?? ''}`)
  return BigInt(text)
}

function counts(): string {
  const read = (index: number): number => Number(Atomics.load(state.cells, index))
  return JSON.stringify({
    reads: read(cell.reads),
    writes: read(cell.writes),
    writtenBytes: read(cell.writtenBytes),
    flushes: read(cell.flushes),
    discards: read(cell.discards),
  })
}

function set(values: Partial<Record<keyof typeof cell, bigint>>): void {
  for (const [name, value] of Object.entries(values)) {
    Atomics.store(state.cells, cell[name as keyof typeof cell], value)
  }
}

function reset(): void {
  set({ reads: 0n, writes: 0n, writtenBytes: 0n, flushes: 0n, discards: 0n })
  set({ failWriteAt: 0n, failWriteTimes: 0n, failFlushAt: 0n, failFlushTimes: 0n })
}

function fail(what: string | undefined, at: bigint, times: bigint): void {
  if (what !== 'write' && what !== 'flush') throw new Error(`not an operation that can fail: ${what ?? ''}`)
  // The number of times first: the fault is armed by its place.
  set(what === 'write' ? { failWriteTimes: times } : { failFlushTimes: times })
  set(what === 'write' ? { failWriteAt: at } : { failFlushAt: at })
}

/** The log before: a thread that serves a mounted file system may have read its number, and not have written yet. */
let formerLog = -1

function log(path: string): void {
  const old = Number(Atomics.load(state.cells, cell.logDescriptor))
  set({ logDescriptor: path === 'off' ? -1n : BigInt(openSync(path, 'a', 0o600)) })
  if (formerLog >= 0) closeSync(formerLog)
  formerLog = old
}

function mark(text: string): void {
  const descriptor = Number(Atomics.load(state.cells, cell.logDescriptor))
  if (descriptor < 0) throw new Error('nothing is being logged')
  appendRecord(descriptor, { kind: kind.mark, number: 0n, data: Buffer.from(text) })
}

/** Blocks that hold nothing but zeros become holes. */
function save(path: string): void {
  const block = 1 << 16
  const zeros = Buffer.alloc(block)
  const file = openSync(path, 'w', 0o600)
  ftruncateSync(file, state.bytes.byteLength)
  for (let at = 0; at < state.bytes.byteLength; at += block) {
    const bytes = Buffer.from(state.bytes, at, Math.min(block, state.bytes.byteLength - at))
    if (!bytes.equals(zeros.subarray(0, bytes.length))) writeSync(file, bytes, 0, bytes.length, at)
  }
  closeSync(file)
}

/** What is equal already is not touched, so that zeros cost no memory. */
function load(path: string): void {
  const block = Buffer.alloc(1 << 16)
  const file = openSync(path, 'r')
  for (let at = 0; at < state.bytes.byteLength; at += block.length) {
    const bytes = Buffer.from(state.bytes, at, Math.min(block.length, state.bytes.byteLength - at))
    if (readSync(file, block, 0, bytes.length, at) !== bytes.length) {
      throw new Error(`${path} is smaller than the disk`)
    }
    if (!bytes.equals(block.subarray(0, bytes.length))) block.copy(bytes)
  }
  closeSync(file)
}

function obey(line: string): string {
  const [command, ...words] = line.split(' ')
  const rest = words.join(' ')
  if (command === 'flush-time') set({ flushMicroseconds: integer(rest) })
  else if (command === 'reset') reset()
  else if (command === 'fail') fail(words[0], integer(words[1]), integer(words[2]))
  else if (command === 'log') log(rest)
  else if (command === 'log-base') set({ logBase: integer(rest) })
  else if (command === 'mark') mark(rest)
  else if (command === 'save') save(rest)
  else if (command === 'load') load(rest)
  else if (command === 'counts') return counts()
  else throw new Error(`no such command: ${line}`)
  return ''
}

function start(name: string, workerData: DiskState): void {
  new Worker(new URL(`./${name}.js`, import.meta.url), { workerData })
}

// A Ctrl-C reaches every process of the terminal, and the disk has to outlast the file system on it.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
start('serve-requests', state)
start('serve-flushes', state)
console.log(`ready ${await attach(mountPoint)}`)
for await (const line of createInterface({ input: process.stdin })) {
  try {
    console.log(`ok ${obey(line)}`.trimEnd())
  } catch (error) {
    console.log(`error ${(error as Error).message}`)
  }
}
// A thread that is blocked in read(2) cannot be ended in good order, and there is nothing to save.
process.kill(process.pid, 'SIGKILL')
