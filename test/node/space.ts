/**
 * The namespaces in which a node's programs run: mounts and processes of their own, the machine's network. When the first
 * process in there is killed, which the end of the test process does at the latest, the kernel ends all others and drops all
 * mounts: no container, shim or mount can be left behind.
 */
import { type ChildProcess, execFile } from 'node:child_process'
import { existsSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { endProcess, startProcess } from '../e2e/guard.js'
import { until } from '../until.js'
import { project } from '../project.js'

/** The environment of every program in there, without tap's loaders. */
const environment = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root' }

/** Milliseconds after which a program that was to end is killed. */
const longestRun = 300_000

export interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Enters the control groups at a path, and becomes another program. In version 1, the groups of cpuset get what their parents have. */
const joining = `
group=$1 && shift
for each in /sys/fs/cgroup"$group" /sys/fs/cgroup/*"$group"; do
  [ -d "$each" ] || continue
  for file in cpuset.cpus cpuset.mems; do
    [ ! -e "$each/cgroup.clone_children" ] || [ ! -e "$each/$file" ] || cat "$each/../$file" >"$each/$file"
  done
  echo $$ >"$each/cgroup.procs"
done
exec "$@"
`

export class Space {
  private constructor(
    private readonly directory: string,
    private readonly outer: ChildProcess,
    /** The first process in there, as this machine numbers it. */
    private readonly first: number,
  ) {}

  /**
   * Makes the namespaces. `directory` is created; it must be on a real file system. With `systemd`, that is the first process in there: it
   * knows the units in a directory, and works in control groups, by their path below each hierarchy's root.
   */
  static async create(
    directory: string,
    systemd?: { readonly units: string; readonly cgroup: string },
  ): Promise<Space> {
    mkdirSync(directory, { recursive: true })
    const log = openSync(join(directory, 'space.log'), 'a')
    const unshare = [
      ...['unshare', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc', '--propagation', 'private'],
      ...(systemd ? ['--cgroup'] : []),
      ...['--', join(project, 'test/node/space.sh'), directory, ...(systemd ? [systemd.units] : [])],
    ]
    const joined = systemd ? ['sh', '-ec', joining, 'sh', systemd.cgroup] : []
    const [program = '', ...args] = [...joined, ...unshare]
    const outer = startProcess(program, args, { env: environment, stdio: ['ignore', log, log] })
    await until('the file system of the node is laid out', () => {
      if (outer.exitCode !== null) throw new Error(readFileSync(join(directory, 'space.log'), 'utf8'))
      return existsSync(join(directory, 'laid-out'))
    })
    return new Space(directory, outer, onlyChild(outer))
  }

  /** Where this machine has what the node has at `path`; only for what the node keeps on its disk. */
  onDisk(path: string): string {
    return join(this.directory, 'disk', path)
  }

  /** The path by which this machine sees the node's `path`, with the node's mounts. */
  seen(path: string): string {
    return join(`/proc/${this.first}/root`, path)
  }

  /** A file for a program's output. */
  logFile(name: string): string {
    return join(this.directory, `${name}.log`)
  }

  /** Starts a program in there; its output goes to `logFile(name)`. */
  start(name: string, program: string, args: readonly string[]): Program {
    const log = openSync(this.logFile(name), 'a')
    const child = startProcess('nsenter', [...this.entrance, program, ...args], {
      env: environment,
      stdio: ['ignore', log, log],
    })
    return new Program(child)
  }

  /** Runs a program in there to its end, with `input` as its standard input. It does not reject for an exit code. */
  run(program: string, args: readonly string[], input = ''): Promise<Ended> {
    return new Promise((resolve) => {
      const child = execFile(
        'nsenter',
        [...this.entrance, program, ...args],
        { env: environment, maxBuffer: 1 << 28, timeout: longestRun, killSignal: 'SIGKILL' },
        (_, stdout, stderr) => resolve({ code: child.exitCode ?? -1, stdout, stderr }),
      )
      // A program that does not read it is none of our business.
      child.stdin?.on('error', () => undefined).end(input)
    })
  }

  /**
   * As `run`, for what must succeed; returns its standard output.
   * @throws Error with its standard error
   */
  async demand(program: string, args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(program, args)
    if (code !== 0) throw new Error(`${program} ${args.join(' ')}: exit code ${code}: ${stderr}`)
    return stdout
  }

  /** Ends all that runs in there. */
  async end(): Promise<void> {
    await endProcess(this.outer, 'SIGKILL')
    await until('the processes of the node are gone', () => !existsSync(`/proc/${this.first}`))
  }

  private get entrance(): string[] {
    return ['--target', String(this.first), '--mount', '--pid', '--']
  }
}

/** A program in the namespaces: a child of the nsenter that is this process's child. */
export class Program {
  constructor(private readonly outer: ChildProcess) {}

  get running(): boolean {
    return this.outer.exitCode === null && this.outer.signalCode === null
  }

  /** Sends it the signal, and waits for its end. */
  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    if (!this.running) return
    process.kill(onlyChild(this.outer), signal)
    await until(`the end of a program after ${signal}`, () => !this.running, { within: 60_000 })
  }
}

function onlyChild({ pid }: ChildProcess): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  if (!/^\d+$/.test(children)) throw new Error(`process ${pid} has not one child, but "${children}"`)
  return Number(children)
}
