import { ready } from '../../native/index.js'
import { examineAdoption as examine, takeOver } from './adopt/index.js'
import type { Adopting, AdoptionResult } from './types.js'
import { readError } from './errors.js'
import type { FileSystem } from './file-system.js'
import {
  setHold as writeHold,
  letGo as writeLetGo,
  rollBack as goBack,
  type RollbackOptions,
  type RollbackResult,
} from './operator/index.js'
import type { HoldOptions } from './types.js'
import {
  isGone as goneFrom,
  readRecord as recordIn,
  type RecordSaid,
  readPublication as look,
  readPublishedFiles as publishedFiles,
  pruneHistory as prune,
  readHistory as historyOf,
  listKept as keptIn,
  type KeptBeside,
  readContent as contentOf,
  type TargetContent,
} from './look/index.js'
import { NodeFileSystem } from './posix/index.js'
import { completeHook as complete, recordObjects as record } from './record/index.js'
import {
  type RelocationOptions,
  endRelocation as endMove,
  relocate as move,
  type RelocationProgress,
} from './move/index.js'
import { removePublished as takeAway, type RemovalOptions } from './remove/index.js'
import { sameTarget as same } from './target/index.js'
import { checkTarget, unprovenAt as proofAt } from './path/index.js'
import type {
  DirectoryRequest,
  Hold,
  HistoryLimits,
  PastContent,
  Pin,
  Publication,
  PublicationOptions,
  RecordedObject,
} from './types.js'

/*
 * Files and directories that survive a power cut. A reader sees all of the old content or all of the new; when a call returns, the new
 * content is on stable storage; after a crash at any instant the target is all old or all new. A DurableWriteError with `published: false`
 * says that the target is unchanged, with `published: true` that the new content is visible and its durability unknown. Malformed requests
 * throw TypeError or RangeError and touch nothing.
 */

export * from './publishing.js'
export { namesFor, atPlace } from './path/index.js'
export { OwnFile, DurableCalls, nodeFiles, places, exchange, syncParents, syncPath } from './single-calls/index.js'
export { endTogether, commandOf, flockHolders, showInPlace } from './posix/index.js'
export { describeOrders } from './target/index.js'
/** Not by the doors of their rooms: each is one thing to know. */
export * as keeper from './record/keeper.js'
export { findTarget, lockAt, openedByLists } from './look/found-target.js'
export * as fitness from './look/fitness.js'
export { usesOf } from './look/index.js'

const system: FileSystem = new NodeFileSystem()

/** What the newest record says of a target, compared with the disk. */
export async function readPublication(target: string): Promise<Publication | undefined> {
  const path = checkTarget(target)
  await ready()
  return readable(path, look(system, path))
}

/** Whether a published directory has disappeared with all of its content, or its record has. Reads no content. */
export async function isGone(target: string): Promise<boolean> {
  return readable(target, goneFrom(system, target))
}

/** Bytes: another program may have put a file of any size in the place of a published one. */
const mostRead = 64 * 1024 * 1024

/** The named files of a published directory, as they are on the disk. */
export async function readPublishedFiles(
  target: string,
  paths: readonly string[],
  largest = mostRead,
): Promise<Record<string, { content: Uint8Array; mode: number }>> {
  return readable(target, publishedFiles(system, target, paths, largest))
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

/**
 * Records that the agent that keeps a target keeps it no more, durably: what changes there from then on is another program's. Answers
 * whether that agent has kept it until now.
 * @throws DurableWriteError
 */
export async function letGo(
  target: string,
  options: HoldOptions & { readonly agent: string | undefined },
): Promise<boolean> {
  return readable(target, writeLetGo(system, target, options))
}

/** What the record of a target says without a look at its content; undefined where nothing was ever published. */
export async function readRecord(target: string): Promise<RecordSaid | undefined> {
  return readable(target, recordIn(system, target))
}

/** What a directory keeps for each present or former target; locks and writes nothing. */
export async function listKept(directory: string): Promise<KeptBeside[]> {
  return readable(directory, keptIn(system, directory))
}

/**
 * Removes a published target with its earlier contents and its record, durably, once no process uses it.
 * @throws DurableWriteError: with `published: true` the target has left its place, and the same call removes the rest
 */
export async function removePublished(target: string, options: RemovalOptions = {}): Promise<void> {
  return takeAway(system, target, options)
}

/** Which of these paths leads to the same target; undefined: none. @throws DurableWriteError where that cannot be found out */
export async function sameTarget(target: string, others: readonly string[]): Promise<string | undefined> {
  return readable(target, same(system, target, others))
}

/**
 * Whether a path is on a file system on which durability is not proven.
 * @throws DurableWriteError where `requireProven` refuses that, or it cannot be found out
 */
export async function unprovenAt(path: string, requireProven?: boolean): Promise<{ unproven?: true }> {
  return readable(path, proofAt(system, path, requireProven))
}

/** A target's past: its present content and its earlier ones. */
export const history = {
  /** Newest first; undefined where nothing was ever published there. */
  read: (target: string): Promise<PastContent[] | undefined> => readable(target, historyOf(system, target)),
  /** What is at a target now, or the content of this sequence, with its bytes. Nothing is locked or written. @throws DurableWriteError */
  content: (target: string, sequence?: number): Promise<TargetContent> =>
    readable(target, contentOf(system, target, sequence)),
  /** Removes what is beyond these limits, durably, without publishing. Answers how many. */
  prune: (target: string, limits: HistoryLimits, options: HoldOptions = {}): Promise<number> =>
    prune(system, target, limits, options),
  /** Publishes an earlier content again, and pins the target. @throws DurableWriteError */
  rollBack: (target: string, options: RollbackOptions): Promise<RollbackResult> => goBack(system, target, options),
}

/** Directories that somebody else made. */
export const adoption = {
  /** For a publication that takes the directory over. */
  takeOver,
  /**
   * What the seven checks find of a directory that is to hold what `request` says: see adoption.ts. Nothing stays of what they make. `own`:
   * holdfast publishes there already, and nothing is checked.
   * @throws DurableWriteError where it cannot be looked at
   */
  examine: (
    request: DirectoryRequest & Omit<PublicationOptions, 'adopt'>,
    adopt: Adopting,
  ): Promise<{ own: boolean; checks: AdoptionResult[] }> => examine(system, request, adopt),
}

/** A directory's move to another path. */
export const relocation = {
  /** Takes it as far as it goes now; `to` is published already. @throws DurableWriteError */
  goOn: (to: string, options: RelocationOptions): Promise<RelocationProgress> => move(system, to, options),
  /** A target's content comes from nowhere any more, and goes nowhere, as its record says then, durably. @throws DurableWriteError */
  end: (target: string, options: HoldOptions = {}): Promise<void> => endMove(system, target, options),
}

async function readable<T>(target: string, call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (error) {
    throw readError(target, error)
  }
}
