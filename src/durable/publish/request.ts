import { directoriesAbove } from '../../relative-path.js'
import { isReadLater, type PlannedContent, plannedContent } from './content.js'
import {
  type FileReadingOptions,
  type TargetNames,
  type Tree,
  checkPublishedTarget,
  compareBytes,
  isUnicode,
  maximumName,
  type CopyOptions,
} from '../path/index.js'
import type { FileSystem } from '../file-system.js'
import type { Site } from '../target/index.js'
import type { Adopting, Owner, PublicationOptions, ReplaceDirectoryOptions } from '../types.js'

/** One file of a publication. */
interface PlannedFile {
  readonly path: string
  readonly content: PlannedContent
  readonly mode: number
}

/** What a directory is to hold: checked, complete, in byte order of the paths. */
export interface DirectoryPlan extends CopyOptions {
  readonly target: string
  readonly files: readonly PlannedFile[]
  /** Subdirectories, parents before children. */
  readonly directories: readonly string[]
  readonly mode: number
  readonly owner: Owner | undefined
}

/** What is looked at before somebody else's directory is taken over, under the lock. */
export interface AdoptionScene {
  readonly fs: FileSystem
  readonly path: string
  readonly name: string
  /** Open, where its parent exists. */
  readonly site: Site
  readonly names: TargetNames
  /** Another process has the lock. */
  readonly busy: boolean
  readonly plan: DirectoryPlan
  readonly desired: Tree
  /** Owners stay as they are: they are the administrator's. */
  readonly keepsOwners: boolean
}

/** Who decides whether somebody else's directory may be taken over: see adoption.ts. */
export interface Adoption extends Adopting {
  /**
   * For whoever publishes, under the lock, and has read what is somebody else's: that very content, by its digest, may be taken over.
   * @throws DurableWriteError where it may not
   */
  approve(scene: AdoptionScene, read: Tree): Promise<void>
  /** What cannot even be read. @throws DurableWriteError unless it is holdfast's own */
  refuseUnreadable(scene: AdoptionScene): Promise<void>
}

/** How a directory is published. */
export interface DirectoryPublicationOptions extends PublicationOptions {
  /** In the form `exchange`: takes over a non-empty directory that has no record once seven checks have passed: see adoption.ts. */
  adopt?: Adoption
}

const maximumMode = 0o7777

/** Checks the request and completes it. Throws TypeError or RangeError, which name the place; nothing was touched. */
export function planFor(
  target: string,
  options: ReplaceDirectoryOptions &
    Pick<PublicationOptions, 'emptyDirectories' | 'contentStays'> &
    FileReadingOptions &
    CopyOptions,
): DirectoryPlan {
  const mode = checkMode('mode', options.mode ?? 0o755)
  const fileMode = checkMode('fileMode', options.fileMode ?? 0o600)
  if (typeof options.files !== 'object') throw new TypeError('files must be an object: relative path to content')
  const files: PlannedFile[] = []
  for (const [path, value] of Object.entries(options.files)) {
    checkRelativePath(path)
    const isEntry = typeof value === 'object' && !(value instanceof Uint8Array) && !isReadLater(value)
    const content = isEntry ? value.content : value
    const own = isEntry ? value.mode : undefined
    files.push({
      path,
      content: plannedContent(target, path, content, options),
      mode: own === undefined ? fileMode : checkMode(`files[${JSON.stringify(path)}].mode`, own),
    })
  }
  const empty = (options.emptyDirectories ?? []).map((path) => {
    checkRelativePath(path)
    return `${path}/`
  })
  const directories = new Set([...files.map(({ path }) => path), ...empty].flatMap(directoriesAbove))
  const clash = files.find((file) => directories.has(file.path))
  if (clash) throw new TypeError(`files: ${JSON.stringify(clash.path)} is both a file and a directory`)
  return {
    target: checkPublishedTarget(target),
    files: files.sort((a, b) => compareBytes(a.path, b.path)),
    directories: [...directories].sort(compareBytes),
    mode,
    owner: options.owner === undefined ? undefined : checkOwner(options.owner),
    ...(options.entries && { entries: options.entries }),
    ...(options.inPlaceOf !== undefined && { inPlaceOf: options.inPlaceOf }),
  }
}

export function checkMode(name: string, mode: number): number {
  if (!Number.isInteger(mode) || mode < 0 || mode > maximumMode) {
    throw new RangeError(
      `${name} must be an integer from 0 to 0o7777, not ${typeof mode === 'number' ? mode : JSON.stringify(mode)}`,
    )
  }
  return mode
}

export function checkOwner(owner: Owner): Owner {
  for (const part of ['uid', 'gid'] as const) {
    const value = owner[part]
    // (uid_t)-1 means "leave it" to chown(2).
    if (!Number.isInteger(value) || value < 0 || value >= 0xffffffff) {
      throw new RangeError(`owner.${part} must be an integer from 0 to 4294967294, not ${String(value)}`)
    }
  }
  return { uid: owner.uid, gid: owner.gid }
}

function checkRelativePath(path: string): void {
  const shown = JSON.stringify(path)
  if (path === '') throw new TypeError('files: a path is empty')
  if (path.includes('\0')) throw new TypeError(`files: ${shown} holds a NUL byte`)
  if (!isUnicode(path)) {
    throw new TypeError(`files: ${shown} holds half of a surrogate pair, which is not valid text`)
  }
  if (path.startsWith('/') || path.endsWith('/')) {
    throw new TypeError(`files: ${shown} starts or ends with a slash: paths are relative to the target`)
  }
  for (const part of path.split('/')) {
    if (part === '' || part === '.' || part === '..') {
      throw new TypeError(`files: ${shown} has the part ${JSON.stringify(part)}; leave it out`)
    }
    if (Buffer.byteLength(part) > maximumName) {
      throw new TypeError(`files: ${shown} has a part longer than ${maximumName} bytes`)
    }
  }
}
