import { isSystemError } from '../errors.js'
import { examineAdoption as examine } from './adoption.js'
import type { Adopting, AdoptionResult } from './adoption-types.js'
import { wrapError } from './errors.js'
import type { FileSystem } from './file-system.js'
import { setHold as writeHold } from './hold.js'
import type { HoldOptions } from './rewrite-record.js'
import { readHold as holdIn, readPublication as look, readPublishedFiles as publishedFiles } from './inspect.js'
import { NodeFileSystem } from './posix/file-system.js'
import { completeHook as complete, recordObjects as record } from './record-files.js'
import type { RelocationOptions } from './old-path.js'
import { pruneHistory as prune, readHistory as historyOf } from './past.js'
import { removePublished as takeAway } from './removal.js'
import type { RemovalOptions } from './removal-options.js'
import { relocateByHand as moveByHand, type HandRelocationOptions } from './relocate-by-hand.js'
import { endRelocation as endMove, relocate as move, type RelocationProgress } from './relocation.js'
import { sameTarget as same } from './site.js'
import { unprovenAt as proofAt } from './proof.js'
import { rollBack as goBack, type RollbackOptions } from './rollback.js'
import { listKept as keptIn, type KeptBeside } from './kept-beside.js'
import { readContent as contentOf, type TargetContent } from './target-content.js'
import type {
  DirectoryRequest,
  Hold,
  HistoryLimits,
  PastContent,
  Pin,
  Publication,
  PublicationOptions,
  RecordedObject,
  ReplaceResult,
} from './types.js'

/*
 * Files and directories that survive a power cut. Whoever opens a target sees all of the old content or all of the new;
 * when a call returns, the new content is on stable storage; after a crash at any instant the target is all old or all
 * new. A DurableWriteError with `published: false` means that the target is what it was, with `published: true` that the
 * new content is visible and its durability unknown. Malformed requests throw TypeError or RangeError and touch nothing.
 */

export * from './publishing.js'
/* For those who look at a target, or work beside it, as the core does. */
export type * from './file-system.js'
export { dataLink } from './generation.js'
export type { Identity } from './place.js'
export type { KnownEntry } from './record.js'
export { lock } from './lock.js'
export { namesFor, type TargetNames } from './names.js'
export { OwnFile } from './own-file.js'
export { inParallel } from './parallel.js'
export { mountAbove, mountDetails, mounts, rootMount, type MountDetails } from './posix/mountinfo.js'
export { readWhole } from './tree.js'
export { readAllRecords, readRecords, type Records } from './record-files.js'
export { describeHold, describePin, openTarget, refuseOtherThanDirectory } from './refusals.js'
export { unprovenRefused } from './proof.js'
export { remove } from './remove.js'
export { resolve, resolveLinks, type Place } from './resolve.js'
export { Scope } from './scope.js'
export { quarantineForeign } from './quarantine.js'
export { Disk, type DirectoryPublicationRequest, type FileRequest } from './operations.js'
export type { HeldLock } from './lock.js'
export type { RelocationProgress } from './relocation.js'
export { usesOf } from './in-use.js'
export type { HoldingKind, Unseen } from './posix/holdings.js'
export type { DirectoryChange } from './replace.js'
export { openedByLists } from './kept-attributes.js'
export { showInPlace } from './posix/show-in-place.js'
export { usageOf, type Usage } from './space.js'
export { identityAt, knownContent, removeTarget, swapPlaces, syncPlaces } from './swap-places.js'
export { exchange, syncParents, syncPath, type SyncOptions } from './sync-path.js'
/** Bounds the threads that work on one file system may keep. */
export { Lane, returnFreedMemory } from '../../native/index.js'
export type * from './adoption-types.js'
export type * from './types.js'
export type { KeptBeside } from './kept-beside.js'
export type { ContentEntry, TargetContent } from './target-content.js'

const system: FileSystem = new NodeFileSystem()

/** What the newest record says of a target, compared with the disk. */
export async function readPublication(target: string): Promise<Publication | undefined> {
  return readable(target, look(system, target))
}

/** The named files of a published directory, as they are on the disk. */
export async function readPublishedFiles(
  target: string,
  paths: readonly string[],
): Promise<Record<string, { content: Uint8Array; mode: number }>> {
  return readable(target, publishedFiles(system, target, paths))
}

