import { fsyncAll } from './barrier.js'
import { unfit } from './errors.js'
import type { Attributes } from './file-system.js'
import { attributesDigest } from './kept-attributes.js'
import { judge, type Judgement, type Seen } from './judge.js'
import { quarantineForeign, type StagingArea } from './quarantine.js'
import { append, readAllRecords, readRecords, type Records } from './record-files.js'
import { holdOf, refuseNewer } from './refusals.js'
import { sift } from './history.js'
import type { RetiredTree } from './record.js'
import { attempt, remove } from './remove.js'
import { findRetired, removeUnused, retiredClaims } from './retired.js'
import type { Generation, PublicationOptions } from './types.js'

/** A target, locked, and where its records and staging are. */
export interface TargetArea extends StagingArea {
  readonly name: string
  /** The target itself; undefined where there is none. */
  readonly target: Attributes | undefined
  /** The names in the parent, listed under the lock, where they are known. */
  readonly listing?: readonly string[] | undefined
  /** Of the publication. */
  readonly options: Pick<PublicationOptions, 'history' | 'attributes' | 'onDrop' | 'release'>
}

export interface Recovered {
  readonly found: Judgement
  /** Names beside the target that may go only once the next publication is committed. */
  readonly leftovers: readonly string[]
  /** Old content that stays for those who use it. */
  readonly retired: readonly RetiredTree[]
  /** Earlier contents that stay, newest first. */
  readonly generations: readonly Generation[]
}

/**
 * Finds out what a predecessor left beside a target, and removes what can go at once. Answers also what may go only once the next
 * publication is committed. `lookOnly`, or where the target is held and stays so: makes and removes nothing.
 */
export async function recover(
  area: TargetArea,
  state: Omit<Seen, 'records' | 'staging'>,
  lookOnly: boolean,
): Promise<Recovered> {
  const records = await readBeside(area)
  refuseNewer(area.path, records)
  const own = lookOnly ? records.staging : await ownStaging(area, records, state.sharedStaging)
  const retired = await findRetired(area, records.valid)
  const names = new Set(retired.map(({ name }) => name))
  const found = judge({ ...state, records, staging: own.filter((random) => !names.has(area.names.staging(random))) })
  const { stays: generations, over, leftovers } = sift(records.generations, found, area.options.history, area.fs.now())
  const isHeld = area.options.release !== true && holdOf(found, area.fs.now()) !== undefined
  if (lookOnly || isHeld) return { found, leftovers: [], retired, generations }
  await reportAttributes(area, found)
  await recordWhose(area, found)
  await recordDropRule(area, found)
  // A power cut may still bring it back, where the target is not known to be durable.
  const staying = found.known ? await removeUnused(area, retired) : retired
  const left = await clean(area, [...found.removeNow, ...over, ...(found.known ? leftovers : [])])
  if (over.length > 0)
    await attempt(area.log, area.path, 'could not sync the removal of history', () => syncParent(area))
  const later = [...left, ...found.removeLater, ...(found.known ? [] : leftovers)]
  return { found, leftovers: later, retired: staying, generations }
}

/** What is removed of the past is a key that nobody is to have any more: no power cut may bring it back. */
async function syncParent({ fs, parent }: StagingArea): Promise<void> {
  await fsyncAll(fs, [parent])
}

/** ACLs and user attributes are an administrator's: that they were changed is no drift, and is reported once. */
async function reportAttributes(area: TargetArea, { current, tree }: Judgement): Promise<void> {
  if (current?.attributes === undefined || tree === undefined) return
  const attributes = attributesDigest(tree.entries)
  if (attributes === current.attributes) return
  const { fs, parent, path, names, log } = area
  log.info(
    { path },
    `another program changed ACLs or user attributes of ${path} since holdfast published it; holdfast keeps them as they are`,
  )
  await attempt(log, path, 'could not record the attributes', () =>
    append(fs, parent, names.record(current.sequence), { attributes }),
  )
}

/** Those who look at the disk know only the record: it says whose mode and owner are, also of content that stays as it is. */
async function recordWhose(
  { fs, parent, path, names, log, options }: TargetArea,
  { current }: Judgement,
): Promise<void> {
  const keepsAttributes = options.attributes === 'keep'
  if (current === undefined || (current.keepsAttributes ?? false) === keepsAttributes) return
  await attempt(log, path, 'could not record whose mode and owner are', () =>
    append(fs, parent, names.record(current.sequence), { keepsAttributes }),
  )
}

/** What the configuration says of a target for the time when it names it no more: also of content that stays as it is. */
async function recordDropRule(
  { fs, parent, path, names, log, options: { onDrop } }: TargetArea,
  { current }: Judgement,
): Promise<void> {
  if (current === undefined || onDrop === undefined || onDrop === (current.onDrop ?? 'keep')) return
  await attempt(log, path, 'could not record onDrop', () =>
    append(fs, parent, names.record(current.sequence), { onDrop }),
  )
}

/** Reads what is kept beside the target. Throws where the file system has made target and staging one directory. */
async function readBeside(area: TargetArea): Promise<Records> {
  const { fs, parent, path, name, names, listing, log } = area
  const records = await readRecords(fs, parent, name, names, listing)
  await refuseOneInode(area, records.staging)
  if (records.torn.length > 0 && records.valid.length === 0) {
    log.warn(
      { path, records: records.torn.map((sequence) => names.record(sequence)) },
      'the publication record is damaged: holdfast ignores it, and the next publication replaces it',
    )
  }
  return records
}

/** Random parts of staging names that hold what is this program's own; what another program's exchange left is quarantined first. */
async function ownStaging(
  area: TargetArea,
  { valid, staging, quarantined }: Records,
  sharedStaging: boolean,
): Promise<readonly string[]> {
  if (staging.length + quarantined.length === 0) return staging
  const records = sharedStaging ? await readAllRecords(area.fs, area.parent) : valid
  return quarantineForeign(area, staging, quarantined, [...records, ...retiredClaims(records)])
}

/** Removes these names beside the target. Returns those that could not be removed: they are left to the next run. `failed` is called with the reason. */
export async function clean(
  { fs, parent, path, log }: StagingArea,
  names: readonly string[],
  failed: (error: unknown) => void = () => undefined,
): Promise<string[]> {
  const left: string[] = []
  for (const entry of names) {
    try {
      await remove(fs, parent, entry)
    } catch (error) {
      log.warn({ path, leftover: entry, error: String(error) }, 'could not remove a leftover; the next run retries')
      left.push(entry)
      failed(error)
    }
  }
  return left
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
