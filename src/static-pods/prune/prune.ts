/*
 * Removes old revisions of a static pod. A revision that anything on the node still names stays, whichever flags prune gets. Each
 * leaves by a rename to a name that no program reads, made durable before the first of its files goes: a crash leaves it whole or
 * not at all, and the next run of prune or install removes the rest.
 */
import { isSystemError, messageOf } from '../../errors.js'
import { basename, join } from 'node:path'
import type { Log } from '../../log.js'
import { fsyncAll, namedRecords, namesFor, type DurableCalls, nodeFiles, remove } from '../../durable/index.js'
import { DurableWriteError, wrapError } from '../../durable/errors.js'
import type { Descriptor, FileSystem } from '../../durable/file-system.js'
import { InvalidInput, StaticPodError, withState } from '../failure.js'
import { listManifests } from '../node-files.js'
import { unprovenPlaces, warnOfUnproven } from '../unproven-places.js'
import { revisionsOfLinks, revisionsOfManifests } from './revisions-in-use.js'
import { leftoversOf } from './leftovers.js'
import { operationLockName, revisionFamily, revisionName, revisionOf } from '../names.js'

export interface PruneRequest {
  readonly pod: string
  readonly resourceDirectory: string
  /** The manifests in it protect the revisions that they name. */
  readonly manifestDirectory: string
  /** Only revisions up to this one may go; undefined: any. */
  readonly maxEligible: number | undefined
  readonly protectedRevisions: readonly number[]
  /** So many of the newest stay. */
  readonly keep: number
  readonly dryRun: boolean
  /** Milliseconds to wait for an installation that is under way. */
  readonly lockTimeout: number
  /** Refuses file systems on which durability is not proven. */
  readonly requireProven?: boolean
}

export interface PruneLine {
  readonly revision: number
  readonly path: string
  /** `removed` is `would be removed` for a dry run; `failed`: it is whole, under its name, or out of sight with files left. */
  readonly outcome: 'kept' | 'removed' | 'failed'
  /** Why prune keeps it, or what failed. */
  readonly why?: string
  /** It is removed where durability is not proven. */
  readonly unproven?: true
}

/**
 * @throws DurableWriteError (Busy), StaticPodError where there is no resource directory, Error where prune cannot tell which
 * revisions are in use: then it removes nothing
 */
export async function prune(
  request: PruneRequest,
  durable: DurableCalls,
  log: Log,
  signal: AbortSignal,
): Promise<PruneLine[]> {
  const { resourceDirectory, pod, dryRun, lockTimeout, requireProven = false } = request
  if (resourceDirectory === '/')
    throw new InvalidInput('--resource-dir is /: name the directory that holds the revisions')
  // In plain words where it is no directory, or cannot be read.
  await nodeFiles.entriesOf(durable.fs, resourceDirectory).catch(nothingRemoved)
  const present = await durable.inDirectory(resourceDirectory, () => Promise.resolve('there'))
  // library-go fails, too: a mistyped path, or a mount that is missing, would otherwise let revisions pile up unseen.
  if (present === undefined) throw absent(resourceDirectory)
  if (dryRun) return verdicts(request, durable.fs, log).catch(nothingRemoved)
  // Before any removal: a failure here has changed nothing.
  const unproven = await unprovenPlaces([{ path: resourceDirectory }], { durable, requireProven })
  const held = await durable.lock(join(resourceDirectory, operationLockName(pod)), lockTimeout, signal)
  try {
    const lines = await verdicts(request, durable.fs, log).catch(nothingRemoved)
    if (lines.some(({ outcome }) => outcome === 'removed')) await syncVerdicts(request, durable).catch(nothingRemoved)
    signal.throwIfAborted()
    const removed = await durable.inDirectory(resourceDirectory, (directory) =>
      removeAll(durable, directory, request, lines, log),
    )
    // Another program has moved it away meanwhile.
    if (removed === undefined) throw absent(resourceDirectory)
    if (!removed.some(({ outcome }) => outcome === 'removed')) return removed
    const proof = warnOfUnproven(unproven, log)
    return removed.map((line) => (line.outcome === 'removed' ? { ...line, ...proof } : line))
  } finally {
    await held.release()
  }
}

/** A read or a sync before the first removal has failed. */
function nothingRemoved(error: unknown): never {
  throw withState(error, ['nothing was removed'])
}

function absent(resourceDirectory: string): StaticPodError {
  return new StaticPodError(
    `the resource directory ${resourceDirectory} does not exist; nothing was removed; check --resource-dir, and whether ` +
      `it is mounted here`,
  )
}

