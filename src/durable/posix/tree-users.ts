import * as native from '../../../native/index.js'
import { endsWithin } from '../../deadline.js'
import { failureOf } from '../../errors.js'
import type { Descriptor, FileSystem, Writers, LockHolder } from '../file-system.js'
import { Bound, entriesBelow, OpenDirectories, pathWithin } from '../path/index.js'
import { commandOf, hasGone, type Holding, holdingsOn, type HoldingKind, type Unseen } from './holdings.js'
import { mountIdOf } from './mount.js'
import { mountDetails } from '../../mountinfo.js'
import { pathOf } from './open-path.js'
import { readFileSync, readlinkSync } from 'node:fs'

/**
 * The other processes that use a file or a directory, or something in it, by name and, for other names of the same files, by inode. A
 * process that this one may not inspect counts, unless `onlySeen`. undefined: none.
 */
export async function userOfTree(
  fs: FileSystem,
  parent: Descriptor,
  name: string,
  onlySeen = false,
): Promise<string | undefined> {
  const found = await holdingsOf(fs, parent, name)
  if (typeof found === 'string') return found
  const [user] = found.holdings
  if (user === undefined) return onlySeen ? undefined : describeUnseen(found.unseen)
  return `${described(user)} has it as ${kinds[user.what]} (${user.path})`
}

function described({ pid }: Holding): string {
  const command = commandOf(pid)
  return `process ${pid}${command === '' ? '' : ` (${command})`}`
}

/** The other processes that can change a directory's files by a descriptor or a mapping. A removed file is no part of it. */
export async function writersInTree(fs: FileSystem, parent: Descriptor, name: string): Promise<Writers> {
  const found = await holdingsOf(fs, parent, name)
  if (typeof found === 'string') return { writer: undefined, unseen: found }
  const isThere = ({ locations }: Holding): boolean => !locations.some(({ deleted }) => deleted)
  const user = found.holdings.find((holding) => holding.writes === true && isThere(holding))
  const writer = user && `${described(user)} has ${user.path} as ${kinds[user.what]}, for writing`
  return { writer, unseen: describeUnseen(found.unseen) }
}

/** Inodes of a tree that are looked for: of a published one, and not of all that its owner may put there. */
const mostInodes = 2 ** 17

/** What other processes have of it; or why the scan could not tell. */
async function holdingsOf(
  fs: FileSystem,
  parent: Descriptor,
  name: string,
): Promise<{ readonly holdings: readonly Holding[]; readonly unseen: Unseen } | string> {
  const mount = mountDetails(mountIdOf(parent))
  if (mount === undefined) return 'its mount is in no table'
  const { device } = mount
  const within = pathWithin(mount, pathOf(parent, name))
  const bound = new Bound([], { entries: mostInodes, bytes: 0 })
  const inodes = await inodesOf(fs, parent, name, bound)
  const { holdings, unseen } = await holdingsOn(new Set([device]), (holding) => isOf(holding, device, within, inodes))
  const found: Holding[] = []
  for (const holding of holdings) if (!(await isElsewhere(holding, inodes))) found.push(holding)
  return { holdings: found, unseen: bound.isCut ? { ...unseen, more: true } : unseen }
}

/** Milliseconds: a file on a network file system may wait for its server. */
const identityPatience = 2_000

/** Descriptors for which a thread of libuv still waits: no second thread asks for one of them. */
const silent = new Set<string>()

/**
 * Whether a file on a mount in no table is certainly on another file system: a number alone could be that of one of ours. A descriptor that
 * was closed meanwhile, as at the process's end, keeps nothing.
 */
