/**
 * A loop device over a file, mounted and unmounted hundreds of times a minute: by system calls, since a program for each
 * would take most of the time. Root only.
 */
import { execFileSync } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import koffi from 'koffi'

const libc = koffi.load(null)
const mount = libc.func(
  'int mount(const char *source, const char *target, const char *type, unsigned long flags, const char *options)',
) as (source: string, target: string, type: string, flags: number, options: string) => number
const umount2 = libc.func('int umount2(const char *target, int flags)') as (target: string, flags: number) => number
const ioctl = libc.func('int ioctl(int descriptor, unsigned long request, unsigned long argument)') as (
  descriptor: number,
  request: number,
  argument: number,
) => number

/** Drops what the kernel has cached of a block device (linux/fs.h). */
const BLKFLSBUF = 0x1261
const MNT_DETACH = 2

export class LoopMount {
  readonly device: string
  /** Keeps the device from clearing itself, as long as this process lives. */
  readonly #held: number

  constructor(
    file: string,
    readonly mountPoint: string,
  ) {
    this.device = execFileSync('losetup', ['--find', '--show', file]).toString().trim()
    this.#held = openSync(this.device, 'r')
    execFileSync('losetup', ['--detach', this.device])
  }

  close(): void {
    closeSync(this.#held)
  }

  /** A real mount: the journal is replayed. Throws with the errno, as `code`, where the file system cannot be mounted. */
  mount(fileSystem: string): void {
    // The file has changed behind the device's back.
    check('ioctl(BLKFLSBUF)', ioctl(this.#held, BLKFLSBUF, 0))
    check(`mount of ${fileSystem}`, mount(this.device, this.mountPoint, fileSystem, 0, ''))
  }

  unmount(): void {
    try {
      check('umount', umount2(this.mountPoint, 0))
    } catch (error) {
      umount2(this.mountPoint, MNT_DETACH)
      throw error
    }
  }
}

/** Lays a file over another path, for this mount namespace alone. */
export function bindOver(file: string, over: string): void {
  execFileSync('mount', ['--bind', file, over])
}

function check(call: string, result: number): void {
  if (result === 0) return
  const errno = koffi.errno()
  const name = Object.entries(koffi.os.errno).find(([, value]) => value === errno)?.[0] ?? errno
  throw Object.assign(new Error(`${call}: ${name}`), { code: name })
}
