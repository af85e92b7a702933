/**
 * holdfast as a library: directories and files that survive a power cut whole.
 *
 * @packageDocumentation
 */
import * as durable from './durable/index.js'
import type { DurableWriteError } from './durable/errors.js'
import type { FileContent, Publication, ReplaceResult, SyncOptions } from './durable/types.js'
import type { BatchRequest, CallOptions, DirectoryOptions, FileOptions } from './library/public-options.js'
import {
  callChecks,
  checkFields,
  directoryChecks,
  fileChecks,
  ownBytes,
  ownFiles,
  requestChecks,
} from './library/public-fields.js'

// Types come from where they stand: the package holds the types that these lead to, and the door of the core leads to all of it.
export { DurableWriteError } from './durable/errors.js'
export type {
  DirectoryRequest,
  FileContent,
  FilePath,
  Hold,
  Outcome,
  Owner,
  Pin,
  Publication,
  RecordedObject,
  ReplaceDirectoryOptions,
  ReplaceFileOptions,
  ReplaceResult,
  SyncOptions,
} from './durable/types.js'
export type { Log } from './log.js'
export type { BatchRequest, CallOptions, DirectoryOptions, FileOptions } from './library/public-options.js'
export type { Reason } from './reasons.js'

/** Who calls the library waits for it: its calls need no threads, which cost more than most calls do. */
const system = new durable.AtOnceFileSystem()

/** What the core makes of it: a publication through the library takes a move to another path back. */
function asked<T extends DirectoryOptions>(options: T) {
  return { ...options, files: ownFiles(options.files), movedTo: null }
}

/**
 * Replaces a directory as a whole, with what other programs put there (`foreign: 'same-names'` refuses that): a reader sees all of the old
 * content or all of the new, and once this resolves, the new content survives a power cut. Rejects with DurableWriteError, whose `published` tells whether the new content is visible; with TypeError or RangeError,
 * nothing touched, where the request is malformed.
 */
export async function replaceDirectory(target: string, options: DirectoryOptions): Promise<ReplaceResult> {
  return durable.replaceDirectory(target, asked(checkFields('options', options, directoryChecks)), system)
}

/**
 * Replaces many directories with one barrier before the exchanges and one after. One entry for each request, in order; one
 * target's fault is its own. `options` are for all requests. Rejects, nothing written, where a request is malformed or two targets are the
 * same or nested.
 */
export async function replaceDirectories(
  requests: readonly BatchRequest[],
  options: CallOptions = {},
): Promise<(ReplaceResult | { error: DurableWriteError })[]> {
  if (!Array.isArray(requests)) throw new TypeError('replaceDirectories takes an array of requests')
  const forAll = checkFields('options', options, callChecks)
  return durable.replaceDirectories(
    requests.map((request: BatchRequest, index) => ({
      ...forAll,
      ...asked(checkFields(`requests[${index}]`, request, requestChecks)),
    })),
    forAll,
    system,
  )
}

/** What a program that replaces a file expects: what it does not name of mode and owner stays. */
function attributesFor({ mode, owner }: FileOptions) {
  if (mode === undefined) return owner === undefined ? 'keep' : 'keepMode'
  return owner === undefined ? 'keepOwner' : 'set'
}

/**
 * Replaces one file: a temporary with a leading dot beside it, renamed over. An existing file keeps its mode and owner, unless the options
 * name them; the directory above it must exist, unless `parents` is true. Rejects as replaceDirectory does.
 */
export async function replaceFile(
  path: string,
  content: FileContent,
  options: FileOptions = {},
): Promise<ReplaceResult> {
  const known = checkFields('options', options, fileChecks)
  // And that a typo in the path makes no directory.
  const defaults = { attributes: attributesFor(known), parents: false } as const
  return durable.replaceFile(path, ownBytes(content), { ...defaults, ...known }, system)
}

/**
 * What the newest record says of a target, compared with the disk; undefined where nothing was ever published there. Takes no lock and
 * writes nothing. Rejects with DurableWriteError where the target or its record cannot be read.
 */
export async function readPublication(target: string): Promise<Publication | undefined> {
  return durable.readPublication(target)
}

/** The content of a target, compared with its publication. */
export interface Verification {
  /** Of the target. */
  path: string
  /** The target equals its last publication. */
  intact: boolean
  /** Digest of the published content; undefined where there never was one. */
  digest: string | undefined
  /** Digest of the content on the disk; undefined without a target, or without a publication. */
  actual: string | undefined
  /** Paths, relative to the target, that differ, and how. */
  differences: Publication['differences']
}

/** Whether a target still equals its publication. Rejects as readPublication does. */
export async function verifyDirectory(target: string): Promise<Verification> {
  const publication = await readPublication(target)
  const { digest, actual, differences = [] } = publication ?? {}
  const intact = publication !== undefined && digest === actual && differences.length === 0
  return { path: publication?.path ?? target, intact, digest, actual, differences }
}

/** fsync of a file or a directory; refuses symbolic links in the last part of the path. @throws DurableWriteError */
export async function syncPath(path: string, options?: SyncOptions): Promise<void> {
  return durable.syncPath(path, options)
}

/**
 * RENAME_EXCHANGE of two paths of any kind, then fsync of both parents and their ancestors.
 * @throws DurableWriteError; `published: true` when they have changed places, perhaps not durably
 */
export async function exchange(a: string, b: string, options?: SyncOptions): Promise<void> {
  return durable.exchange(a, b, options)
}
