import { DirectoryPublication } from './directory-publication.js'
import type { DurableWriteError } from '../errors.js'
import { FilePublication } from './file-publication.js'
import type { FileSystem } from '../file-system.js'
import { plannedContent } from './content.js'
import { compare } from '../record/index.js'
import { system } from '../posix/index.js'
import type { TargetPublication } from './publication.js'
import { PlannedTree } from './planned-tree.js'
import { publish, type Later } from './publish.js'
import { checkMode, checkOwner, type DirectoryPublicationOptions, planFor, type PublicationRequest } from './request.js'
import { type CopyOptions, checkPublishedTarget, type Tree } from '../path/index.js'
import { SymlinkPublication } from './symlink-publication.js'
import type {
  FileContent,
  PublicationOptions,
  ReplaceDirectoryOptions,
  ReplaceFileOptions,
  ReplaceResult,
  Outcome,
} from '../types.js'

/** Replaces a directory as a whole. The head of index.ts has its guarantees. */
export async function replaceDirectory(
  target: string,
  options: ReplaceDirectoryOptions & DirectoryPublicationOptions,
  fs?: FileSystem,
): Promise<ReplaceResult> {
  return only(await replaceDirectories([{ ...options, target }], options, fs))
}

/** Replaces many directories with one barrier before the exchanges and one after. */
export async function replaceDirectories(
  requests: readonly PublicationRequest[],
  { signal, later }: Pick<PublicationOptions, 'signal'> & { readonly later?: Later } = {},
  fs = system,
): Promise<(ReplaceResult | { error: DurableWriteError })[]> {
  return publish(
    requests.map((request) => directoryPublication(fs, request)),
    signal,
    later,
  )
}

/** The publication of one directory on the given file system, for publish(). */
export function directoryPublication(fs: FileSystem, request: PublicationRequest & CopyOptions): TargetPublication {
  const plan = planFor(request.target, { ...request, fs })
  return new forms[request.publish ?? 'exchange'](fs, plan, request)
}

/** How each form of publication does it. */
const forms = {
  exchange: DirectoryPublication,
  symlink: SymlinkPublication,
} as const satisfies Record<NonNullable<PublicationOptions['publish']>, unknown>

/** Plans replaceDirectory by paths and digest; writes nothing, and takes no lock. Throws the same errors. `asCaller`: see preview(). */
export async function planDirectory(request: PublicationRequest, asCaller = false): Promise<DirectoryPlanResult> {
  return planOf(directoryPublication(system, request), asCaller)
}

/**
 * Plans replaceFile in the same way, for this process as it is now. Without content: refuses each target that replaceFile would refuse with
 * any, for callers whose content costs something.
 */
export async function planFile(
  path: string,
  content: FileContent | undefined,
  options: ReplaceFileOptions & PublicationOptions,
): Promise<DirectoryPlanResult> {
  // No file holds the random content yet: with any other, a held target could pass as unchanged.
  const publication = filePublication(system, path, content ?? system.random(), options)
  // Its name stands in the result already.
  return { ...(await planOf(publication, content !== undefined)), changes: [] }
}

/** What a directory would hold, which holds `found` now: that is not read, and nothing is refused but what can never be published. */
export async function desiredEntries(request: PublicationRequest, found: Tree['entries']): Promise<Tree['entries']> {
  const planned = PlannedTree.ofDirectory(planFor(request.target, { ...request, fs: system }), system.user)
  await planned.read()
  if (request.attributes === 'keep') await planned.keep(request.target, { entries: found, digest: '' })
  return planned.tree.entries
}

/** Replaces one file: a temporary with a leading dot beside it, renamed over. */
export async function replaceFile(
  path: string,
  content: FileContent,
  options: ReplaceFileOptions & PublicationOptions = {},
  fs = system,
): Promise<ReplaceResult> {
  return only(await publish([filePublication(fs, path, content, options)], options.signal))
}

/** The publication of one file on the given file system, for publish(). */
export function filePublication(
  fs: FileSystem,
  path: string,
  content: FileContent,
  options: ReplaceFileOptions & PublicationOptions,
): TargetPublication {
  const target = checkPublishedTarget(path)
  if (path.endsWith('/')) throw new TypeError(`${JSON.stringify(path)} ends with a slash: name a file`)
  const plan = {
    target,
    content: plannedContent(target, path, content, { ...options, fs }),
    mode: checkMode('mode', options.mode ?? 0o600),
    owner: options.owner === undefined ? { ...fs.user } : checkOwner(options.owner),
  }
  return new FilePublication(fs, plan, options)
}

/** The result of one publication. @throws DurableWriteError where it failed */
export function only(outcomes: readonly (ReplaceResult | { error: DurableWriteError })[]): ReplaceResult {
  const [outcome] = outcomes
  if (outcome === undefined) throw new Error('publish() returned nothing')
  if ('error' in outcome) throw outcome.error
  return outcome
}

export interface DirectoryChange {
  path: string
  change: 'add' | 'change' | 'remove'
}

/** What publishing would answer: see ReplaceResult. */
export interface DirectoryPlanResult {
  outcome: Outcome
  path: string
  digest: string
  unproven?: true
  /** Files that would change; directories only where nothing but themselves changes. */
  changes: DirectoryChange[]
}

const kinds = {
  missing: 'add',
  unexpected: 'remove',
  content: 'change',
  mode: 'change',
  owner: 'change',
  type: 'change',
  more: 'remove',
} as const

/** What publishing would do, by paths and digest; writes nothing, takes no lock, and refuses what publishing would refuse. */
export async function planOf(publication: TargetPublication, asCaller = false): Promise<DirectoryPlanResult> {
  try {
    const { outcome, desired, found } = await publication.preview(asCaller)
    const { path, digest, unproven } = publication.result(outcome)
    const files = new Set(desired.entries.filter(({ type }) => type === 'file').map(({ path }) => path))
    const changes = compare(desired, found)
      .map(({ path, problem }) => ({ path, change: kinds[problem] }))
      .filter(({ path, change }) => change !== 'add' || files.has(path))
    return { outcome, path, digest, ...(unproven && { unproven }), changes }
  } catch (error) {
    throw publication.wrapError(error, 'could not plan the publication of')
  } finally {
    await publication.close()
  }
}
