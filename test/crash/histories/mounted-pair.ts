/** Two file systems of one kind for histories: the second is `o` in the first. Root only, in a new mount namespace. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { otherFileSystem } from './places.js'

export abstract class MountedPair {
  abstract readonly mountPoints: readonly [first: string, second: string]

  /** Where histories are played. */
  get root(): string {
    return join(this.mountPoints[0], 'h')
  }

  /** Both, with nothing bound anywhere. */
  protected abstract mount(): void

  /** Empty, and durable; without the mounts of the history before. */
  begin(): void {
    this.unmount()
    this.mount()
    for (const mountPoint of this.mountPoints) {
      rmSync(join(mountPoint, 'h'), { recursive: true, force: true })
      mkdirSync(join(mountPoint, 'h'))
    }
    mkdirSync(join(this.root, otherFileSystem))
    this.#bind()
  }

  /** With their content. */
  mountAll(): void {
    this.mount()
    this.#bind()
  }

  #bind(): void {
    execFileSync('mount', ['--bind', join(this.mountPoints[1], 'h'), join(this.root, otherFileSystem)])
  }

  sync(): void {
    for (const mountPoint of this.mountPoints) execFileSync('sync', ['--file-system', mountPoint])
  }

  /** With the mounts below. */
  unmount(): void {
    for (const mountPoint of this.mountPoints) execFileSync('umount', ['--recursive', mountPoint])
  }

  /** The next boot. */
  boot(): void {
    this.unmount()
    this.mountAll()
  }
}
