import { messageOf } from '../../errors.js'
import { silent } from '../../log.js'
import { fsyncAll, checkTarget, mostRemoved, readTree, type Tree } from '../path/index.js'
import { clean, limitsBeside, within } from '../keep/index.js'
import { wrapError } from '../errors.js'
import type { FileSystem } from '../file-system.js'
import type { HoldOptions, Generation, HistoryLimits, PastContent } from '../types.js'
import { generationsOf, inGeneration } from './earlier-content.js'
import { lookUntilQuiet, TargetSnapshot } from './snapshot.js'
import { describes, type StoredRecord, inForce, withTakenOver } from '../record/index.js'
import { holdOf, type LockedTarget, type Site, withLockedTarget } from '../target/index.js'

/* Looking at the earlier contents of a target, and removing those that are to stay no longer. See history.ts. */

/** Its present content and its earlier ones, newest first, each compared with the disk; undefined where nothing was ever published. */
export async function readHistory(fs: FileSystem, target: string): Promise<PastContent[] | undefined> {
  return lookUntilQuiet(fs, target, async (seen) => {
    const record = await seen.record()
    if (record === undefined) return undefined
    const tree = await seen.tree()
    const past: PastContent[] = [presentOf(record, tree)]
    // What an aborted publication meant to keep is still at the target.
    const isInForce = inForce(seen.records, tree).length > 0
    for (const generation of isInForce ? await generationsOf(seen, record) : []) {
      const found = await inGeneration(seen, generation.name, (root) => readTree(fs, root, false))
      past.push({ ...saidOf(generation), replacedAt: new Date(generation.replacedAt), ...stateOf(generation, found) })
    }
    return { state: past, quiet: past.every(({ state }) => state !== 'damaged') }
  })
}

function presentOf(record: StoredRecord, tree: Tree | undefined): PastContent {
  const { sequence, after: digest, publishedAt, why = 'published', objects } = record
  const said = saidOf({ sequence, digest, publishedAt, why, objects: [...objects] })
  if (describes(record, tree)) return { ...said, replacedAt: null, state: 'present' }
  const problem = tree === undefined ? 'it is not there any more' : 'somebody has changed it since'
  return { ...said, replacedAt: null, state: 'damaged', problem }
}

function saidOf({ sequence, digest, publishedAt, why, objects }: Omit<Generation, 'name' | 'replacedAt'>) {
  return { sequence, digest, publishedAt: new Date(publishedAt), why, objects }
}

function stateOf({ digest }: Generation, found: Tree | Error): Pick<PastContent, 'state' | 'problem'> {
  if (found instanceof Error) return { state: 'damaged', problem: `it cannot be read: ${messageOf(found)}` }
  if (found.digest === digest) return { state: 'whole' }
  return { state: 'damaged', problem: 'it is not what was published' }
}

/**
 * Removes the earlier contents that exceed these limits, durably, without publishing; nothing of a held target. Answers how many.
 * @throws DurableWriteError: the next run removes the rest; with `published: true` removed copies may come back
 */
export async function pruneHistory(
  fs: FileSystem,
  path: string,
  limits: HistoryLimits,
  { log = silent, ...options }: HoldOptions = {},
): Promise<number> {
  const target = checkTarget(path)
  let isGone = false
  // Mostly there is none: then the call need not wait for the lock.
  const isNeeded = async ({ names, parent }: Site) => (await fs.list(parent.directory)).some(names.isGeneration)
  try {
    return await withLockedTarget(fs, target, { ...options, isNeeded, absent: () => 0 }, async (locked) => {
      const going = await beyond(fs, locked, limits)
      if (going.length === 0) return 0
      const { site } = locked
      const { directory: parent } = site.parent
      const left = await clean({ fs, parent, path: target, names: site.names, log }, going, { most: mostRemoved })
      isGone = left.length < going.length
      await fsyncAll(fs, [parent, ...(await site.ancestors())])
      return going.length - left.length
    })
  } catch (error) {
    const state = `earlier contents of ${target} are gone, but a power cut may bring them back: the next call removes those again`
    throw wrapError(target, error, isGone, `could not remove earlier contents of ${target}`, state)
  }
}

/** Names of the earlier contents that no record keeps within the limits; none where the target is held. */
async function beyond(fs: FileSystem, { site, records }: LockedTarget, limits: HistoryLimits): Promise<string[]> {
  if (records.valid.some((record) => holdOf({ record }, fs.now()) !== undefined)) return []
  const staying = (record: StoredRecord): Generation[] => {
    const kept = record.history?.generations ?? []
    return withTakenOver(within(limitsBeside(record, limits), kept, fs.now()), kept)
  }
  const over = records.valid.flatMap((record) => {
    const stays = staying(record)
    const kept = record.history?.generations ?? []
    return kept.filter((one) => !stays.includes(one) && records.generations.includes(one.name))
  })
  if (over.length === 0) return []
  // What an aborted publication counts as too much may be what the record in force keeps.
  const seen = new TargetSnapshot(fs, site.path, site.parent.directory, site.name, records.valid)
  const [speaking] = inForce(records.valid, await seen.tree())
  const stays = new Set(speaking && staying(speaking).map(({ name }) => name))
  return [...new Set(over.map(({ name }) => name))].filter((name) => !stays.has(name))
}