async function isElsewhere({ pid, descriptor, device }: Holding, inodes: Inodes): Promise<boolean> {
  const path = `/proc/${pid}/fd/${descriptor}`
  if (descriptor === undefined || device !== undefined || silent.size > 0) return false
  const asking = native.identityAt(path)
  silent.add(path)
  const answered = failureOf(asking).finally(() => silent.delete(path))
  if (!(await endsWithin(answered, identityPatience))) return false
  const failure = await answered
  if (failure !== undefined) return hasGone(failure)
  const { device: where, inode } = await asking
  const own = inodes.get(inode.toString())
  return own !== undefined && own !== where
}

/** The devices of files, as stat(2) has them, by the numbers of the files. */
type Inodes = ReadonlyMap<string, number>

const kinds = {
  fd: 'an open file',
  cwd: 'its working directory',
  root: 'its root',
  map: 'a mapping',
  mount: 'a mount',
} satisfies Record<HoldingKind, string>

function isOf(holding: Holding, device: string, within: string, inodes: Inodes): boolean {
  const { locations, inode } = holding
  if (locations.some((at) => at.device === device && `${at.within}/`.startsWith(`${within}/`))) return true
  // A mount that is in no table may be of this file system.
  return inode !== undefined && (holding.device ?? device) === device && inodes.has(inode)
}

/** The directory's, and of all that is in it; links are not followed. */
async function inodesOf(fs: FileSystem, parent: Descriptor, name: string, bound: Bound): Promise<Inodes> {
  const top = await fs.look(parent, name)
  if (top && top.type !== 'directory') return new Map([[top.inode.toString(), top.device]])
  const root = await fs.openDirectory(parent, name)
  const directories = new OpenDirectories(fs, root)
  try {
    const { inode, device } = await fs.attributes(root)
    const found = new Map([[inode.toString(), device]])
    for await (const { path } of entriesBelow(directories, bound)) {
      const attributes = await directories.look(path)
      if (attributes !== undefined) found.set(attributes.inode.toString(), attributes.device)
    }
    return found
  } finally {
    await directories.closeAll()
    await fs.close(root)
  }
}

/** undefined: all was seen. */
function describeUnseen({ denied, otherPidNamespace, hidden, silent, more }: Unseen): string | undefined {
  const [first] = denied
  if (first) return `process ${first.pid} may not be looked at (${first.code})`
  if (otherPidNamespace) return 'only the processes of this PID namespace are seen'
  if (hidden) return '/proc hides the processes of other users (hidepid)'
  if (silent !== undefined) return `process ${silent} does not answer`
  return more && 'more is open, mapped and mounted, or in it, than is looked at'
}

/*
 * Who holds a flock(2), by proc_locks(5). It names a file by its file system, as mountinfo does, and its inode; and processes by the IDs that
 * they have in the PID namespace of this procfs. It leaves out those that have none there.
 */

/** `device`: `MAJOR:MINOR`, as mountinfo has it. Without a file: the holders of any. @throws what the kernel answers where there is no procfs */
export function flockHolders(device?: string, inode?: bigint): number[] {
  const [major = 0, minor = 0] = (device ?? '').split(':').map(Number)
  const hexadecimal = (number: number): string => number.toString(16).padStart(2, '0')
  const file = device === undefined ? undefined : `${hexadecimal(major)}:${hexadecimal(minor)}:${inode}`
  const locks = readFileSync('/proc/locks', 'latin1')
  // `1: FLOCK  ADVISORY  WRITE 4711 08:02:131 0 EOF`; a line of a process that waits has `->` after the number.
  const held = [...locks.matchAll(/^\d+: FLOCK +\S+ +\S+ +(\d+) (\S+) /gm)]
  return [...new Set(held.filter(([, , where]) => file === undefined || where === file).map(([, pid]) => Number(pid)))]
}

/** undefined: no process that this one sees, or the kernel does not tell. */
export function lockHolder(device: string, inode: bigint): LockHolder | undefined {
  try {
    const [holder] = flockHolders(device, inode)
    if (holder === undefined) return undefined
    return holder === Number(readlinkSync('/proc/self')) ? 'another call of this process' : 'another process'
  } catch {
    return undefined
  }
}
