import type { Attributes, Mount } from '../file-system.js'

/*
 * Where a publication stands. A record that was copied, restored or moved with its directory says what it said before; so it also says
 * of which inodes it speaks, and by which way in their file system they were reached. No device number is in it: btrfs, loop devices
 * and NVMe change it at a reboot.
 */

/** An inode, distinguished from a later one of the same number by when it was made. In decimal, since JSON's numbers are too small. */
export interface Identity {
  readonly inode: string
  /** Nanoseconds since the epoch; `0` where the file system or the kernel does not say. */
  readonly birth: string
}

export interface Standing {
  /** The path in the file system: the same text on the host and in a container that mounts a part of it. */
  readonly within: string
  readonly parent: Identity
  /** What holds the content: the directory, the generation of the symlink form, the file. */
  readonly target: Identity
  /** What held the content that is replaced; absent where nothing did, and in records of 0.2.0. */
  readonly replaced?: Identity
}

/** Whether this can stand in a record: absent, or all of it. */
export function isStanding(place: unknown): place is Standing | undefined {
  if (place === undefined) return true
  const { within, parent, target, replaced } = (place ?? {}) as Partial<Standing>
  const areIdentities = [parent, target].every(isIdentity) && (replaced === undefined || isIdentity(replaced))
  return typeof within === 'string' && areIdentities
}

function isIdentity(identity: Partial<Identity> | null | undefined): boolean {
  return typeof identity?.inode === 'string' && typeof identity.birth === 'string'
}

export function identityOf({ inode, birth }: Pick<Attributes, 'inode' | 'birth'>): Identity {
  return { inode: inode.toString(), birth: birth.toString() }
}

/** Whether both say when their inode was made: else a later inode of the same number cannot be told from it. */
export function tellBirths(recorded: Identity, found: Identity): boolean {
  return recorded.birth !== '0' && found.birth !== '0'
}

/** A time that is not known is no difference. */
export function isSame(recorded: Identity, found: Identity | undefined): boolean {
  if (recorded.inode !== found?.inode) return false
  return recorded.birth === found.birth || recorded.birth === '0' || found.birth === '0'
}

interface RecordedPlace {
  readonly trusted: boolean
  /** Absent in records of 0.1.0. */
  readonly place?: Standing
  readonly otherBoot: boolean
}

/** What is there now. `lasting`: numbers of inodes stay what they are over a reboot, as on ext4, xfs and btrfs. */
export interface FoundPlace {
  readonly parent: Identity
  readonly target: Identity | undefined
  readonly lasting: boolean
}

/**
 * Whether a record's word that its content is durable counts for what is there: for the inodes that it names. A record that came with
 * a copy, a restored backup or a cloned directory says the same of files that nobody has synced.
 */
export function isTrustedHere(record: RecordedPlace, found: FoundPlace): boolean {
  return record.trusted && isOfThis(record, found)
}

/** Whether a record speaks of the inodes that are there, be they durable or not. */
export function isOfThis({ place, otherBoot }: Omit<RecordedPlace, 'trusted'>, found: FoundPlace): boolean {
  if (place === undefined) return false
  if (otherBoot && !found.lasting) return true
  return isSame(place.parent, found.parent) && isSame(place.target, found.target)
}

/** The path in its file system of what has this path here: mountinfo's root, and the rest below the mount point. */
export function pathWithin({ root, mountPoint }: Pick<Mount, 'root' | 'mountPoint'>, path: string): string {
  const prefix = mountPoint === '/' ? '' : mountPoint
  if (!`${path}/`.startsWith(`${prefix}/`)) return path
  return `${root === '/' ? '' : root}${path.slice(prefix.length)}`
}
