/** A pair on loop devices in memory that loses its power: a mount afterwards finds the bytes that are on the disk in that instant. */
import { execFileSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, writeFileSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { type FileSystem, makeFileSystem } from '../../disk/disk.js'
import { sizes } from '../power/logged-disk.js'
import { LoopMount } from '../power/loop-mount.js'
import { shutDown } from './libc.js'
import { MountedPair } from './mounted-pair.js'

/** `shutdown`: the file system stops; `image`: a copy of the disk at that instant, while the kernel goes on. */
export type Loss = 'shutdown' | 'image'

export class RealDisks extends MountedPair {
  readonly mountPoints
  readonly #disks: readonly { image: string; saved: string; mountPoint: string; loop: LoopMount }[]
  #isSaved = false

  constructor(
    readonly fileSystem: FileSystem,
    directory: string,
  ) {
    super()
    this.mountPoints = [join(directory, 'first'), join(directory, 'second')] as const
    this.#disks = this.mountPoints.map((mountPoint) => {
      const image = `${mountPoint}.image`
      mkdirSync(mountPoint, { recursive: true })
      writeFileSync(image, '')
      truncateSync(image, sizes[fileSystem])
      const [program = '', ...options] = makeFileSystem[fileSystem]
      execFileSync(program, [...options, image])
      return { image, saved: `${mountPoint}.saved`, mountPoint, loop: new LoopMount(image, mountPoint) }
    })
    this.mount()
  }

  protected mount(): void {
    for (const { loop } of this.#disks) loop.mount(this.fileSystem)
  }

  /** Which ways to lose the power this file system knows. */
  get losses(): readonly Loss[] {
    return this.fileSystem === 'btrfs' ? ['image'] : ['shutdown', 'image']
  }

  /** The power goes now: the bytes that are not on the disk are lost. */
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

  override boot(): void {
    this.unmount()
    if (this.#isSaved) for (const { image, saved } of this.#disks) execFileSync('cp', ['--sparse=always', saved, image])
    this.#isSaved = false
    this.mountAll()
  }

  close(): void {
    this.unmount()
    for (const { loop } of this.#disks) loop.close()
  }
}
