/** The program under test, run as its users run it: `bin/holdfast.js agent --config FILE`. */
import { type ChildProcess, execFile } from 'node:child_process'
import { openSync, readFileSync } from 'node:fs'
import type { ApiObject } from './api-client.js'
import { endProcess, startProcess } from './guard.js'
import { until } from '../until.js'
import { executable } from '../project.js'

/** One line of the log. Its other fields depend on its subject. */
export interface LogLine {
  readonly msg: string
  readonly reason?: string
  readonly [field: string]: unknown
}

export interface DirectoryStatus {
  readonly path: string
  readonly conditions: readonly {
    readonly type: 'Published' | 'Fresh'
    readonly status: 'True' | 'False' | 'Unknown'
    readonly reason: string
    readonly message: string
    readonly lastTransitionTime: string
  }[]
  readonly objects: readonly {
    readonly kind: string
    readonly namespace: string
    readonly name: string
    readonly uid: string
    readonly resourceVersion: string
  }[]
  readonly digest: string
  readonly publishedAt: string
  readonly confirmedAt: string
}

/** The expected parts of a status besides a condition's status. */
export interface Expected {
  /** The objects that it names, and no others: by name, or in just the version that the API server has given them. */
  readonly objects?: readonly (string | ApiObject)[]
  /** The condition's message. */
  readonly message?: RegExp
  /** Milliseconds. */
  readonly within?: number
}

export interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export class Agent {
  private child: ChildProcess | undefined

  constructor(
    private readonly configuration: string,
    private readonly port: number,
    readonly logFile: string,
    private readonly environment: Record<string, string>,
    /** What runs the agent elsewhere: in a network namespace. */
    private readonly prefix: readonly string[] = [],
  ) {}

  /** Begins it, and does not wait for anything. */
  start(): void {
    const log = openSync(this.logFile, 'a')
    const line = [...this.prefix, 'env', ...this.commandLine('agent', '--config', this.configuration)]
    this.child = startProcess(line[0] ?? '', line.slice(1), { stdio: ['ignore', log, log] })
  }

  /**
   * Arguments of env(1), which becomes the program: with this environment and nothing else. tap adds loaders to the environment
   * of every process that its tests spawn, which would be in the way of measuring.
   */
  private commandLine(...args: string[]): string[] {
    const variables = Object.entries(this.environment).map(([name, value]) => `${name}=${value}`)
    return ['-i', ...variables, process.execPath, executable, ...args]
  }

  get pid(): number {
    if (this.child?.pid === undefined) throw new Error('the agent was not started')
    return this.child.pid
  }

  get running(): boolean {
    return this.child !== undefined && this.child.exitCode === null && this.child.signalCode === null
  }

  /** Ends it in order; returns its exit code. */
  async stop(): Promise<number | null> {
    return this.child ? (await endProcess(this.child, 'SIGTERM')).code : null
  }

  async kill(): Promise<void> {
    if (this.child) await endProcess(this.child, 'SIGKILL')
  }

  /** The agent's log so far, of all of its lives. */
  log(): LogLine[] {
    return readFileSync(this.logFile, 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('{') && line.endsWith('}'))
      .map((line) => JSON.parse(line) as LogLine)
  }

  /** The lines so far that give this reason. */
  logged(reason: string): LogLine[] {
    return this.log().filter((line) => line.reason === reason)
  }

  /** Answer of `/readyz`, `/livez` or `/metrics`. */
  async get(path: string): Promise<{ status: number; text: string }> {
    const response = await fetch(`http://127.0.0.1:${this.port}${path}`, { headers: { connection: 'close' } })
    return { status: response.status, text: await response.text() }
  }

  async ready(): Promise<void> {
    const check = async (): Promise<boolean> => {
      if (!this.running) throw new Error('the agent has ended')
      const { status, text } = await this.get('/readyz')
      if (status !== 200) throw new Error(text)
      return true
    }
    await until('the agent is ready', check)
  }

  /** The sum of a metric's samples whose labels include these. 0 where there is none. */
  async metric(name: string, labels: Record<string, string> = {}): Promise<number> {
    const { text } = await this.get('/metrics')
    return text
      .split('\n')
      .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
      .filter((line) => Object.entries(labels).every(([label, value]) => line.includes(`${label}="${value}"`)))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
  }

  /**
   * `holdfast status` of one directory, from the file that the agent writes a little after it has published: what another channel tells
   * (the disk, the log, a metric) may be newer. To see it here, wait for it with `condition`.
   */
  async status(directory: string): Promise<DirectoryStatus> {
    // The exit code tells whether all is well; this call needs the document alone.
    const { stdout, stderr } = await this.run('status', '--output', 'json')
    if (stdout === '') throw new Error(`status printed nothing; ${stderr}`)
    const { directories } = JSON.parse(stdout) as { directories: DirectoryStatus[] }
    const found = directories.find(({ path }) => path === directory)
    if (!found) throw new Error(`status has no ${directory}: ${stdout}`)
    return found
  }

  /** Runs another command on the agent's configuration. */
  run(command: string, ...args: string[]): Promise<Ended> {
    return this.runPlain(command, '--config', this.configuration, ...args)
  }

  /** Runs a command that takes no configuration. */
  runPlain(...args: string[]): Promise<Ended> {
    return new Promise((resolve) => {
      const child = execFile('env', this.commandLine(...args), (_, stdout, stderr) =>
        resolve({ code: child.exitCode ?? -1, stdout, stderr }),
      )
    })
  }

  /**
   * Waits until the directory's condition has this status and, if given, reason, in a status that says all that is expected; returns the
   * directory's status. A status from before what the test has just seen elsewhere may have the same conditions: say what tells them apart.
   */
  async condition(
    directory: string,
    type: 'Published' | 'Fresh',
    status: 'True' | 'False' | 'Unknown',
    reason?: string,
    { objects, message = /^/, within = 60_000 }: Expected = {},
  ): Promise<DirectoryStatus> {
    return until(
      `${directory} is ${type}=${status} ${reason ?? ''}`,
      async () => {
        const found = await this.status(directory)
        const condition = found.conditions.find((each) => each.type === type)
        const isSo = condition?.status === status && (reason === undefined || condition.reason === reason)
        if (isSo && message.test(condition.message) && (!objects || namesJust(found, objects))) return found
        throw new Error(JSON.stringify(found))
      },
      { within, every: 200 },
    )
  }
}

function namesJust({ objects }: DirectoryStatus, expected: readonly (string | ApiObject)[]): boolean {
  const isOne = (found: DirectoryStatus['objects'][number], one: string | ApiObject): boolean =>
    typeof one === 'string'
      ? found.name === one
      : found.uid === one.metadata.uid && found.resourceVersion === one.metadata.resourceVersion
  return objects.length === expected.length && expected.every((one) => objects.some((found) => isOne(found, one)))
}
