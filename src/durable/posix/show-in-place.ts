import {
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, relative } from 'node:path'
import {
  bindMount,
  enterOwnMountNamespace,
  mountMemory,
  unmount,
  startInOwnPidNamespace,
} from '../../../native/index.js'
import { effectiveCapabilities } from '../../capabilities.js'
import { codeOf, isSystemError } from '../../errors.js'
import type { StagedContent } from '../types.js'

/** Entries of a directory that get a mount each to be shown again. */
const most = 1000

/**
 * Shows staged content at its target's own path, to the calling thread and the processes that it starts alone. Its calls wait for the disk:
 * for a thread that the caller can give up, and that ends soon.
 *
 * @returns whether it does; not without CAP_SYS_ADMIN, or where a security module forbids it
 */
export function showInPlace({ directory, target }: StagedContent): boolean {
  return asAdministrator(() => {
    enterOwnMountNamespace()
    try {
      bindMount(directory, target)
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error
      return showNewName(directory, target)
    }
    return true
  })
}

/**
 * The first content of a target: the parent has no such name yet, and no other process is to see one, so a copy of the parent gets the
 * name.
 */
function showNewName(directory: string, target: string): boolean {
  const parent = dirname(target)
  // A process that stands in the root already does not see a mount over it.
  if (parent === '/') return false
  const names = readdirSync(parent)
  if (names.length > most) return false
  const opened = openSync(parent, constants.O_DIRECTORY | constants.O_RDONLY)
  try {
    // The directory itself, also under a mount.
    const uncovered = `/proc/self/fd/${opened}`
    mountMemory(parent)
    try {
      for (const name of names) showAgain(`${uncovered}/${name}`, `${parent}/${name}`)
      mkdirSync(`${parent}/${basename(target)}`)
      bindMount(`${uncovered}/${relative(parent, directory)}`, target)
    } catch (error) {
      unmount(parent)
      throw error
    }
    return true
  } finally {
    closeSync(opened)
  }
}

function showAgain(entry: string, path: string): void {
  try {
    const status = lstatSync(entry)
    if (status.isSymbolicLink()) {
      symlinkSync(readlinkSync(entry), path)
      return
    }
    if (status.isDirectory()) mkdirSync(path)
    else writeFileSync(path, '')
    bindMount(entry, path)
  } catch (error) {
    // Another program has removed it meanwhile.
    if (codeOf(error) !== 'ENOENT') throw error
  }
}

/**
 * From now on the kernel ends all processes of the calling thread with the first of them, also those in a new session. For a thread that
 * ends soon.
 *
 * @returns whether it does; not without CAP_SYS_ADMIN, or where the machine or a security module forbids it
 */
export function endTogether(): boolean {
  return asAdministrator(() => {
    startInOwnPidNamespace()
    return true
  })
}

function asAdministrator(act: () => boolean): boolean {
  // A seccomp filter may end a process at a refused call.
  if (!effectiveCapabilities()('CAP_SYS_ADMIN')) return false
  try {
    return act()
  } catch (error) {
    if (isSystemError(error)) return false
    throw error
  }
}
