import { ready } from '../../native/index.js'
import * as adopt from './adopt/index.js'
import { readError } from './errors.js'
import type { FileSystem } from './file-system.js'
import * as look from './look/index.js'
import * as move from './move/index.js'
import * as operator from './operator/index.js'
import * as paths from './path/index.js'
import { system } from './posix/index.js'
import * as records from './record/index.js'
import * as remove from './remove/index.js'
import * as singleCalls from './single-calls/index.js'
import * as targets from './target/index.js'
import type { Publication } from './types.js'

/*
 * Files and directories that survive a power cut. A reader sees all of the old content or all of the new; when a call returns, the new
 * content is on stable storage; after a crash at any instant the target is all old or all new. A DurableWriteError with `published: false`
 * says that the target is unchanged, with `published: true` that the new content is visible and its durability unknown. Malformed requests
 * throw TypeError or RangeError and touch nothing.
 */

export * from './publishing.js'
export { namesFor, atPlace, fsyncAll, remove } from './path/index.js'
export { namedRecords } from './record/index.js'
export { OwnFile, DurableCalls, nodeFiles, places } from './single-calls/index.js'
export { endTogether, commandOf, flockHolders, showInPlace } from './posix/index.js'
export { describeOrders } from './target/index.js'
/** Not by the doors of their rooms: each is one thing to know. */
export * as keeper from './record/keeper.js'
export { findTarget, lockAt, openedByLists } from './look/found-target.js'
export * as fitness from './look/fitness.js'
export { otherForm } from './target/refusals.js'
export { usesOf } from './look/index.js'

/** Binds a room's call to the disks of this machine. An error of theirs becomes a DurableWriteError. */
function on<Rest extends unknown[], T>(
  call: (fs: FileSystem, target: string, ...rest: Rest) => Promise<T>,
): (target: string, ...rest: Rest) => Promise<T> {
  return async (target, ...rest) => {
    try {
      return await call(system, target, ...rest)
    } catch (error) {
      throw readError(target, error)
    }
  }
}

/* A bundler leaves a call out that is marked as pure and that its program does not use. */

/** What the newest record says of a target, compared with the disk. */
export async function readPublication(target: string): Promise<Publication | undefined> {
  const path = paths.checkTarget(target)
  await ready()
  return on(look.readPublication)(path)
}

/** Bytes: another program may have put a file of any size in the place of a published one. */
const mostRead = 64 * 1024 * 1024

/** The named files of a published directory, as they are on the disk. */
export async function readPublishedFiles(
  target: string,
  names: readonly string[],
  largest = mostRead,
): Promise<Record<string, { content: Uint8Array; mode: number }>> {
  return on(look.readPublishedFiles)(target, names, largest)
}

export const isGone = /* @__PURE__ */ on(look.isGone)
export const readRecord = /* @__PURE__ */ on(look.readRecord)
export const listKept = /* @__PURE__ */ on(look.listKept)
export const completeHook = /* @__PURE__ */ on(records.completeHook)
export const recordObjects = /* @__PURE__ */ on(records.recordObjects)
export const setHold = /* @__PURE__ */ on(operator.setHold)
export const letGo = /* @__PURE__ */ on(operator.letGo)
export const removePublished = /* @__PURE__ */ on(remove.removePublished)
export const sameTarget = /* @__PURE__ */ on(targets.sameTarget)
export const unprovenAt = /* @__PURE__ */ on(paths.unprovenAt)
export const syncPath = /* @__PURE__ */ on(singleCalls.syncPath)
export const exchange = /* @__PURE__ */ on(singleCalls.exchange)

export const syncParents = /* @__PURE__ */ singleCalls.syncParents.bind(undefined, system)

/** A target's past: its present content and its earlier ones. */
export const history = {
  read: /* @__PURE__ */ on(look.readHistory),
  content: /* @__PURE__ */ on(look.readContent),
  prune: /* @__PURE__ */ on(look.pruneHistory),
  rollBack: /* @__PURE__ */ on(operator.rollBack),
}

/** Directories that somebody else made. */
export const adoption = {
  takeOver: adopt.takeOver,
  examine: /* @__PURE__ */ adopt.examineAdoption.bind(undefined, system),
}

/** A directory's move to another path. */
export const relocation = {
  goOn: /* @__PURE__ */ on(move.relocate),
  end: /* @__PURE__ */ on(move.endRelocation),
}
