/** The program, built by `npm run build`: in this process, or in a separate one, as its users run it. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  fstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { limitDescriptors } from '../descriptors.js'
import { removeTree } from '../remove-tree.js'
import { until } from '../until.js'
import { executable } from '../project.js'
import { runInProcess, type Given, type Result } from './in-process.js'

/** No variable of this machine, which must not decide a test; but coverage counts children, too. */
const environment = {
  PATH: process.env.PATH ?? '',
  ...(process.env.NODE_V8_COVERAGE && { NODE_V8_COVERAGE: process.env.NODE_V8_COVERAGE }),
}

export type Ended = Result
type RunOptions = Omit<Given, 'events'>

/** Runs a command to its end, in this process. */
export function holdfast(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  return runInProcess(args, options)
}

/** The same with the log as JSON lines, for tests that read its fields. */
export function holdfastInJson(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  return holdfast(args, { ...options, env: { HOLDFAST_LOG_FORMAT: 'json', ...options.env } })
}

/** Runs a command to its end in a separate process, as its users run it. */
export async function holdfastProcess(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  const child = begin(args, options)
  child.stdin?.on('error', () => {})
  child.stdin?.end(options.input ?? '')
  return ended(child)
}

/** Starts a command in a separate process, and leaves its standard input open. */
export function begin(args: readonly string[], options: RunOptions = {}): ChildProcess {
  return spawn('env', commandLine(args, options.env), { stdio: 'pipe' })
}

/**
 * By way of env(1): this runner of tests puts a variable into the environment of its children that loads another handler for
 * signals, before the program has one, and takes longer than the program.
 */
function commandLine(args: readonly string[], env: Readonly<Record<string, string>> = {}): string[] {
  const variables = Object.entries({ ...environment, ...env }).map(([name, value]) => `${name}=${value}`)
  return ['-i', ...variables, process.execPath, executable, ...args]
}

export async function ended(child: ChildProcess): Promise<Ended> {
  const text = { stdout: '', stderr: '' }
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => (text.stdout += chunk))
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => (text.stderr += chunk))
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  return { code, signal, ...text }
}

/** A directory that goes away with the test. */
export function scratch(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-test-'))
  // A killed process's unfinished call may still write: then removeTree empties it once more.
  t.teardown(() => removeTree(directory))
  return directory
}

export interface LogLine {
  readonly level: string
  readonly msg: string
  readonly reason?: string
  readonly [field: string]: unknown
}

/** Node itself says so where coverage is measured and a process has no descriptor left for its file. */
const unwrittenCoverage = /^[A-Z]+: Failed to write file /

/** A running agent, or an ended one. */
export class Agent {
  readonly #child: ChildProcess
  /** Where its part of the log begins. */
  readonly #begin: number
  readonly #end: Promise<[number | null, NodeJS.Signals | null]>

  constructor(
    readonly configuration: string,
    readonly logFile: string,
    args: readonly string[] = [],
    /** A command that runs another one in its place, such as nsenter(1). */
    prefix: readonly string[] = [],
    env: Readonly<Record<string, string>> = {},
  ) {
    const log = openSync(logFile, 'a')
    this.#begin = fstatSync(log).size
    const [program = '', ...rest] = [
      ...prefix,
      'env',
      ...commandLine(['agent', '--config', configuration, ...args], env),
    ]
    this.#child = spawn(program, rest, { stdio: ['ignore', log, log] })
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

  /** The exit code, or the signal that ended it. */
  async end(name?: NodeJS.Signals): Promise<number | NodeJS.Signals | null> {
    if (name) this.#child.kill(name)
    const [code, signal] = await this.#end
    return signal ?? code
  }

  log(): LogLine[] {
    const lines = readFileSync(this.logFile).subarray(this.#begin).toString('utf8').split('\n')
    // The text behind the last newline is a line that the program still writes.
    return lines
      .slice(0, -1)
      .filter((line) => !unwrittenCoverage.test(line))
      .map((line) => JSON.parse(line) as LogLine)
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

/** A node's disk with objects in files and a configuration; `directories` as they stand in the file. */
export class Node {
  readonly root: string
  readonly objects: string
  readonly configuration: string
  readonly #agents: Agent[] = []

  constructor(t: Test, directories: readonly object[], more: object = {}) {
    this.root = scratch(t)
    this.objects = join(this.root, 'objects')
    this.configuration = join(this.root, 'holdfast.yaml')
    mkdirSync(this.objects)
    this.configure(directories, more)
    t.teardown(() => Promise.all(this.#agents.map((agent) => agent.end('SIGKILL'))))
  }

  path(name: string): string {
    return join(this.root, name)
  }

  read(name: string): string | undefined {
    try {
      return readFileSync(this.path(name), 'utf8')
    } catch {
      return undefined
    }
  }

  configure(directories: readonly object[], more: object = {}): void {
    const document = {
      apiVersion: 'holdfast.dev/v1alpha1',
      kind: 'AgentConfiguration',
      stateDirectory: join(this.root, 'state'),
      source: { namespace: 'demo', files: { path: this.objects } },
      server: { address: '127.0.0.1:0' },
      directories,
      ...more,
    }
    this.#write(this.configuration, JSON.stringify(document, undefined, 2))
  }

  /** Writes one object; JSON is YAML. */
  put(kind: 'Secret' | 'ConfigMap', name: string, data: Record<string, string>, labels?: object): void {
    const content = kind === 'Secret' ? { stringData: data } : { data }
    const object = { apiVersion: 'v1', kind, metadata: { name, labels }, ...content }
    this.#write(join(this.objects, `${name}.yaml`), JSON.stringify(object))
  }

  /** As kubelet and editors write: on a busy machine, an agent could read the half of a file that is written in place. */
  #write(file: string, text: string): void {
    const aside = join(this.root, '.aside')
    writeFileSync(aside, text)
    renameSync(aside, file)
  }

  remove(name: string): void {
    rmSync(join(this.objects, `${name}.yaml`))
  }

  agent(
    args: readonly string[] = [],
    prefix: readonly string[] = [],
    configuration = this.configuration,
    env: Readonly<Record<string, string>> = {},
  ): Agent {
    const agent = new Agent(configuration, this.path('agent.log'), args, prefix, env)
    this.#agents.push(agent)
    return agent
  }

  run(command: string, ...args: string[]): Promise<Ended> {
    return holdfast([command, '--config', this.configuration, ...args])
  }
}