async function verdicts(request: PruneRequest, fs: FileSystem, log: Log): Promise<PruneLine[]> {
  const { pod, resourceDirectory, maxEligible, protectedRevisions, keep } = request
  const entries = await nodeFiles.entriesOf(fs, resourceDirectory)
  const revisions = entries
    // A link that looks like a revision is not followed, and not ours.
    .flatMap((entry) => (entry.type === 'directory' ? [revisionOf(pod, entry.name)] : []))
    .filter((revision) => revision !== undefined)
    .sort((a, b) => b - a)
  const manifests = await revisionsOfManifests(fs, request, log)
  const links = await revisionsOfLinks(fs, resourceDirectory, pod)
  const unreadable =
    manifests.unreadable && `${manifests.unreadable} is not readable as a pod, and may name any revision`
  return revisions.map((revision, index) => {
    const path = join(resourceDirectory, revisionName(pod, revision))
    const naming = manifests.naming(revision) ?? links.get(revision)
    const why =
      (naming && `named by ${naming}`) ??
      (protectedRevisions.includes(revision) ? 'protected' : undefined) ??
      (index < keep ? `among the newest ${keep}` : undefined) ??
      (maxEligible !== undefined && revision > maxEligible ? `newer than ${maxEligible}` : undefined)
    if (why !== undefined) return { revision, path, outcome: 'kept', why }
    // A failure, so that a timer that runs prune shows it: revisions would otherwise pile up unseen.
    return { revision, path, ...(unreadable ? { outcome: 'failed', why: unreadable } : { outcome: 'removed' }) }
  })
}

/** A power cut may bring back a manifest that another program replaced without a sync, and that may name a revision to go: sync first. */
async function syncVerdicts(
  { resourceDirectory, manifestDirectory }: PruneRequest,
  durable: DurableCalls,
): Promise<void> {
  const manifests = await listManifests(durable.fs, manifestDirectory)
  await durable.syncNames(
    manifestDirectory,
    manifests.map((path) => basename(path)),
  )
  await durable.syncNames(resourceDirectory)
}

async function removeAll(
  durable: DurableCalls,
  directory: Descriptor,
  { pod, resourceDirectory }: PruneRequest,
  lines: readonly PruneLine[],
  log: Log,
): Promise<PruneLine[]> {
  const { fs } = durable
  // Records tell what the leftovers are: one that is refused stops this before the first rename.
  await namedRecords(fs, directory)
  const family = namesFor('', revisionFamily(pod))
  const failures = new Map<PruneLine, unknown>()
  const gone = new Map<string, PruneLine>()
  for (const line of lines.filter(({ outcome }) => outcome === 'removed')) {
    const staging = family.staging(fs.random())
    try {
      await fs.rename(directory, revisionName(pod, line.revision), directory, staging, 'noreplace')
      gone.set(staging, line)
    } catch (error) {
      failures.set(line, wrapError(line.path, error, false, `could not remove a revision from ${resourceDirectory}`))
    }
  }
  const newest = Math.max(0, ...lines.map(({ revision }) => revision))
  // Every prune removes a killed predecessor's leftovers, even if no revision goes now.
  const leftovers = await leftoversOf(durable, directory, pod, newest, resourceDirectory, log)
  // Not one file goes before the renames are on the disk: else a power cut could bring a name back without its files. A predecessor
  // that was killed may have removed all, and not made it durable.
  await syncRemovals(durable, directory, resourceDirectory)
  if (leftovers.length === 0) return lines.map((line) => pruneLine(line, failures.get(line)))
  for (const name of leftovers) {
    try {
      await remove(fs, directory, name)
    } catch (error) {
      const line = gone.get(name)
      const what = `files are left in ${join(resourceDirectory, name)}: ${messageOf(error)}`
      if (line) failures.set(line, `no longer visible as a revision, but ${what}; the next run retries`)
      else log.warn({ leftover: name, error: messageOf(error) }, `${what}; the next run retries`)
    }
  }
  // So that old private keys do not come back.
  await syncRemovals(durable, directory, resourceDirectory)
  return lines.map((line) => pruneLine(line, failures.get(line)))
}

/** This prune, or a killed predecessor, has renamed entries by now: `published` is true, even if a power cut undoes the renames. */
async function syncRemovals(durable: DurableCalls, directory: Descriptor, path: string): Promise<void> {
  try {
    await fsyncAll(durable.fs, [directory])
  } catch (error) {
    if (!isSystemError(error)) throw error
    const { code, syscall } = error
    throw new DurableWriteError(`could not sync ${path}: ${syscall}: ${code}`, {
      code,
      syscall,
      path,
      published: true,
      cause: error,
      state: 'revisions that are gone from there may come back with a power cut',
      advice: 'repeat the command: it completes the removal',
    })
  }
}

function pruneLine(line: PruneLine, failure: unknown): PruneLine {
  return failure === undefined ? line : { ...line, outcome: 'failed', why: messageOf(failure) }
}
