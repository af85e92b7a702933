import { codeOf } from '../../errors.js'
import { fsyncAll, atOnce, attributesDigest, attempt, mostRemoved, remove, type RemovalLimits } from '../path/index.js'
import { unfit } from '../errors.js'
import type { Attributes } from '../file-system.js'
import {
  judge,
  type Judgement,
  type Seen,
  agentOf,
  amend,
  append,
  readAllRecords,
  type RecordBody,
  type Records,
  type RetiredTree,
} from '../record/index.js'
import { quarantineForeign, type StagingArea } from './quarantine.js'
import { holdOf, refuseNewer } from '../target/index.js'
import { sift } from './history.js'
import { findRetired, removeUnused, retiredClaims } from './retired.js'
import type { Generation, PublicationOptions } from '../types.js'

/** A target, locked, and where its records and staging are. */
export interface TargetArea extends StagingArea {
  readonly name: string
  /** The target itself; undefined where there is none. */
  readonly target: Attributes | undefined
  /** Of the publication. */
  readonly options: Pick<PublicationOptions, 'history' | 'attributes' | 'held' | 'family' | 'publisher' | 'agent'>
}

/** What a predecessor left beside a target, as far as looking shows it. */
export interface Survey {
  readonly area: TargetArea
  readonly found: Judgement
  readonly records: Records
  /** Old content that stays for those who use it. */
  readonly retired: readonly RetiredTree[]
  /** Earlier contents that stay, newest first. */
  readonly generations: readonly Generation[]
  /** Names of earlier contents beyond the limits. */
  readonly over: readonly string[]
  /** Names of copies of earlier contents that no record in force names. */
  readonly strays: readonly string[]
}

/** What stays beside a target until its publication is committed. */
export interface Staying {
  /** Names that go then. */
  readonly leftovers: readonly string[]
  /** Old content that its users keep, or that is too much to go at once. */
  readonly retired: readonly RetiredTree[]
  /** Something of it, which others filled, is so much that no neighbour may wait until it has gone: removeRest() does that. */
  readonly hasRest: boolean
}

/*
 * Decide first, remove afterwards: a refused call, or one that fails before its exchange, changes no reader's answer. So survey() makes and
 * removes nothing; tidy() follows where the target needs no publication; and a publication removes the files that no reader sees before it
 * stages, since that takes room, and all others once it is committed.
 */

/** Reads the state that a predecessor left. @throws DurableWriteError where holdfast must leave it alone */
export async function survey(
  area: TargetArea,
  records: Records,
  state: Pick<Seen, 'tree' | 'within' | 'parent' | 'lasting'>,
): Promise<Survey> {
  await checkBeside(area, records)
  refuseNewer(area.path, records)
  const retired = await findRetired(area, records.valid)
  const staying = new Set(retired.map(({ name }) => name))
  const staging = records.staging.filter((random) => !staying.has(area.names.staging(random)))
  const { names, target, options } = area
  const more = { names, exists: target !== undefined, sharedStaging: options.family !== undefined }
  const found = judge({ ...state, ...more, records, staging })
  const { stays, over, leftovers } = sift(records.generations, found, area.options.history, area.fs.now())
  // A record that was given to another user in a sticky directory looks like that user's own file, and may name them.
  const strays = records.taken.size > 0 ? [] : leftovers
  return { area, found, records, retired, generations: stays, over, strays }
}

/**
 * Where the target needs no publication, removes leftovers, and brings the record up to date; does nothing to a held target. Answers whether
 * there is a rest for removeRest().
 */
export async function tidy(seen: Survey): Promise<boolean> {
  const { area, found } = seen
  if (isHeld(area, found)) return false
  await recordCommit(area, found)
  await recordNews(area, found)
  return removeRest(seen, { most: atOnce })
}

/** Removes what is left over, as far as the limits allow; nothing of a held target. Answers whether there is more. */
export async function removeRest(seen: Survey, limits: RemovalLimits): Promise<boolean> {
  const { area, found, over } = seen
  if (isHeld(area, found)) return false
  const { leftovers, hasRest } = await makeRoom(seen, limits)
  const going = leftovers.filter((name) => over.includes(name) || found.removeNow.includes(name))
  await removeLater(seen, going, limits)
  return hasRest
}

