import type { Attributes, Mount } from '../file-system.js'

/*
 * Where a publication stands. A copy, a restore or a move of a directory takes its record along unchanged; so the record names its inodes,
 * and their paths in their file system. It holds no device number: btrfs, loop devices and NVMe change it at a reboot.
 */

/** An inode, distinguished from a later one of the same number by when it was made. In decimal, since JSON's numbers are too small. */
export interface Identity {
  readonly inode: string
  /** Nanoseconds since the epoch; `0` where the file system or the kernel does not say. */
  readonly birth: string
}

export interface RecordedPlace {
  /** The path in the file system: the same text on the host and in a container that mounts a part of it. */
  readonly within: string
  readonly parent: Identity
  /** What holds the content: the directory, the data directory of the symlink form, the file. */
  readonly target: Identity
  /** What held the content that is replaced; absent where nothing did. */
  readonly replaced?: Identity
}

export function identityOf({ inode, birth }: Pick<Attributes, 'inode' | 'birth'>): Identity {
  return { inode: inode.toString(), birth: birth.toString() }
}

/** Equal for two paths that are one name in one directory, as by a bind mount. */
export function placeKey(parent: Pick<Attributes, 'device' | 'inode'>, name: string): string {
  return `${parent.device}:${parent.inode}:${name}`
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

interface PlaceClaim {
  readonly trusted: boolean
  readonly place: RecordedPlace
  readonly otherBoot: boolean
}

/** The inodes at the target now. `lasting`: a reboot keeps the numbers of inodes, as on ext4, xfs and btrfs. */
export interface FoundPlace {
  readonly parent: Identity
  readonly target: Identity | undefined
  readonly lasting: boolean
}

/**
 * Whether a record's word that its content is durable counts for the files at the target: it does for the inodes that the record names, by
 * number and birth, since a copy gets the number of a removed inode. A record in a copy, a restored backup or a cloned directory says the
 * same of files that no fsync has reached.
 */
export function isTrustedHere(record: PlaceClaim, found: FoundPlace): boolean {
  if (!record.trusted || !isOfThis(record, found)) return false
  const { place, otherBoot } = record
  if (otherBoot && !found.lasting) return true
  const { parent, target } = found
  return target !== undefined && tellBirths(place.parent, parent) && tellBirths(place.target, target)
}

/** Whether a record speaks of the inodes that are there, be they durable or not. */
export function isOfThis({ place, otherBoot }: Omit<PlaceClaim, 'trusted'>, found: FoundPlace): boolean {
  if (otherBoot && !found.lasting) return true
  return isSame(place.parent, found.parent) && isSame(place.target, found.target)
}

/** The path inside the file system for this path here: mountinfo's root, and the rest below the mount point. */
export function pathWithin({ root, mountPoint }: Pick<Mount, 'root' | 'mountPoint'>, path: string): string {
  const prefix = mountPoint === '/' ? '' : mountPoint
  if (!`${path}/`.startsWith(`${prefix}/`)) return path
  return `${root === '/' ? '' : root}${path.slice(prefix.length)}`
}
