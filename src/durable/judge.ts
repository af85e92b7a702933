import type { Log } from '../log.js'
import { unfit } from './errors.js'
import type { Attributes, Descriptor, FileSystem } from './file-system.js'
import type { TargetNames } from './names.js'
import { setStrangersAside } from './quarantine.js'
import { type StoredRecord } from './record.js'
import { nextSequence, readAllRecords, readRecords, type Records } from './record-files.js'
import { remove } from './remove.js'
import type { Tree } from './tree.js'

/** A target, locked, and what is known of it. */
export interface RecoveryRequest {
  readonly fs: FileSystem
  readonly parent: Descriptor
  readonly path: string
  readonly name: string
  readonly names: TargetNames
  /** The target itself, undefined where there is none, and what it holds: nothing known where its form is broken. */
  readonly found: { readonly attributes: Attributes; readonly tree: Tree | undefined } | undefined
  /** The names in the parent, listed under the lock, where they are known. */
  readonly listing?: readonly string[] | undefined
  readonly log: Log
  /** Staging names are shared with other targets, of whose durability the records of this one tell nothing. */
  readonly sharedStaging: boolean
  /** Only tells: nothing is removed. */
  readonly lookOnly: boolean
}

export interface Recovery {
  /** Whether there is a target at all, whatever it holds. */
  readonly exists: boolean
  /** The newest whole record, whether it is of what the target holds or not. */
  readonly newest: StoredRecord | undefined
  readonly tree: Tree | undefined
  /** The record of what the target holds now, if there is one. */
  readonly current: StoredRecord | undefined
  /** Whether what is there was published by this program, or has drifted from that: not somebody else's. */
  readonly recorded: boolean
  readonly nextSequence: number
  /** Names beside the target that go once the next publication is settled: nothing may be deleted before. */
  readonly leftovers: readonly string[]
}

/**
 * Finds out what a predecessor left, under the lock, and removes what is safe to remove; only names of this target's own
 * form. What the target holds must first be told apart:
 *
 * - it is the newest record's `after`, known durable: the publication was complete; the rest is left over.
 * - it is the newest record's `before`, and that is known durable: that publication was given up before the exchange.
 * - it is either, but not known durable (killed between exchange and settling, or a failed flush): the old content may
 *   be what a power cut brings back, so nothing is deleted until a later publication is settled.
 * - it is neither: drift. Nothing is deleted, and nothing that staging holds takes its place: whether that was ever made
 *   durable is not known, and what is published next heals a torn target as well.
 * - no record is whole: records are durable before an exchange, so there was none; staging is left over.
 *
 * What an exchange took out of the target, and is neither what was staged nor what was read, is somebody else's, and is kept.
 */
export async function recover(request: RecoveryRequest): Promise<Recovery> {
  const { fs, parent, name, names } = request
  const records = await readRecords(fs, parent, name, names, request.listing)
  const { valid, torn, staging } = records
  await refuseOneInode(request, staging)
  const exists = request.found !== undefined
  const tree = request.found?.tree
  const [newest] = valid
  if (torn.length > 0 && newest === undefined) {
    request.log.warn(
      { path: request.path, records: torn.map((sequence) => names.record(sequence)) },
      'the publication record is damaged, and counts as none',
    )
  }
  const digest = tree?.digest ?? null
  const current = valid.find((record) => record.after === digest)
  // A record may be of a publication that was given up before its exchange: what that found is not ours by it.
  const recorded = valid.some((record) => record.after === digest || record.owned || record.settled)
  const known = { exists, newest, tree, current, recorded, nextSequence: nextSequence(records) }
  const own = request.lookOnly ? staging : await ownStaging(request, records)
  const staged = own.map((random) => names.staging(random))
  const gone = [...torn, ...sequencesOf(superseded(valid, current, digest))]
  const kept = sequencesOf(valid.filter((record) => record !== current && !gone.includes(record.sequence)))
  const inOrder = (sequences: number[]): string[] => sequences.sort((a, b) => a - b).map(names.record)
  if (!isKnown(valid, current, digest, exists)) {
    return { ...known, leftovers: [...staged, ...inOrder([...gone, ...kept])] }
  }
  const later = [...(request.sharedStaging ? staged : []), ...inOrder(kept)]
  const others = [...(request.sharedStaging ? [] : staged), ...inOrder(gone)]
  if (request.lookOnly) return { ...known, leftovers: others }
  const left: string[] = []
  for (const entry of others) {
    try {
      await remove(fs, parent, entry)
    } catch (error) {
      request.log.warn({ path: request.path, leftover: entry, error: String(error) }, 'a leftover could not be removed')
      left.push(entry)
    }
  }
  return { ...known, leftovers: [...left, ...later] }
}

/** Random parts of staging names: what another program's exchange took out is set aside first. */
async function ownStaging(request: RecoveryRequest, { valid, staging, aside }: Records): Promise<readonly string[]> {
  if (staging.length + aside.length === 0) return staging
  const records = request.sharedStaging ? await readAllRecords(request.fs, request.parent) : valid
  return setStrangersAside(request, staging, aside, records)
}

/** Records that say nothing any more: all but the current one; without one, only what was given up before its exchange. */
function superseded(
  valid: readonly StoredRecord[],
  current: StoredRecord | undefined,
  digest: string | null,
): StoredRecord[] {
  if (current) return valid.filter((record) => record !== current)
  return valid.slice(0, 1).filter(({ before }) => before === digest)
}

/**
 * Whether the target is what it is known to be, durably: the newest record's `after`, or its `before` where that was given up,
 * and no older publication's durability is still in doubt. A target without a tree is no missing target; its form is broken.
 */
function isKnown(
  valid: readonly StoredRecord[],
  current: StoredRecord | undefined,
  digest: string | null,
  exists: boolean,
): boolean {
  const [newest, ...older] = valid
  if (newest === undefined) return true
  if (digest === null && exists) return false
  if (newest === current) return current.trusted
  return newest.before === digest && older.every(({ trusted }) => trusted)
}

function sequencesOf(records: readonly StoredRecord[]): number[] {
  return records.map(({ sequence }) => sequence)
}

/** An ext4 without a journal can leave target and staging as two names of one directory: each removal would be both. */
async function refuseOneInode(request: RecoveryRequest, staging: readonly string[]): Promise<void> {
  const { fs, parent, names, path } = request
  const target = request.found?.attributes
  for (const random of staging) {
    const entry = await fs.look(parent, names.staging(random))
    if (target?.type === 'directory' && entry?.inode === target.inode && entry.device === target.device) {
      throw unfit(`${path} and ${names.staging(random)} beside it are one directory: the file system is damaged`, {
        code: 'EUCLEAN',
        syscall: 'lstat',
        path,
        advice: 'unmount it and run fsck',
      })
    }
  }
}
