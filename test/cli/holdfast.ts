/** The program, built by `npm run build`: in this process, or in a separate one, as its users run it. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { scratch } from '../durable/scratch.js'
import { executable } from '../project.js'
import { type Agent, AgentHere, AgentProcess } from './agents.js'
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
export function commandLine(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  program = executable,
): string[] {
  const variables = Object.entries({ ...environment, ...env }).map(([name, value]) => `${name}=${value}`)
  return ['-i', ...variables, process.execPath, program, ...args]
}

export async function ended(child: ChildProcess): Promise<Ended> {
  const text = { stdout: '', stderr: '' }
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => (text.stdout += chunk))
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => (text.stderr += chunk))
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  return { code, signal, ...text }
}

/** A node's disk with objects in files and a configuration; `directories` as they stand in the file. */
export class Node {
  readonly root: string
  readonly objects: string
  readonly configuration: string
  /** What its processes run. */
  protected readonly program: string = executable
  readonly #agents: Agent[] = []

  constructor(t: Test, directories: readonly object[], more: object = {}) {
    this.root = scratch(t)
    this.objects = join(this.root, 'objects')
    this.configuration = join(this.root, 'holdfast.yaml')
    mkdirSync(this.objects)
    this.configure(directories, more)
    t.teardown(() => Promise.all(this.#agents.map((agent) => agent.kill())))
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

  /** In this process. */
  agent(args: readonly string[] = [], configuration = this.configuration): AgentHere {
    const agent = new AgentHere(configuration, args)
    this.#agents.push(agent)
    return agent
  }

  /** In a process of its own, where that is what a test is about: who kills it, limits it, or hides something from it. */
  agentProcess(
    args: readonly string[] = [],
    /** A command that runs another one in its place, such as nsenter(1). */
    prefix: readonly string[] = [],
    configuration = this.configuration,
    env: Readonly<Record<string, string>> = {},
  ): AgentProcess {
    const line = commandLine(['agent', '--config', configuration, ...args], env, this.program)
    const agent = new AgentProcess(this.path('agent.log'), [...prefix, 'env', ...line])
    this.#agents.push(agent)
    return agent
  }

  run(command: string, ...args: string[]): Promise<Ended> {
    return holdfast([command, '--config', this.configuration, ...args])
  }
}

export { type Agent, AgentHere, AgentProcess } from './agents.js'
export { scratch }
