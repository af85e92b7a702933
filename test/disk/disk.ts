/**
 * A block device with a real file system on it, with counted flushes of a given duration: fuse-disk.ts behind a loop device with direct
 * I/O. Root only, Linux only.
 *
 * The creator of a Disk destroys it, in a finally. `destroy` does not throw for missing parts. If the process dies instead, the disk's own
 * process ends with it, and the loop device frees itself at its unmount, which a private mount namespace (private-mounts.ts) brings about.
 */
import { execFile, spawn, type ChildProcessByStdio } from 'node:child_process'
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)

export type FileSystem = 'ext4' | 'xfs' | 'btrfs'

export interface DiskCounts {
  reads: number
  writes: number
  writtenBytes: number
  flushes: number
  discards: number
}

/** Nothing is initialised lazily, so that no background thread writes while something is measured. */
export const makeFileSystem: Record<FileSystem, string[]> = {
  ext4: ['mkfs.ext4', '-q', '-F', '-E', 'nodiscard,lazy_itable_init=0,lazy_journal_init=0'],
  xfs: ['mkfs.xfs', '-q', '-f', '-K'],
  btrfs: ['mkfs.btrfs', '-q', '-f', '-K'],
}

/** Which programs and devices are missing on this machine, in words; empty if it is fit. */
export async function missingForDisk(fileSystems: readonly FileSystem[]): Promise<string[]> {
  const missing: string[] = []
  if (process.getuid?.() !== 0) missing.push('root')
  for (const device of ['/dev/fuse', '/dev/loop-control']) {
    await run('test', ['-c', device]).catch(() => missing.push(device))
  }
  for (const fileSystem of fileSystems) {
    const program = makeFileSystem[fileSystem][0] ?? ''
    await run('which', [program]).catch(() => missing.push(program))
  }
  return missing
}

export class Disk {
  /** Where the file system is mounted. */
  readonly mountPoint: string
  readonly #directory: string
  #server: ChildProcessByStdio<Writable, Readable, null> | undefined
  #lines: Interface | undefined
  #answers: AsyncIterator<string> | undefined
  #loop: string | undefined
  /** Keeps the loop device from clearing itself. */
  #held: number | undefined
  #mounted = false
  #turn: Promise<unknown> = Promise.resolve()

  private constructor(directory: string) {
    this.#directory = directory
    this.mountPoint = join(directory, 'mounted')
  }

  /** A disk of `bytes` bytes behind a loop device, without a file system; flushes take no time yet. It is sparse, and best not
   * below 2 GiB: on 512 MiB btrfs is short of metadata space and stops to commit while files are created. */
  static async create(bytes = 2 ** 31): Promise<Disk> {
    const disk = new Disk(mkdtempSync(join(tmpdir(), 'holdfast-disk-')))
    try {
      await disk.#start(bytes)
      return disk
    } catch (error) {
      await disk.destroy()
      throw error
    }
  }

  /** The block device, such as /dev/loop3. */
  get device(): string {
    if (this.#loop === undefined) throw new Error('this disk has been destroyed')
    return this.#loop
  }

  /** Makes a file system; its flushes take no time. */
  async format(fileSystem: FileSystem): Promise<void> {
    const [program = '', ...options] = makeFileSystem[fileSystem]
    await run(program, [...options, this.device])
  }

  /** The disk's content becomes that of a file which the `save` command has made. Nothing may be mounted; nothing is logged. */
  async load(path: string): Promise<void> {
    await this.ask(`load ${path}`)
    // What the kernel remembers of the content before.
    await run('blockdev', ['--flushbufs', this.device])
  }

  async mount(options: string[] = []): Promise<void> {
    await run('mount', [...options, this.device, this.mountPoint])
    this.#mounted = true
  }

  async unmount(): Promise<void> {
    await run('umount', [this.mountPoint])
    this.#mounted = false
  }

  /** How long each flush takes from now on. */
  async flushTime(milliseconds: number): Promise<void> {
    await this.ask(`flush-time ${Math.round(milliseconds * 1000)}`)
  }

  async counts(): Promise<DiskCounts> {
    return JSON.parse(await this.ask('counts')) as DiskCounts
  }

  /** Flushes that the kernel's block layer has sent to the loop device since it exists: the 16th field of its statistics. */
  kernelFlushes(): number {
    const fields = readFileSync(`/sys/block/${basename(this.device)}/stat`, 'utf8')
      .trim()
      .split(/\s+/)
    return Number(fields[15])
  }

  /** Gives the disk's process one command (see fuse-disk.ts) and returns its answer; throws its complaint. */
  ask(command: string): Promise<string> {
    const answer = this.#turn.then(() => this.#ask(command))
    this.#turn = answer.catch(() => undefined)
    return answer
  }

  async destroy(): Promise<void> {
    const attempt = async (program: string, ...args: string[]): Promise<void> => {
      await run(program, args).catch(() => undefined)
    }
    if (this.#mounted) await attempt('umount', this.mountPoint)
    if (this.#held !== undefined) closeSync(this.#held)
    this.#held = undefined
    const server = this.#server
    if (server?.exitCode === null && server.signalCode === null) {
      const ended = new Promise((resolve) => server.once('exit', resolve))
      server.stdin.end()
      await ended
    }
    this.#lines?.close()
    // Still mounted means that something else holds it: it must not be emptied by removing the directory.
    if (this.#mounted) await attempt('umount', '--lazy', this.mountPoint)
    this.#mounted = false
    this.#loop = undefined
    this.#server = undefined
    rmSync(this.#directory, { recursive: true, force: true })
  }

  async #start(bytes: number): Promise<void> {
    const file = join(this.#directory, 'disk')
    writeFileSync(file, '')
    mkdirSync(this.mountPoint)
    const program = fileURLToPath(new URL('fuse-disk.js', import.meta.url))
    const command = [process.execPath, program, file, String(bytes)]
    const server = spawn('unshare', ['--mount', '--propagation', 'private', '--', ...command], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    this.#server = server
    this.#lines = createInterface({ input: server.stdout })
    this.#answers = this.#lines[Symbol.asyncIterator]()
    server.stdin.on('error', () => undefined) // Its end is seen by the next answer that does not come.
    const [word, device] = (await this.#line()).split(' ')
    if (word !== 'ready' || device === undefined) throw new Error('the disk did not start')
    this.#loop = device
    this.#held = openSync(this.#loop, 'r')
    // While it is open, this only asks it to clear itself at the last close, of ours or of a mount, however that comes about.
    await run('losetup', ['--detach', this.#loop])
  }

  async #ask(command: string): Promise<string> {
    this.#server?.stdin.write(`${command}\n`)
    const line = await this.#line()
    if (!line.startsWith('ok')) throw new Error(`disk: ${command}: ${line.replace(/^error /, '')}`)
    return line.slice(3)
  }

  async #line(): Promise<string> {
    const next = await this.#answers?.next()
    if (next === undefined || next.done === true) throw new Error('the process of the disk has ended')
    return next.value
  }
}
