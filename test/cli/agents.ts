/** The agent as tests run it: in their own process, or in one of its own. */
import { spawn, type ChildProcess } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { limitDescriptors } from '../descriptors.js'
import { until } from '../until.js'
import { main } from '../../src/cli/main.js'
import { testIo } from './in-process.js'

export interface LogLine {
  readonly level: string
  readonly msg: string
  readonly reason?: string
  readonly [field: string]: unknown
}

/** Node itself says so where coverage is measured and a process has no descriptor left for its file. */
const unwrittenCoverage = /^[A-Z]+: Failed to write file /

/** A running agent, or an ended one. */
export abstract class Agent {
  readonly #lines: LogLine[] = []
  /** How much of the text is in these lines. */
  #read = 0

  abstract get running(): boolean
  abstract signal(name: NodeJS.Signals): void
  /** Ends it as fast as possible. */
  abstract kill(): Promise<unknown>
  protected abstract get ending(): Promise<number | NodeJS.Signals | null>
  /** All that it has logged. */
  abstract get text(): string
  abstract get pid(): number

  /** The exit code, or the signal that ended it. */
  async end(name?: NodeJS.Signals): Promise<number | NodeJS.Signals | null> {
    if (name) this.signal(name)
    return this.ending
  }

  log(): readonly LogLine[] {
    const { text } = this
    // The text behind the last newline is a line that the program still writes.
    const whole = text.lastIndexOf('\n') + 1
    for (const line of text.slice(this.#read, whole).split('\n').slice(0, -1))
      if (!unwrittenCoverage.test(line)) this.#lines.push(JSON.parse(line) as LogLine)
    this.#read = Math.max(this.#read, whole)
    return [...this.#lines]
  }

  /** Waits for so many lines with this reason; answers the last of them. */
  async logged(reason: string, count = 1): Promise<LogLine> {
    return until(
      `${count} × ${reason} in the log`,
      () => this.log().filter((line) => line.reason === reason)[count - 1],
    )
  }

  /** Waits for the line of the start, which says where health is served. */
  async address(): Promise<string> {
    const line = await until('the agent has started', () => this.log().findLast((one) => 'address' in one))
    const { host, port } = line.address as { host: string; port: number }
    return `http://${host}:${port}`
  }

  async get(path: string): Promise<{ status: number; text: string }> {
    const response = await fetch(`${await this.address()}${path}`, { headers: { connection: 'close' } })
    return { status: response.status, text: await response.text() }
  }
}

/** One in this process: it saves the half second of processor time until a process has started it. */
export class AgentHere extends Agent {
  readonly #events = new EventEmitter()
  readonly #io = testIo({ events: this.#events })
  readonly #raised = new Promise<NodeJS.Signals>((resolve) => {
    Object.assign(this.#io.io, { raise: resolve })
  })
  protected readonly ending: Promise<number | NodeJS.Signals>
  #hasEnded = false

  constructor(
    readonly configuration: string,
    args: readonly string[] = [],
  ) {
    super()
    const code = main(['agent', '--config', configuration, ...args], this.#io.io)
    this.ending = Promise.race([code, this.#raised]).finally(() => (this.#hasEnded = true))
  }

  get running(): boolean {
    return !this.#hasEnded
  }

  /** As soon as it listens: what comes before would end a process by its default action. */
  signal(name: NodeJS.Signals): void {
    if (name === 'SIGKILL') throw new Error('only a process can be killed: agentProcess() starts one')
    if (this.#hasEnded || this.#events.emit(name, name)) return
    this.#events.once('newListener', () => setImmediate(() => this.signal(name)))
  }

  kill(): Promise<unknown> {
    return this.end('SIGTERM')
  }

  get pid(): number {
    return process.pid
  }

  get text(): string {
    return this.#io.written.stderr
  }
}

/** One in a process of its own, as its users run it. */
export class AgentProcess extends Agent {
  readonly #child: ChildProcess
  /** Where its part of the log begins. */
  readonly #begin: number
  readonly #end: Promise<[number | null, NodeJS.Signals | null]>

  constructor(
    readonly logFile: string,
    [program = '', ...args]: readonly string[],
  ) {
    super()
    const log = openSync(logFile, 'a')
    this.#begin = fstatSync(log).size
    this.#child = spawn(program, args, { stdio: ['ignore', log, log] })
    closeSync(log)
    this.#end = once(this.#child, 'close') as Promise<[number | null, NodeJS.Signals | null]>
  }

  get pid(): number {
    return this.#child.pid ?? -1
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name)
  }

  kill(): Promise<unknown> {
    return this.end('SIGKILL')
  }

  /** Whether the process handles the signal now. */
  catches(name: NodeJS.Signals): boolean {
    const status = readFileSync(`/proc/${this.#child.pid}/status`, 'utf8')
    const mask = BigInt(`0x${/^SigCgt:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`)
    return ((mask >> BigInt(constants.signals[name] - 1)) & 1n) === 1n
  }

  /** Lets it open so many more files than it has open, or as many as before. */
  limitDescriptors(spare: number | 'as before'): void {
    limitDescriptors(this.pid, spare)
  }

  protected get ending(): Promise<number | NodeJS.Signals | null> {
    return this.#end.then(([code, signal]) => signal ?? code)
  }

  get text(): string {
    return readFileSync(this.logFile).subarray(this.#begin).toString('utf8')
  }
}
