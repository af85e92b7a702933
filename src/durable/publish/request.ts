import { directoriesAbove } from '../../relative-path.js'
import { isReadLater, type PlannedContent, plannedContent } from './content.js'
import {
  type FileReadingOptions,
  type TargetNames,
  type Tree,
  type TreeEntry,
  checkPublishedTarget,
  compareBytes,
  isUnicode,
  maximumName,
  type CopyOptions,
} from '../path/index.js'
import type { FileSystem } from '../file-system.js'
import type { StoredRecord } from '../record/index.js'
import type { Site } from '../target/index.js'
import type { Adopting, DirectoryRequest, Owner, PublicationOptions, ReplaceDirectoryOptions } from '../types.js'

/** An entry of a publication; the target itself has the empty path. */
export interface PlannedEntry {
  readonly path: string
  /** Absent: a directory. */
  readonly content?: PlannedContent
  readonly mode: number
}

/** What a directory is to hold: checked, complete. */
export interface DirectoryPlan extends CopyOptions {
  readonly target: string
  /** The target itself, its files and its subdirectories, in byte order of their paths: parents come before children. */
  readonly planned: readonly PlannedEntry[]
  readonly mode: number
  readonly owner: Owner | undefined
}

/** The scene that an adoption checks under the lock, before holdfast takes a foreign directory over. */
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

/** Decides whether holdfast may take over a foreign directory: see adoption.ts. */
export interface Adoption extends Adopting {
  /**
   * Called under the lock with the foreign content that the publication has read: it may take over that very content, by its digest.
   * @throws DurableWriteError where it may not
   */
  approve(scene: AdoptionScene, read: Tree): Promise<void>
  /** Refuses a directory that holdfast cannot even read. @throws DurableWriteError unless it is holdfast's own */
  refuseUnreadable(scene: AdoptionScene): Promise<void>
}

/** How a directory is published. */
export interface DirectoryPublicationOptions extends PublicationOptions {
  /** In the form `exchange`: takes over a non-empty directory that has no record once seven checks have passed: see adoption.ts. */
  adopt?: Adoption
}

/** The publication of a directory. */
export type PublicationRequest = DirectoryRequest & DirectoryPublicationOptions

/** The request for content as it was recorded: with the modes and for the owner of its entries, the target first, in the record's form. */
export function requestAsRecorded(
  target: string,
  { kind, keepsAttributes }: Pick<StoredRecord, 'kind' | 'keepsAttributes'>,
  entries: readonly Pick<TreeEntry, 'path' | 'type' | 'mode' | 'uid' | 'gid'>[],
  files: ReadonlyMap<string, Uint8Array>,
): DirectoryRequest & PublicationOptions {
  const [root] = entries
  const modes = new Map(entries.map(({ path, mode }) => [path, mode]))
  const below = entries.filter(({ type, path }) => type === 'directory' && path !== '').map(({ path }) => path)
  return {
    target,
    files: Object.fromEntries([...files].map(([path, content]) => [path, { content, mode: modes.get(path) }])),
    mode: root?.mode,
    owner: root,
    ...(kind === 'symlink' ? { publish: kind } : { emptyDirectories: below }),
    ...(keepsAttributes === true && { attributes: 'keep' }),
  }
}

const maximumMode = 0o7777

/** Checks the request and completes it. Throws TypeError or RangeError, which name the place; nothing was touched. */
export function planFor(
  target: string,
  options: ReplaceDirectoryOptions & Pick<PublicationOptions, 'emptyDirectories'> & FileReadingOptions & CopyOptions,
): DirectoryPlan {
  const mode = checkMode('mode', options.mode ?? 0o755)
  const fileMode = checkMode('fileMode', options.fileMode ?? 0o600)
  if (typeof options.files !== 'object') throw new TypeError('files must be an object: relative path to content')
  const files: PlannedEntry[] = []
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
  const planned = [...files, ...['', ...directories].map((path) => ({ path, mode }))]
  return {
    target: checkPublishedTarget(target),
    planned: planned.sort((a, b) => compareBytes(a.path, b.path)),
    mode,
    owner: options.owner === undefined ? undefined : checkOwner(options.owner),
    ...(options.entries && { entries: options.entries }),
    ...(options.inPlaceOf !== undefined && { inPlaceOf: options.inPlaceOf }),
  }
}

/** A publication of the same target that has no content. */
export function emptied(
  { target, planned, mode, owner }: DirectoryPlan,
  { family, log }: PublicationOptions,
): [DirectoryPlan, PublicationOptions] {
  const plan = { target, planned: planned.filter(({ path }) => path === ''), mode, owner }
  return [plan, { ...(family !== undefined && { family }), ...(log && { log }) }]
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
