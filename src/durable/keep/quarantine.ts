import type { Log } from '../../log.js'
import { fsyncAll, type TargetNames, type Tree } from '../path/index.js'
import type { Attributes, Descriptor, FileSystem } from '../file-system.js'
import { isPartOf } from './old-content.js'
import type { RecordBody, StagedInodes } from '../record/index.js'

/*
 * An exchange takes out the directory that has the target's name in that instant, and puts it under the staging name. If another program
 * has just put its own there, directory-publication.ts exchanges it back at once; after a kill or a power cut in between, the next run
 * finds a foreign directory under a staging name, beside a whole target. So the record, which is durable before the exchange, names the two
 * inodes that can be there by this program's doing. The old one stays open from its reading until the exchange, so the kernel cannot give
 * its number away meanwhile.
 *
 * A staging name in no record is wholly this program's: a record comes before the exchange. Older records name no inodes.
 */

/** Where a target's staging is. */
export interface StagingArea {
  readonly fs: FileSystem
  readonly parent: Descriptor
  /** Of the target, for people. */
  readonly path: string
  readonly names: TargetNames
  readonly log: Log
}

/** What records of whole publications say of staging names. */
export type StagingClaims = readonly (Pick<RecordBody, 'boot' | 'before' | 'after' | 'entries' | 'removing'> & {
  readonly staging?: StagedInodes | undefined
})[]

/**
 * Gives foreign content among these staging names another name, which no cleanup takes for a leftover, durably: the records that
 * distinguish it may go afterwards. Returns the names of this program's content. `quarantined`: names that a predecessor gave, and may not
 * have synced. Both are random parts. On a file system's error the caller must delete nothing.
 */
export async function quarantineForeign(
  area: StagingArea,
  staging: readonly string[],
  quarantined: readonly string[],
  records: StagingClaims,
): Promise<string[]> {
  const { fs, parent, path, names, log } = area
  const claims = await claimsByName(area, records)
  const own: string[] = []
  let pending = quarantined.some((random) => claims.has(names.staging(random)))
  for (const random of staging) {
    const name = names.staging(random)
    const inodes = claims.get(name)
    const found = inodes && (await fs.look(parent, name))
    // The old content is a directory: nothing else is exchanged, and a file may have its number once it is removed.
    const isOld = found?.type === 'directory' && found.inode.toString() === inodes?.old
    const isOwn = found === undefined || isOld || found.inode.toString() === inodes?.staged
    if (isOwn && !(isOld && (await holdsMore(area, name, records)))) {
      own.push(random)
      continue
    }
    await fs.rename(parent, name, parent, names.quarantine(random), 'noreplace')
    pending = true
    log.warn(
      { path, quarantined: names.quarantine(random) },
      `another program replaced ${path} while a publication was interrupted; holdfast keeps what it put there as ` +
        `${names.quarantine(random)} beside it: look at it, then move it to where it belongs, or remove it`,
    )
  }
  if (pending) await fsyncAll(fs, [parent])
  return own
}

/** What another program has put into old content is not this program's to remove: it gets such a name as a whole, durably. */
export async function quarantineOld({ fs, parent, path, names, log }: StagingArea, random: string): Promise<void> {
  const quarantine = names.quarantine(random)
  await fs.rename(parent, names.staging(random), parent, quarantine, 'noreplace')
  await fsyncAll(fs, [parent])
  log.warn(
    { path, quarantined: quarantine },
    `another program changed ${path} while holdfast replaced it; holdfast keeps the old content with these changes as ` +
      `${quarantine} beside it: move out what belongs elsewhere, then remove it`,
  )
}

/** Whether an old content, whose removal was cut short, holds entries that its record lacks; false where no record lists them. */
async function holdsMore({ fs, parent }: StagingArea, name: string, records: StagingClaims): Promise<boolean> {
  const claim = records.find(({ staging }) => staging?.name === name)
  const entries = claim?.staging?.entries ?? records.find(({ after }) => after === claim?.before)?.entries
  return entries !== undefined && !(await isPartOf(fs, parent, name, entries))
}

/**
 * By staging name. Under another boot, numbers count only where they are on the disk, as on ext4, xfs and btrfs. Elsewhere (overlayfs over
 * several file systems, FUSE, vfat) a mount may deal them out again: each leftover would look foreign, and old private keys would stay for
 * ever.
 */
async function claimsByName(
  { fs, parent }: StagingArea,
  records: StagingClaims,
): Promise<ReadonlyMap<string, StagedInodes>> {
  const claims = new Map<string, StagedInodes>()
  const boot = await fs.bootId()
  let lasting: boolean | undefined
  for (const record of records) {
    if (record.staging === undefined) continue
    if (record.boot !== boot && !(lasting ??= (await fs.mount(parent)).lasting)) continue
    claims.set(record.staging.name, proven(record, record.staging))
  }
  return claims
}

/** Where nothing was replaced that had a digest or entries, the number of an old content proves nothing: the kernel gives it out again. */
function proven({ before, removing }: StagingClaims[number], staging: StagedInodes): StagedInodes {
  return before === null && removing === undefined && !staging.entries ? { ...staging, old: 'none' } : staging
}

/** The entry in a target's place before its removal. */
export interface PresentEntry {
  readonly attributes: Attributes
  readonly tree: Tree
  /** Of a directory. */
  readonly opened: Descriptor | undefined
}

/** The claim of a removal's record on the staging name. A file has no entries to compare: one with another number is another program's. */
export function claimOf(name: string, { attributes, tree, opened }: PresentEntry): StagedInodes {
  const inode = attributes.inode.toString()
  if (opened === undefined) return { name, staged: inode, old: 'none' }
  const entries = tree.entries.map(({ path, type, sha256 }) => ({ path, type, sha256 }))
  return { name, staged: inode, old: inode, entries }
}