/**
 * After a refused publication, removes the files that no reader sees: a predecessor may have left keys among them. Answers whether there is a
 * rest for removeRest().
 */
export async function clearRefused(seen: Survey): Promise<boolean> {
  const { area, found } = seen
  let hasRest = false
  if (isHeld(area, found)) return hasRest
  await attempt(area.log, area.path, 'could not remove what was left over', async () => {
    hasRest = (await makeRoom(seen)).hasRest
  })
  return hasRest
}

function isHeld({ options, fs }: TargetArea, found: Judgement): boolean {
  return options.held !== 'release' && holdOf(found, fs.now()) !== undefined
}

/** Before a publication, removes the files that no reader sees. A power cut may still bring it back beside an unknown target. */
export async function makeRoom(seen: Survey, limits: RemovalLimits = { most: atOnce }): Promise<Staying> {
  const { area, found, records, over, strays } = seen
  const { known, removeNow } = found
  const own = new Set((await ownStaging(area, records)).map(area.names.staging))
  const retired = seen.retired.filter(({ name }) => own.has(name))
  const isGone = (name: string): boolean => area.names.stagingOf(name) !== undefined && !own.has(name)
  const isRecord = (name: string): boolean => area.names.sequenceOf(name) !== undefined
  const staying = known ? await removeUnused(area, retired, limits) : retired
  // A damaged record hides which copies it named: they may be all that a person has to go back to.
  const isNamedByNone = known && (records.torn.length === 0 || records.valid.length > 0)
  const going = [...removeNow.filter((name) => !isRecord(name) && !isGone(name)), ...(isNamedByNone ? strays : [])]
  let hasRest = staying.some(({ goesWhole }) => goesWhole)
  const left = await clean(area, going, limits, (error) => (hasRest ||= isTooMuch(error)))
  const later = [
    ...[...left, ...over, ...found.removeLater.filter((name) => !isGone(name))],
    ...(isNamedByNone ? [] : strays),
  ]
  return { leftovers: [...later, ...removeNow.filter(isRecord)], retired: staying, hasRest }
}

/** Once the publication is committed, older records last. `kept`: the earlier contents that its record names. */
export async function removeSuperseded(
  seen: Survey,
  { leftovers, retired }: Staying,
  kept: readonly Generation[],
): Promise<void> {
  reportAttributes(seen.area, seen.found)
  const { area, found, generations } = seen
  // Those of a known target were looked at before it was published.
  const limits = { most: atOnce }
  if (!found.known) await removeUnused(area, retired, limits)
  const going = [
    ...leftovers,
    ...generations.filter((one) => !kept.includes(one)).map(({ name }) => name),
    ...(found.current ? [area.names.record(found.current.sequence)] : []),
  ]
  return removeLater(seen, going, limits)
}

async function removeLater({ area, over }: Survey, names: readonly string[], limits: RemovalLimits): Promise<void> {
  await clean(area, names, limits)
  if (over.length > 0)
    await attempt(area.log, area.path, 'could not sync the removal of history', () => syncParent(area))
}

/** The removed copies hold keys that are to be gone: no power cut may bring them back. */
async function syncParent({ fs, parent }: StagingArea): Promise<void> {
  await fsyncAll(fs, [parent])
}

/** ACLs and user attributes are an administrator's: a change of them is no drift, and one log line reports it. Answers what is new of them. */
function reportAttributes({ path, log }: TargetArea, { current, tree }: Judgement, then = ''): Partial<RecordBody> {
  if (current === undefined || tree === undefined) return {}
  const attributes = attributesDigest(tree.entries)
  if (attributes === current.attributes) return {}
  log.info({ path }, `another program changed ACLs or user attributes of ${path} since holdfast published it${then}`)
  return { attributes }
}

/**
 * A power cut took the mark away, but the content is there, durably: without the mark, an earlier content that comes back would not count
 * as its drift.
 */
