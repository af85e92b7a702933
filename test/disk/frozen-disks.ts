/**
 * Real ext4 file systems on loop devices that can be frozen, as a disk that died freezes: a writer there waits in the kernel,
 * uninterruptibly, until the thaw. Their mounts are in a private mount namespace, which one process holds. It thaws them when the test's
 * process ends, by any end. Root only, Linux only.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdir, truncate, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { stateOf } from '../processes.js'
import { until } from '../until.js'

const run = promisify(execFile)

/** Bytes of each: enough for ext4 with its journal. */
const size = 64 * 2 ** 20

/** Waits for the end of its input, then thaws: a frozen file system would outlive everybody who could thaw it. */
const holder = 'cat > /dev/null; for at in "$@"; do fsfreeze --unfreeze "$at" 2> /dev/null; done; exit 0'

/** The missing programs of this machine, in words; empty if it is fit. */
export async function missingForFreezing(): Promise<string[]> {
  const missing: string[] = []
  if (process.getuid?.() !== 0) missing.push('root')
  await run('test', ['-c', '/dev/loop-control']).catch(() => missing.push('/dev/loop-control'))
  for (const program of ['mkfs.ext4', 'fsfreeze', 'nsenter', 'unshare']) {
    await run('which', [program]).catch(() => missing.push(program))
  }
  return missing
}

export class FrozenDisks {
  private constructor(
    private readonly process: ChildProcess,
    private readonly mountPoints: readonly string[],
  ) {}

  /** One file system at each of these paths, which it makes; images lie beside them. */
  static async create(mountPoints: readonly string[]): Promise<FrozenDisks> {
    const command = ['--mount', '--propagation', 'private', '--', 'sh', '-c', holder, 'sh', ...mountPoints]
    const disks = new FrozenDisks(spawn('unshare', command, { stdio: ['pipe', 'ignore', 'inherit'] }), mountPoints)
    try {
      await until('the namespace is there', () => readFileSync(`/proc/${disks.pid}/comm`, 'utf8').trim() === 'sh')
      for (const mountPoint of mountPoints) {
        const image = `${mountPoint}.image`
        await mkdir(mountPoint, { recursive: true })
        await writeFile(image, '')
        await truncate(image, size)
        await run('mkfs.ext4', ['-q', '-F', '-E', 'nodiscard', image])
        await disks.#inside('mount', '-o', 'loop', image, mountPoint)
      }
    } catch (error) {
      await disks.destroy()
      throw error
    }
    return disks
  }

  /** The words before a command that run it among these disks, as the same process. */
  get entering(): readonly string[] {
    return ['nsenter', `--mount=/proc/${this.pid}/ns/mnt`, '--wd=/', '--']
  }

  get pid(): number {
    return this.process.pid ?? -1
  }

  /** The path by which this process sees a file on these disks. */
  seen(path: string): string {
    return `/proc/${this.pid}/root${path}`
  }

  async freeze(mountPoint: string): Promise<void> {
    await this.#inside('fsfreeze', '--freeze', mountPoint)
  }

  async thaw(mountPoint: string): Promise<void> {
    await this.#inside('fsfreeze', '--unfreeze', mountPoint)
  }

  /** Thaws, unmounts and frees everything. Processes inside should have ended, or end now. */
  async destroy(): Promise<void> {
    for (const mountPoint of this.mountPoints) {
      await this.thaw(mountPoint).catch(() => undefined)
      await this.#inside('umount', '--lazy', mountPoint).catch(() => undefined)
    }
    const ended = once(this.process, 'exit')
    this.process.stdin?.end()
    if (this.process.exitCode === null && this.process.signalCode === null) await ended
  }

  async #inside(...command: readonly string[]): Promise<void> {
    const [program = '', ...rest] = [...this.entering, ...command]
    await run(program, rest)
  }
}

/** Threads of a process that the kernel keeps in an uninterruptible sleep. */
export function frozenThreads(pid: number): number {
  const directory = `/proc/${pid}/task`
  return readdirSync(directory).filter((thread) => stateOf(`${directory}/${thread}`) === 'D').length
}
