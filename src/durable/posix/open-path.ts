import * as fs from 'node:fs'
import { constants } from 'node:fs'
import { isMainThread } from 'node:worker_threads'
import * as native from '../../../native/index.js'
import type { Descriptor, Outcomes } from '../file-system.js'
import { atPath, call, errorAt, isText, lookAt } from './calls.js'
import * as calls from './calls.js'

const { O_DIRECTORY, O_NOFOLLOW } = constants

/** Not among Node's constants. A directory on the way needs no right but to search it. */
const O_PATH = 0o10000000

/**
 * When a worker thread ends, Node closes the descriptors that node:fs has opened in it; where node:fs closes any other one, Node warns. So
 * a worker thread opens nothing by openat2.
 */
const mayOpenBySystemCall = isMainThread

/**
 * Opens a path, no part of which is a symbolic link: ELOOP. `flags`: for a directory unless they say otherwise. `root`: an open directory
 * from which the path leads; without it, the path is absolute.
 */
export async function openNoSymlinks(
  path: string,
  flags: number = native.directoryFlags,
  root?: number,
): Promise<number> {
  if (!mayOpenBySystemCall) return walkNoSymlinks(path, flags, root)
  try {
    return await native.openNoSymlinks(root ?? native.workingDirectory, path, flags)
  } catch (error) {
    // Before Linux 5.6, and under seccomp profiles that do not know openat2: walk, one component at a time.
    if (!(error instanceof native.SystemError) || !['ENOSYS', 'EPERM'].includes(error.code)) throw error
    return walkNoSymlinks(path, flags, root)
  }
}

/**
 * Opens an entry of a directory, on the same mount and no symbolic link: EXDEV, ELOOP. undefined where the kernel, a seccomp profile or a
 * name that is no text leaves the check to the caller. `flags`: O_NOFOLLOW need not be one of them.
 */
export async function openOnMount(parent: number, name: string, flags: number): Promise<number | undefined> {
  if (!isText(name) || !mayOpenBySystemCall) return undefined
  try {
    return await atPath(() => pathOf(parent, name), native.openOnSameMount(parent, name, flags))
  } catch (error) {
    if (error instanceof native.SystemError && ['ENOSYS', 'EPERM'].includes(error.code)) return undefined
    throw error
  }
}

/** The error for an entry on another mount than its directory. */
export function otherMount(path: string): native.SystemError {
  return new native.SystemError('openat2', native.errnoOf('EXDEV'), path)
}

/** What openat2 does with RESOLVE_NO_SYMLINKS, by O_NOFOLLOW: ELOOP or ENOTDIR at a symbolic link. @internal */
export async function walkNoSymlinks(
  path: string,
  flags: number = native.directoryFlags,
  root?: number,
): Promise<number> {
  const parts = path.split('/').filter((text) => text !== '')
  const flagsAt = (depth: number): number => (depth === parts.length ? flags : O_PATH | O_DIRECTORY) | O_NOFOLLOW
  // `/.`: the kernel's link to the directory is followed.
  let current = await open(root === undefined ? '/' : `/proc/self/fd/${root}/.`, flagsAt(0))
  for (const [index, part] of parts.entries()) {
    try {
      const next = await open(`/proc/self/fd/${current}/${part}`, flagsAt(index + 1))
      await closeDescriptor(current)
      current = next
    } catch (error) {
      const entry = await lookAt(`/proc/self/fd/${current}/${part}`).catch(() => undefined)
      await closeDescriptor(current)
      if (entry?.type === 'symlink') throw new native.SystemError('open', native.errnoOf('ELOOP'), path)
      throw error
    }
  }
  return current
}

/** The path of a descriptor as a person knows it: only a failed call asks the kernel for it. `name`: an entry of that directory. */
export function pathOf(descriptor: number, name?: string): string {
  const path = linkOf(descriptor)
  if (name === undefined) return path
  return path === '/' ? `/${name}` : `${path}/${name}`
}

function linkOf(descriptor: number): string {
  try {
    return fs.readlinkSync(`/proc/self/fd/${descriptor}`)
  } catch {
    return `descriptor ${descriptor}`
  }
}

function open(path: string, flags: number): Promise<number> {
  return call<number>(
    () => path,
    (done) => calls.open(path, flags, done),
  )
}

function closeDescriptor(descriptor: number): Promise<void> {
  return call(
    () => `descriptor ${descriptor}`,
    (done) => fs.close(descriptor, done),
  )
}

/** The failures of a barrier, with the paths that a person knows. */
export function namedEach(descriptors: readonly Descriptor[], outcomes: Outcomes): Outcomes {
  return outcomes.map((outcome, index) =>
    outcome === undefined ? undefined : errorAt(pathOf(descriptors[index] ?? -1), outcome),
  )
}
