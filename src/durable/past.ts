import { codeOf, messageOf } from '../errors.js'
import { silent } from '../log.js'
import { fsyncAll } from './barrier.js'
import { clean } from './clean.js'
import { wrapError } from './errors.js'
import type { Descriptor, FileSystem } from './file-system.js'
import { limitsBeside, within } from './history.js'
import type { HoldOptions } from './rewrite-record.js'
import { lookUntilQuiet, readTarget, refuseMissed } from './inspect.js'
import { lock } from './lock.js'
import { namesFor } from './names.js'
import { readRecords, withRecord } from './record-files.js'
import { describes, recordFor, type StoredRecord } from './record.js'
import { holdOf, refuseNewer } from './refusals.js'
import { checkTarget } from './request.js'
import { Scope } from './scope.js'
import { Parents, Site } from './site.js'
import { withTakenOver } from './taken-over.js'
import { readTree, type Tree } from './tree.js'
import type { Generation, HistoryLimits, PastContent } from './types.js'

/* Looking at the earlier contents of a target, and removing those that are to stay no longer. See history.ts. */

/** Its present content and its earlier ones, newest first, each compared with the disk; undefined where nothing was ever published. */
export async function readHistory(fs: FileSystem, target: string): Promise<PastContent[] | undefined> {
  return lookUntilQuiet(() => readOnce(fs, target))
}

async function readOnce(
  fs: FileSystem,
  target: string,
): Promise<{ state: PastContent[]; sequence: number; quiet: boolean } | undefined> {
  return withRecord(fs, target, async (parent, name, records, missed) => {
    refuseMissed(target, records, missed)
    const [newest] = records
    if (newest === undefined) return undefined
    const tree = await readTarget(fs, target, parent, name, newest.kind)
    const record = recordFor(newest, records, tree)
    const past: PastContent[] = [presentOf(record, tree)]
    for (const generation of record.history?.generations ?? []) {
      const found = await generationTree(fs, parent, name, generation)
      // It was to stay no longer.
      if (found === undefined) continue
      past.push({ ...saidOf(generation), replacedAt: new Date(generation.replacedAt), ...stateOf(generation, found) })
    }
    return { state: past, sequence: record.sequence, quiet: past.every(({ state }) => state !== 'damaged') }
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

/** What an earlier content is now, or why nobody knows; undefined where it is gone as a whole. */
async function generationTree(
  fs: FileSystem,
  parent: Descriptor,
  target: string,
  { name }: Generation,
): Promise<Tree | Error | undefined> {
  const scope = new Scope(fs)
  try {
    if ((await fs.look(parent, name)) === undefined) return undefined
    const holder = await scope.keep(fs.openDirectory(parent, name))
    return await readTree(fs, await scope.keep(fs.openDirectory(holder, target)), false)
  } catch (error) {
    if (codeOf(error) === undefined) throw error
    return error as Error
  } finally {
    await scope.closeAll()
  }
}

/**
 * Removes the earlier contents that are beyond these limits, durably, without publishing anything; nothing where the target is held.
 * Answers how many.
 * @throws DurableWriteError: what could not be removed is left to the next run
 */
export async function pruneHistory(
  fs: FileSystem,
  path: string,
  limits: HistoryLimits,
  { lockTimeout = 0, requireProven = false, signal, log = silent }: HoldOptions,
): Promise<number> {
  const target = checkTarget(path)
  const scope = new Scope(fs)
  const parents = new Parents(fs)
  const names = namesFor(target.slice(target.lastIndexOf('/') + 1))
  const site = new Site(scope, target, names)
  let leave: (() => void) | undefined
  try {
    if ((await site.resolve(parents)).missing.length > 0) return 0
    await site.open({ requireProven })
    const { directory: parent } = site.parent
    // Mostly there is none: then nobody need wait for the lock.
    if (!(await fs.list(parent)).some(names.isGeneration)) return 0
    const { identity } = site
    leave = await lock(scope, { parent, name: names.lock, identity, target, timeout: lockTimeout, signal })
    const records = await readRecords(fs, parent, site.name, names)
    refuseNewer(target, records)
    if (records.valid.some((record) => holdOf({ record }, fs.now()) !== undefined)) return 0
    // Each record's own: which one is in force makes no difference to what may not stay.
    const over = records.valid.flatMap((record) => {
      const kept = record.history?.generations ?? []
      const stays = new Set(withTakenOver(within(limitsBeside(record, limits), kept, fs.now()), kept))
      return kept.filter((one) => !stays.has(one) && records.generations.includes(one.name))
    })
    const going = [...new Set(over.map(({ name }) => name))]
    if (going.length === 0) return 0
    const left = await clean({ fs, parent, path: target, names, log }, going)
    await fsyncAll(fs, [parent, ...(await site.ancestors())])
    return going.length - left.length
  } catch (error) {
    throw wrapError(target, error, false, `could not remove earlier contents of ${target}`)
  } finally {
    await parents.close()
    await scope.closeAll()
    leave?.()
  }
}
