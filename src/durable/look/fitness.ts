import { codeOf, failureOf, toError } from '../../errors.js'
import { adviceAt } from '../errors.js'
import type { Attributes, Descriptor, ExtendedAttributes, FileSystem } from '../file-system.js'
import {
  accessAttribute,
  defaultAttribute,
  entriesBelow,
  type EntryHead,
  inTree,
  modeOf,
  type TargetNames,
  writersBy,
} from '../path/index.js'
import { lacks, lowerLayer, type Unfitness } from '../target/index.js'
import type { Owner } from '../types.js'

/* Whether a place is fit for a target: can its file system exchange and sync, who else may write there, and is there room. */

/** Tries what a publication will do beside the target. Makes two empty directories, and removes them again. */
export async function exchangeProblem(
  fs: FileSystem,
  path: string,
  parent: Descriptor,
  names: TargetNames,
): Promise<Unfitness | undefined> {
  const { failure, step, left } = await probeExchange(fs, parent, names)
  const code = codeOf(failure) ?? ''
  if (step === 'exchange' && ['EINVAL', 'EOPNOTSUPP', 'ENOTSUP'].includes(code))
    return lacks('exchange', await fs.mount(parent), path)
  if (failure !== undefined) {
    const doing =
      step === 'create'
        ? 'could not create a directory beside the target'
        : 'could not exchange two directories beside the target'
    return { problem: `${doing}: ${failure.message}`, advice: adviceOn(path, code), lasting: false }
  }
  if (left.length > 0) {
    const problem = `the exchange worked, but its two test directories could not be removed: ${left.join(', ')}`
    const advice = `remove them from the directory that holds ${path}, or is to hold it; the next publication also removes them`
    return { problem, advice, lasting: false }
  }
  const syncing = codeOf((await fs.sync([parent]))[0])
  if (syncing === undefined) return undefined
  // ENOSYS is the answer of a seccomp profile, on each file system.
  if (syncing === 'EINVAL') return lacks('sync', await fs.mount(parent), path)
  return {
    problem: `the target's parent could not be synced: ${syncing}`,
    advice: adviceOn(path, syncing),
    lasting: false,
  }
}

/** Tries nothing: whether the kernel renames what is at the target, as a publication in the form `exchange` asks, or lets names change in it. */
export async function immovableProblem(
  fs: FileSystem,
  path: string,
  target: Descriptor,
  form: 'exchange' | 'symlink',
): Promise<Unfitness | undefined> {
  const found = await fs.immovable(target)
  if (found === undefined) return undefined
  if (found === 'of a lower layer') return form === 'symlink' ? undefined : lowerLayer(path)
  const flag = found === 'immutable' ? 'i' : 'a'
  return { problem: `${path} is ${found} (chattr +${flag})`, advice: `chattr -${flag} ${path}`, lasting: false }
}

function adviceOn(path: string, code: string): string {
  return adviceAt(path, code) ?? 'check the kernel log'
}

/** An entry whose mode is by its ACL. */
type Writable = Pick<EntryHead, 'mode' | 'uid' | 'gid'> & { readonly extended?: ExtendedAttributes | undefined }

/** What holds a target, open. */
export async function parentEntry(fs: FileSystem, parent: Descriptor, attributes: Attributes): Promise<Writable> {
  const { mode, uid, gid } = attributes
  const extended = await fs.extendedAttributes(parent)
  return { mode: modeOf(mode, extended), uid, gid, extended }
}

/** A user or group that may write to an entry. */
export interface Writer extends Omit<Unfitness, 'lasting'> {
  readonly isEverybody: boolean
}

/**
 * Who may write to an entry at `path`, or in it, apart from root, this process's user (`self`) and the owner that its configuration names. Of
 * what holds a target, the default ACL is not the target's; and who may only make files in a sticky one can replace none of others.
 */
