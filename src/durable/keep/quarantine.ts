import type { Log } from '../../log.js'
import { fsyncAll, type TargetNames, type Tree } from '../path/index.js'
import type { Attributes, Descriptor, FileSystem } from '../file-system.js'
import { isPartOf } from './old-content.js'
import type { RecordBody, StagedInodes } from '../record/index.js'

/*
 * An exchange takes out whatever has the target's name in that instant, and puts it under the staging name. Where another
 * program has just put its own there, that is exchanged back at once (directory-publication.ts); killed in between, or with
 * the power gone, the next run finds somebody else's directory under a name of this program's, beside a target that is whole.
 * So the record, which is durable before the exchange, names the two inodes that can be there by this program's doing. The old
 * one is open from its reading until the exchange: nobody can have got its number meanwhile.
 *
 * What a record does not name is this program's as a whole: a record comes before the exchange. Records of before this was
 * recorded name none.
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
  readonly staging?: StagedInodes
})[]

/**
 * Gives what is somebody else's among these staging names another name, which no cleanup ever takes for a leftover, and makes
 * that durable: the records that distinguish it may go afterwards. Returns those that hold what is this program's own.
 * `quarantined`: what has such a name already, by a predecessor that may have been stopped before its sync. Both are random parts.
 * Throws what the file system throws: then nothing must be deleted.
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

/** Whether an old content, whose removal was cut short, holds what nobody read of it; false where no record says what was read. */
async function holdsMore({ fs, parent }: StagingArea, name: string, records: StagingClaims): Promise<boolean> {
  const claim = records.find(({ staging }) => staging?.name === name)
  const entries = claim?.staging?.entries ?? records.find(({ after }) => after === claim?.before)?.entries
  return entries !== undefined && !(await isPartOf(fs, parent, name, entries))
}

/**
 * By staging name. Under another boot, numbers are only asked where they are on the disk, as on ext4, xfs and btrfs. Elsewhere
 * (overlayfs over several file systems, FUSE, vfat) a mount may deal them out again: each leftover would look like somebody else's,
 * and old private keys would stay for ever.
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
    if (record.boot !== boot && !(lasting ??= (await fs.mount(parent)).proven)) continue
    claims.set(record.staging.name, proven(record, record.staging))
  }
  return claims
}

/**
 * Version 0.2.0 exchanged directories for symbolic links, and links for directories. Nobody keeps the number of a link from being given to
 * what replaces it: such a number proves nothing. No record of a content says what a link held that was replaced.
 */
function proven({ before, removing }: StagingClaims[number], staging: StagedInodes): StagedInodes {
  if (removing?.link !== undefined) return { ...staging, staged: 'none' }
  return before === null && removing === undefined && !staging.entries ? { ...staging, old: 'none' } : staging
}

/** What is in a target's place, before it is taken away. */
export interface Present {
  readonly attributes: Attributes
  readonly tree: Tree
  /** Of a directory. */
  readonly opened: Descriptor | undefined
}

/** What the record of a removal says of the staging name. Nobody looks into a file: one that has another number is another program's. */
export function claimOf(name: string, { attributes, tree, opened }: Present): StagedInodes {
  const inode = attributes.inode.toString()
  if (opened === undefined) return { name, staged: inode, old: 'none' }
  const entries = tree.entries.map(({ path, type, sha256 }) => ({ path, type, sha256 }))
  return { name, staged: inode, old: inode, entries }
}
