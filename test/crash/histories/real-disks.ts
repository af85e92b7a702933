/**
 * Two file systems of one kind on loop devices in memory, that lose their power: what is on the disk in an instant is what a mount
 * finds afterwards. Root only, in a mount namespace of its own.
 */
import { execFileSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, rmSync, writeFileSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { type FileSystem, makeFileSystem } from '../../disk/disk.js'
import { sizes } from '../power/logged-disk.js'
import { LoopMount } from '../power/loop-mount.js'
import { shutDown } from './libc.js'

/** `shutdown`: the file system is told to stop; `image`: what the disk holds is set aside, while the kernel goes on. */
export type Loss = 'shutdown' | 'image'

export class RealDisks {
  /** Where histories are played: the second file system is `o` in it. */
  readonly root: string
  readonly #disks: { image: string; saved: string; mountPoint: string; loop: LoopMount }[]
  #isSaved = false

  constructor(
    readonly fileSystem: FileSystem,
    readonly directory: string,
  ) {
    this.#disks = ['first', 'second'].map((name) => {
      const image = join(directory, `${name}.image`)
      const mountPoint = join(directory, name)
      mkdirSync(mountPoint, { recursive: true })
      writeFileSync(image, '')
      truncateSync(image, sizes[fileSystem])
      const [program = '', ...options] = makeFileSystem[fileSystem]
      execFileSync(program, [...options, image])
      return { image, saved: join(directory, `${name}.saved`), mountPoint, loop: new LoopMount(image, mountPoint) }
    })
    this.root = join(directory, 'first', 'h')
  }

  /** Empty, and durable. */
  begin(): void {
    // Whatever the history before has mounted goes.
    this.unmount()
    this.mount()
    for (const { mountPoint } of this.#disks) {
      rmSync(join(mountPoint, 'h'), { recursive: true, force: true })
      mkdirSync(join(mountPoint, 'h'))
    }
    mkdirSync(join(this.root, 'o'))
    this.#bind()
  }

  mount(): void {
    for (const { loop } of this.#disks) loop.mount(this.fileSystem)
  }

  /** The same, with what was there. */
  mountAgain(): void {
    this.mount()
    this.#bind()
  }

  #bind(): void {
    execFileSync('mount', ['--bind', join(this.directory, 'second', 'h'), join(this.root, 'o')])
  }

  sync(): void {
    for (const { mountPoint } of this.#disks) execFileSync('sync', ['--file-system', mountPoint])
  }

  /** In good order, or after a shutdown; what was mounted below goes, too. */
  unmount(): void {
    for (const { mountPoint } of this.#disks) execFileSync('umount', ['--recursive', mountPoint])
  }

  /** Which ways to lose the power this file system knows. */
  get losses(): readonly Loss[] {
    return this.fileSystem === 'btrfs' ? ['image'] : ['shutdown', 'image']
  }

  /** The power goes now: what was not on the disk is lost. */
  lose(loss: Loss): void {
    if (loss === 'image') {
      for (const { image, saved } of this.#disks) execFileSync('cp', ['--sparse=always', image, saved])
      this.#isSaved = true
      return
    }
    for (const { mountPoint } of this.#disks) {
      const descriptor = openSync(mountPoint, 'r')
      try {
        if (!shutDown(descriptor)) throw new Error(`${mountPoint} cannot be shut down`)
      } finally {
        closeSync(descriptor)
      }
    }
  }

  /** The next boot, after the power was lost. */
  boot(): void {
    this.unmount()
    if (this.#isSaved) for (const { image, saved } of this.#disks) execFileSync('cp', ['--sparse=always', saved, image])
    this.#isSaved = false
    this.mountAgain()
  }

  close(): void {
    this.unmount()
    for (const { loop } of this.#disks) loop.close()
  }
}