export function writerOf(
  path: string,
  { mode, uid, gid, extended }: Writable,
  { self, owner, holds }: { readonly self: Owner; readonly owner: Owner | undefined; readonly holds: boolean },
): Writer | undefined {
  const users = new Set([0, self.uid, owner?.uid])
  const groups = new Set([0, self.gid, owner?.gid])
  const sticky = holds && (mode & 0o1000) !== 0
  const by = (problem: string, advice: string, isEverybody = false): Writer => ({ problem, advice, isEverybody })
  if ((mode & 0o002) !== 0 && !sticky) return by(`everybody may write to ${path}`, `chmod o-w ${path}`, true)
  if ((mode & 0o020) !== 0 && !groups.has(gid) && !sticky)
    return by(`group ${gid} may write to ${path}`, `chmod g-w ${path}`)
  if (!users.has(uid))
    return by(`user ${uid} owns ${path}, and may write to it`, `chown ${self.uid} ${path}, or set owner`)
  if (sticky) return undefined
  const strangerIn = (attribute: string) => {
    const list = extended?.get(attribute)
    return list && writersBy(list).find(({ kind, id }) => !(kind === 'user' ? users : groups).has(id))
  }
  const now = strangerIn(accessAttribute)
  if (now) return by(`an ACL lets ${now.kind} ${now.id} write to ${path}`, `setfacl -x ${now.kind}:${now.id} ${path}`)
  // New content gets the ACLs of the old, and a new entry gets the default ACL of its directory.
  const later = holds ? undefined : strangerIn(defaultAttribute)
  return (
    later &&
    by(
      `the default ACL lets ${later.kind} ${later.id} write to what is made in ${path}`,
      `setfacl -d -x ${later.kind}:${later.id} ${path}`,
    )
  )
}

interface ProbeOutcome {
  /** Why it failed; undefined: two directories were exchanged in one step. */
  readonly failure: Error | undefined
  readonly step: 'create' | 'exchange'
  /** Names that could not be removed again. */
  readonly left: readonly string[]
}

/** Tries of the exchange: another process may take the two directories for leftovers, and remove them in the same instant. */
const tries = 3

/**
 * Exchanges two empty directories that it makes beside the target, and removes them. Their names are those of staging: what a
 * kill leaves of them goes with the next recovery. The target itself is not touched.
 */
async function probeExchange(fs: FileSystem, parent: Descriptor, names: TargetNames): Promise<ProbeOutcome> {
  let outcome: ProbeOutcome
  let tried = 0
  do {
    outcome = await probeOnce(fs, parent, names)
    tried += 1
  } while (tried < tries && codeOf(outcome.failure) === 'ENOENT')
  return outcome
}

async function probeOnce(fs: FileSystem, parent: Descriptor, names: TargetNames): Promise<ProbeOutcome> {
  const made: string[] = []
  let step: ProbeOutcome['step'] = 'create'
  let failure: Error | undefined
  try {
    const [one, other] = [names.staging(fs.random()), names.staging(fs.random())]
    for (const name of [one, other]) {
      await fs.createDirectory(parent, name)
      made.push(name)
    }
    const before = await fs.look(parent, one)
    step = 'exchange'
    await fs.rename(parent, one, parent, other, 'exchange')
    const after = await fs.look(parent, other)
    if (before === undefined || before.inode !== after?.inode) {
      failure = new Error('the kernel reported success, but the two directories did not change places')
    }
  } catch (error) {
    failure = toError(error)
  }
  const left: string[] = []
  for (const name of made) {
    const unremoved = await failureOf(fs.removeDirectory(parent, name))
    if (unremoved !== undefined && codeOf(unremoved) !== 'ENOENT') left.push(name)
  }
  return { failure, step, left }
}

/** What a directory takes: bytes in whole blocks, and inodes. */
export interface Usage {
  readonly bytes: number
  readonly inodes: number
}

/** Of files of these sizes, in bytes, and so many directories. */
export function usageBy(sizes: readonly number[], directories: number, blockSize: number): Usage {
  const blocks = sizes.reduce((sum, size) => sum + Math.ceil(size / blockSize), directories)
  return { bytes: blocks * blockSize, inodes: sizes.length + directories }
}

/** What a target holds now; the next publication needs as much again beside it. */
export async function usageOf(fs: FileSystem, target: Descriptor, blockSize: number): Promise<Usage> {
  const sizes: number[] = []
  let count = 1
  await inTree(fs, target, async (directories) => {
    for await (const { path, type } of entriesBelow(directories)) {
      if (type === 'directory') count += 1
      else sizes.push((await directories.look(path))?.size ?? 0)
    }
  })
  return usageBy(sizes, count, blockSize)
}
