/**
 * A disk whose every write and flush is logged, with a file system on it. What the block layer tells of the device is checked, since the
 * argument rests on it: a loop device declares a volatile write cache and no FUA, so the kernel turns each FUA write into a
 * write and a flush (block/blk-flush.c), and both are in the log; with direct I/O nothing is cached between it and the log.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { Disk, type FileSystem } from '../../disk/disk.js'
import { appendMark, type Mark } from './marks.js'
import type { Target } from './targets.js'

/** Bytes of the disk: small ones, above the least that each mkfs accepts. */
export const sizes: Record<FileSystem, number> = {
  // Below this, mkfs.ext4 takes blocks of 1 KiB, which is not what nodes have.
  ext4: 512 * 2 ** 20,
  xfs: 320 * 2 ** 20,
  btrfs: 256 * 2 ** 20,
}

export class LoggedDisk {
  #log = ''

  private constructor(
    readonly disk: Disk,
    readonly fileSystem: FileSystem,
    readonly directory: string,
  ) {}

  static async create(fileSystem: FileSystem, directory: string): Promise<LoggedDisk> {
    const disk = await Disk.create(sizes[fileSystem])
    const queue = `/sys/block/${basename(disk.device)}/queue`
    const read = (path: string): string => readFileSync(path, 'latin1').trim()
    const found = [read(`${queue}/write_cache`), read(`${queue}/fua`), read(`${queue}/../loop/dio`)].join()
    if (found !== 'write back,0,1') {
      await disk.destroy()
      throw new Error(`the loop device is not as needed: write_cache, fua, dio are ${found}`)
    }
    return new LoggedDisk(disk, fileSystem, directory)
  }

  /** Path of the log that is being written. */
  get log(): string {
    return this.#log
  }

  get mountPoint(): string {
    return this.disk.mountPoint
  }

  /** Logs to a new file from now on. */
  async logTo(name: string): Promise<string> {
    this.#log = join(this.directory, `${name}.log`)
    await this.disk.ask(`log ${this.#log}`)
    return this.#log
  }

  mark(mark: Mark | string): void {
    appendMark(this.#log, mark)
  }

  /** From an empty disk to a mounted file system, with the content before the targets; from here on, power cuts count. */
  async prepare(targets: readonly Target[]): Promise<void> {
    await this.disk.format(this.fileSystem)
    await this.disk.mount()
    if (targets.some(({ life }) => life !== undefined)) {
      const { beforeLife } = await import('./life.js')
      beforeLife(this.mountPoint, targets)
      execFileSync('sync', ['--file-system', this.mountPoint])
    }
    this.mark({ event: 'targets', targets: [...targets] })
  }
}