async function recordCommit(area: TargetArea, { current }: Judgement): Promise<void> {
  const { path, names, log } = area
  if (current?.trusted !== true || current.committed) return
  await attempt(log, path, 'could not mark the publication as committed', () =>
    append(area, names.record(current.sequence), { settled: true }),
  )
}

/** Those who look at the disk know only the record: so it says what is new of content that stays as it is. */
async function recordNews(area: TargetArea, found: Judgement): Promise<void> {
  const { path, names, log, options } = area
  const { current } = found
  if (current === undefined) return
  const { sequence, publishedAt, keepsAttributes = false } = current
  const { publisher, agent: id } = options
  const keeps = options.attributes === 'keep'
  const news: Partial<RecordBody> = {
    ...reportAttributes(area, found, '; holdfast keeps them as they are'),
    ...(keeps !== keepsAttributes && { keepsAttributes: keeps }),
    // `sync` has no identity: the agent that goes on with its content keeps it from now on.
    ...(publisher === 'agent' && id !== undefined && agentOf(current) === undefined && { agent: { id, publishedAt } }),
  }
  if (Object.keys(news).length > 0)
    await attempt(log, path, 'could not record what is new', () => amend(area, names.record(sequence), news))
}

/** Throws where the file system has made target and staging one directory. */
async function checkBeside(area: TargetArea, records: Records): Promise<void> {
  const { path, names, log } = area
  await refuseOneInode(area, records.staging)
  if (records.loose.length > 0) {
    log.warn(
      { path, records: records.loose },
      "root's group may write to the publication record, which holdfast believes all the same: chmod 600 it, or the next publication does",
    )
  }
  if (records.torn.length > 0 && records.valid.length === 0) {
    log.warn(
      { path, records: records.torn.map((sequence) => names.record(sequence)) },
      'the publication record is damaged: holdfast ignores it, and the next publication replaces it',
    )
  }
}

/** Random parts of staging names whose content is this program's; first quarantines content that another program's exchange left. */
async function ownStaging(area: TargetArea, { valid, staging, quarantined }: Records): Promise<readonly string[]> {
  if (staging.length + quarantined.length === 0) return staging
  const records = area.options.family !== undefined ? await readAllRecords(area.fs, area.parent) : valid
  return quarantineForeign(area, staging, quarantined, [...records, ...retiredClaims(records)])
}

/** Removes these names beside the target. Returns those that it could not remove, for the next run; `failed` gets the reason. */
export async function clean(
  { fs, parent, path, log, names: { isGeneration } }: StagingArea,
  names: readonly string[],
  limits: RemovalLimits,
  failed: (error: unknown) => void = () => undefined,
): Promise<string[]> {
  const left: string[] = []
  for (const entry of names) {
    // Nobody else can fill a copy of an earlier content.
    const most = isGeneration(entry) ? Math.max(limits.most, mostRemoved) : limits.most
    try {
      await remove(fs, parent, entry, { ...limits, most })
    } catch (error) {
      // removeRest() goes on with the former; an end is no failure.
      const isExpected = (most === atOnce && isTooMuch(error)) || limits.signal?.aborted === true
      if (!isExpected)
        log.warn({ path, leftover: entry, error: String(error) }, 'could not remove a leftover; the next run retries')
      left.push(entry)
      failed(error)
    }
  }
  return left
}

function isTooMuch(error: unknown): boolean {
  return codeOf(error) === 'E2BIG'
}

/** An ext4 without a journal can leave target and staging as two names of one directory: each removal would be both. */
async function refuseOneInode(
  { fs, parent, names, path, target }: TargetArea,
  staging: readonly string[],
): Promise<void> {
  for (const random of staging) {
    const entry = await fs.look(parent, names.staging(random))
    if (target?.type === 'directory' && entry?.inode === target.inode && entry.device === target.device) {
      throw unfit(`${path} and ${names.staging(random)} beside it are one directory: the file system is damaged`, {
        code: 'EUCLEAN',
        syscall: 'lstat',
        path,
        advice: 'unmount the file system and run fsck',
      })
    }
  }
}
