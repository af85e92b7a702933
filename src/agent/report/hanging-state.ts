import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdirSync, statSync } from 'node:fs'
import { unlink } from 'node:fs/promises'
import { isSea } from 'node:sea'
import { join } from 'node:path'
import { endsWithin, sleep } from '../../deadline.js'
import { commandOf } from '../../durable/index.js'
import type { Log } from '../../log.js'
import { describeFileSystem } from '../file-systems.js'
import { hasBlockedThread } from '../process-identity.js'

/** Milliseconds after which a write of the status counts as hanging. */
const patience = 3_000

/**
 * Milliseconds between looks at a disk to which the agent writes nothing. At rest they are as rare as lets a frozen disk be reported within five
 * seconds: each wakes a thread, and the loop twice.
 */
const lookIntervals = { soon: 1_000, atRest: 4_400 }

/** Milliseconds without a change after which the agent is at rest. */
const restAfter = 15_000

/** Milliseconds after which a look counts as hanging, which waits for no flush: where a thread waits in the kernel, and in any case. */
const lookPatience = { blocked: 500, any: 2_000 }

interface HangingStateOptions {
  readonly stateDirectory: string
  readonly log: Log
  /** One more look at it, of the same thread. */
  readonly look?: () => Promise<unknown>
  /** `problem` differs from before. */
  readonly changed: () => void
}

/**
 * Asks the file system of a directory for leave to write, and writes nothing: unlink(2) takes it before it looks for the name
 * (mnt_want_write in the kernel's fs/namei.c). On a frozen file system that waits, as a write would; a read would not.
 * @internal
 */
export async function askToWrite(directory: string): Promise<void> {
  // An error is an answer of the file system, too.
  await unlink(writeProbePath(directory)).catch(() => undefined)
}

const writeProbePath = (directory: string): string => join(directory, '.holdfast-may-write')

/**
 * A command asks the same in a child process: a thread that waits in the kernel keeps its process, and a command must end. One such child stays
 * until the disk answers, however many commands look at the status meanwhile: the next ones wait for it. Answers what to say where the
 * disk does not answer in time.
 */
export async function problemOfState(stateDirectory: string): Promise<string | undefined> {
  const name = `hf?${createHash('sha256').update(stateDirectory).digest('hex').slice(0, 12)}`
  const earlier = await waitingProcess(name)
  if (earlier !== undefined) return (await answersInTime(earlier)) ? undefined : problemOf(stateDirectory)
  const program = isSea() ? ['__ask'] : ['--eval', askingProgram]
  const options = { stdio: 'ignore', detached: true } as const
  const child = spawn(process.execPath, [...program, writeProbePath(stateDirectory), name], options)
  const answer = new Promise<void>((resolve) => child.once('exit', () => resolve()).once('error', () => resolve()))
  child.unref()
  return (await endsWithin(answer, patience)) ? undefined : problemOf(stateDirectory)
}

/** The executable runs no script: it has the command `__ask`. */
const askingProgram =
  'const [, file, name] = process.argv, fs = require("node:fs"); fs.writeFileSync("/proc/self/comm", name); fs.unlink(file, () => {})'

/** A process of this user that waits in the kernel, by its name (comm) of 15 characters at most: another user's may only call itself so. */
async function waitingProcess(name: string): Promise<number | undefined> {
  const own = readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0 && commandOf(pid) === name && ownerOf(pid) === process.geteuid?.())
  for (const pid of own) if (await hasBlockedThread(pid)) return pid
  return undefined
}

function ownerOf(pid: number): number | undefined {
  return statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid
}

/** Whether the kernel answers it in time. */
async function answersInTime(pid: number): Promise<boolean> {
  const until = performance.now() + patience
  while (await hasBlockedThread(pid)) {
    if (performance.now() > until) return false
    await sleep(50)
  }
  return true
}

const problemOf = (stateDirectory: string): string =>
  `${stateDirectory} does not answer: its disk, ${describeFileSystem(stateDirectory)}, hangs`

/**
 * Watches the writes of the status, and looks at the disk between them: says so while it hangs. One thread at a time waits for the disk.
 */
export class HangingState {
  readonly #options: HangingStateOptions
  #problem: string | undefined
  #changedAt = -Infinity
  #nextLook: NodeJS.Timeout | undefined
  #look: Promise<void> | undefined
  #isWriting = false
  #closed = false

  constructor(options: HangingStateOptions) {
    this.#options = options
  }

  /** What does not answer; undefined: the disk does. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** Something in the status has changed. */
  changed(): void {
    const wasAtRest = this.#isAtRest
    this.#changedAt = performance.now()
    if (wasAtRest) this.#lookLater()
  }

  /** Makes a write of the status. */
  async watch<Answer>(write: () => Promise<Answer>): Promise<Answer> {
    clearTimeout(this.#nextLook)
    this.#isWriting = true
    try {
      await this.#look
      return await this.#timed(write, patience)
    } finally {
      this.#isWriting = false
      this.#lookLater()
    }
  }

  /** Looks no more. */
  close(): void {
    this.#closed = true
    clearTimeout(this.#nextLook)
  }

  get #isAtRest(): boolean {
    return performance.now() - this.#changedAt >= restAfter
  }

  /** After the write or the look that is under way. */
  #lookLater(): void {
    clearTimeout(this.#nextLook)
    if (this.#closed || this.#isWriting || this.#look !== undefined) return
    const interval = this.#isAtRest ? lookIntervals.atRest : lookIntervals.soon
    this.#nextLook = setTimeout(() => {
      this.#look = this.#timed(() => this.#ask(), lookPatience.any).finally(() => {
        this.#look = undefined
        this.#lookLater()
      })
    }, interval).unref()
  }

  /** A thread that starves on a busy machine is no disk that hangs; a thread that waits in the kernel for so long is. */
  async #ask(): Promise<void> {
    const blocked = setTimeout(() => {
      void hasBlockedThread().then((isBlocked) => {
        if (isBlocked && this.#look !== undefined) this.#hangs()
      })
    }, lookPatience.blocked)
    try {
      await askToWrite(this.#options.stateDirectory)
      await this.#options.look?.()
    } finally {
      clearTimeout(blocked)
    }
  }

  async #timed<Answer>(work: () => Promise<Answer>, limit: number): Promise<Answer> {
    let isOver = false
    // A loop that stood still runs its timers before it takes the answer that has come meanwhile.
    const late = setTimeout(() => {
      setImmediate(() => {
        if (!isOver) this.#hangs()
      })
    }, limit)
    try {
      return await work()
    } finally {
      isOver = true
      clearTimeout(late)
      this.#answers()
    }
  }

  #hangs(): void {
    if (this.#problem !== undefined) return
    const { stateDirectory, log, changed } = this.#options
    this.#problem = problemOf(stateDirectory)
    const meanwhile = 'the agent goes on, and "holdfast status" shows what it wrote there before; check the kernel log'
    log.warn({ reason: 'Stalled', stateDirectory }, `${this.#problem}; ${meanwhile}`)
    changed()
  }

  #answers(): void {
    if (this.#problem === undefined) return
    const { stateDirectory, log, changed } = this.#options
    this.#problem = undefined
    log.info({ stateDirectory }, `${stateDirectory} answers again`)
    changed()
  }
}
