/*
 * Files and directories that survive a power cut. Whoever opens a target sees all of the old content or all of the new;
 * when a call returns, the new content is on stable storage; after a crash at any instant the target is all old or all
 * new. A DurableWriteError with `published: false` means that the target is what it was, with `published: true` that the
 * new content is visible and its durability unknown. Malformed requests throw TypeError or RangeError and touch nothing.
 */
import { completeHook as complete, recordObjects as record } from './append-to-record.js'
import { DirectoryPublication } from './directory-publication.js'
import { isSystemError } from '../errors.js'
import { wrapError } from './errors.js'
import { FilePublication } from './file-publication.js'
import type { FileSystem } from './file-system.js'
import { readPublication as look } from './inspect.js'
import { NodeFileSystem } from './node-file-system.js'
import type { TargetPublication } from './publication.js'
import { type DirectoryPlanResult, plan } from './plan.js'
import { publish } from './publish.js'
import { readPublishedFiles as publishedFiles } from './published-files.js'
import { checkMode, checkOwner, checkTarget, planFor, toBytes } from './request.js'
import { SymlinkPublication } from './symlink-publication.js'
import type {
  DirectoryRequest,
  FileContent,
  Publication,
  PublicationOptions,
  RecordedObject,
  ReplaceDirectoryOptions,
  ReplaceFileOptions,
  ReplaceResult,
} from './types.js'
import type { DurableWriteError } from './errors.js'

export { exchange, syncParents, syncPath } from './sync-path.js'
export type { DirectoryChange, DirectoryPlanResult } from './plan.js'
export { DurableWriteError } from './errors.js'
/** Keeps what this process holds in memory, private keys among it, out of core files. */
export { disableCoreDumps } from '../../native/index.js'
export type * from './types.js'

const system: FileSystem = new NodeFileSystem()

/** Replaces a directory as a whole. See the head of this module for what it promises. */
export async function replaceDirectory(
  target: string,
  options: ReplaceDirectoryOptions & PublicationOptions,
): Promise<ReplaceResult> {
  return only(await replaceDirectories([{ ...options, target }], options))
}

/** Replaces many directories with one barrier before the exchanges and one after. */
export async function replaceDirectories(
  requests: readonly (DirectoryRequest & PublicationOptions)[],
  options: Pick<PublicationOptions, 'signal'> = {},
): Promise<(ReplaceResult | { error: DurableWriteError })[]> {
  return publish(
    requests.map((request) => directoryPublication(system, request)),
    options.signal,
  )
}

/** The publication of one directory on the given file system, for publish(). */
export function directoryPublication(
  fs: FileSystem,
  request: DirectoryRequest & PublicationOptions,
): TargetPublication {
  const plan = planFor(request.target, request)
  return request.publish === 'symlink'
    ? new SymlinkPublication(fs, plan, request)
    : new DirectoryPublication(fs, plan, request)
}

/** What replaceDirectory would do, by paths and digest; writes nothing, and takes no lock. Throws what it would throw. */
export async function planDirectory(request: DirectoryRequest & PublicationOptions): Promise<DirectoryPlanResult> {
  return plan(directoryPublication(system, request))
}

/** Replaces one file: a temporary with a leading dot beside it, renamed over. */
export async function replaceFile(
  path: string,
  content: FileContent,
  options: ReplaceFileOptions & PublicationOptions = {},
): Promise<ReplaceResult> {
  return only(await publish([filePublication(system, path, content, options)], options.signal))
}

/** The publication of one file on the given file system, for publish(). */
export function filePublication(
  fs: FileSystem,
  path: string,
  content: FileContent,
  options: ReplaceFileOptions & PublicationOptions,
): TargetPublication {
  const target = checkTarget(path)
  if (path.endsWith('/')) throw new TypeError(`${JSON.stringify(path)} ends with a slash, as a directory does`)
  const plan = {
    target,
    bytes: toBytes(path, content),
    mode: checkMode('mode', options.mode ?? 0o600),
    owner: options.owner === undefined ? undefined : checkOwner(options.owner),
  }
  return new FilePublication(fs, plan, options)
}

function only(outcomes: readonly (ReplaceResult | { error: DurableWriteError })[]): ReplaceResult {
  const [outcome] = outcomes
  if (outcome === undefined) throw new Error('publish() returned nothing')
  if ('error' in outcome) throw outcome.error
  return outcome
}

/** What the newest record says of a target, compared with the disk. */
export async function readPublication(target: string): Promise<Publication | undefined> {
  return told(target, look(system, target))
}

/** The named files of a published directory, as they are on the disk. */
export async function readPublishedFiles(
  target: string,
  paths: readonly string[],
): Promise<Record<string, { content: Uint8Array; mode: number }>> {
  return told(target, publishedFiles(system, target, paths))
}

/** Records that a hook has run for the publication with this digest. */
export async function completeHook(target: string, digest: string, hook: string): Promise<boolean> {
  return told(target, complete(system, target, digest, hook))
}

/** Records newer versions of the objects that gave the content of this digest. */
export async function recordObjects(
  target: string,
  digest: string,
  objects: readonly RecordedObject[],
): Promise<boolean> {
  return told(target, record(system, target, digest, objects))
}

async function told<T>(target: string, call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (error) {
    throw isSystemError(error) ? wrapError(target, error, false, `could not read ${target}`) : error
  }
}