/** Records that a hook has run for the publication with this digest. */
export async function completeHook(target: string, digest: string, hook: string): Promise<boolean> {
  return readable(target, complete(system, target, digest, hook))
}

/** Records newer versions of the objects that gave the content of this digest. */
export async function recordObjects(
  target: string,
  digest: string,
  objects: readonly RecordedObject[],
): Promise<boolean> {
  return readable(target, record(system, target, digest, objects))
}

/**
 * Keeps everybody from publishing a target, or lets it go (`undefined`): durable on return. Answers the hold that was in force before.
 * @throws DurableWriteError
 */
export async function setHold(
  target: string,
  hold: Hold | undefined,
  options: HoldOptions = {},
): Promise<Hold | Pin | undefined> {
  return writeHold(system, target, hold, options)
}

/** Whether an operator holds a target now, or has rolled it back, as its newest record says. The target itself is not read. */
export async function readHold(target: string): Promise<Hold | Pin | undefined> {
  return readable(target, holdIn(system, target))
}

/** A target's present content and its earlier ones, newest first; undefined where nothing was ever published there. */
export async function readHistory(target: string): Promise<PastContent[] | undefined> {
  return readable(target, historyOf(system, target))
}

/** What is at a target now, or the content of this sequence, with its bytes. Nothing is locked or written. @throws DurableWriteError */
export async function readContent(target: string, sequence?: number): Promise<TargetContent> {
  return readable(target, contentOf(system, target, sequence))
}

/** What is kept in a directory for each target there is or was; nothing is locked or written. */
export async function listKept(directory: string): Promise<KeptBeside[]> {
  return readable(directory, keptIn(system, directory))
}

/** Removes what is beyond these limits of a target's earlier contents, durably, without publishing. Answers how many. */
export async function pruneHistory(target: string, limits: HistoryLimits, options: HoldOptions = {}): Promise<number> {
  return prune(system, target, limits, options)
}

/** Publishes an earlier content of a target again, and pins the target. @throws DurableWriteError */
export async function rollBack(
  target: string,
  options: RollbackOptions,
): Promise<ReplaceResult & { sequence: number }> {
  return goBack(system, target, options)
}

/**
 * Removes what was published at a path, with its earlier contents and its record, durably, once nobody uses it.
 * @throws DurableWriteError: with `published: true` it is gone from its place, and the same call finishes what is left
 */
export async function removePublished(target: string, options: RemovalOptions = {}): Promise<void> {
  return takeAway(system, target, options)
}

/** Which of these paths leads to the same target; undefined: none. @throws DurableWriteError where that cannot be found out */
export async function sameTarget(target: string, others: readonly string[]): Promise<string | undefined> {
  return readable(target, same(system, target, others))
}

/**
 * What the seven checks of an adoption find of a directory that is to hold what `request` says: see adoption.ts. Changes nothing. `own`:
 * holdfast publishes there already, and nothing is checked.
 * @throws DurableWriteError where it cannot be looked at
 */
export async function examineAdoption(
  request: DirectoryRequest & PublicationOptions,
  adopt: Adopting,
): Promise<{ own: boolean; checks: AdoptionResult[] }> {
  return examine(system, request, adopt)
}

/**
 * Whether a path is on a file system on which durability is not proven.
 * @throws DurableWriteError where `requireProven` refuses that, or it cannot be found out
 */
export async function unprovenAt(path: string, requireProven?: boolean): Promise<{ unproven?: true }> {
  return readable(path, proofAt(system, path, requireProven))
}

/** Takes a directory's move to another path as far as it goes now; `to` is published already. @throws DurableWriteError */
export async function relocate(to: string, options: RelocationOptions): Promise<RelocationProgress> {
  return move(system, to, options)
}

/** Takes a move by hand as far as it goes now, from what the old path holds. @throws DurableWriteError */
export async function relocateByHand(
  from: string,
  to: string,
  options: HandRelocationOptions,
): Promise<RelocationProgress> {
  return moveByHand(system, from, to, options)
}

/** A target's content comes from nowhere any more, and goes nowhere, as its record says then, durably. @throws DurableWriteError */
export async function endRelocation(target: string, options: HoldOptions = {}): Promise<void> {
  return endMove(system, target, options)
}

async function readable<T>(target: string, call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (error) {
    throw isSystemError(error) ? wrapError(target, error, false, `could not read ${target}`) : error
  }
}
