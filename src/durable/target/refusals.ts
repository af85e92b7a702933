import { hash } from 'node:crypto'
import { codeOf } from '../../errors.js'
import { DurableWriteError, foreign, leftAsItWas, unfit } from '../errors.js'
import type { Attributes, FileSystem, Descriptor, Mount, RenameMode } from '../file-system.js'
import {
  letGoSince,
  letGoText,
  isInForce,
  isPinned,
  type RecordKind,
  type Records,
  type Judgement,
} from '../record/index.js'
import type { Parent, Scope, TargetNames, Tree, TreeEntry } from '../path/index.js'
import type { Confirmed, Hold, Pin, PublicationOptions, Publisher } from '../types.js'
import { listed } from '../../message-text.js'

/* Targets that holdfast leaves alone, each with its error. Each throws before any change. */

/** Only a directory can be exchanged with one; a symbolic link would be exchanged itself. */
export function refuseOtherThanDirectory(path: string, found: Attributes): void {
  if (found.type === 'symlink') {
    throw unfit(`${path} is a symbolic link, which a publication would replace`, {
      code: 'ELOOP',
      syscall: 'lstat',
      path,
      advice: 'name the directory that the link leads to',
    })
  }
  if (found.type !== 'directory') {
    throw unfit(`${path} is not a directory`, {
      code: 'ENOTDIR',
      advice: 'name a directory, or move away what is there',
      syscall: 'lstat',
      path,
    })
  }
}

/** A target's directory. */
export interface OpenTarget {
  readonly opened: Descriptor
  readonly attributes: Attributes
}

/**
 * Opens a directory that a publication replaces. The kernel neither exchanges nor removes a mount point, nor exchanges across devices. A
 * mount below belongs to another program, would go with the old content, and hides the files under it. Mounts of other mount namespaces are
 * invisible from here.
 * @throws DurableWriteError with the reason TargetUnfit; ENOENT and other answers of the system
 */
export async function openTarget(
  scope: Scope,
  path: string,
  { directory, attributes: { device } }: Parent,
  name: string,
): Promise<OpenTarget> {
  const { fs } = scope
  const opened = await scope.keep(openOffMounts(fs, path, directory, name))
  await refuseMountsBelow(fs, path, opened)
  const attributes = await fs.attributes(opened)
  if (attributes.device !== device) throw otherDevice(path)
  return { opened, attributes }
}

/** Opens a target's directory. @throws DurableWriteError where something is mounted on it; what the system answers otherwise */
export async function openOffMounts(
  fs: FileSystem,
  path: string,
  parent: Descriptor,
  name: string,
): Promise<Descriptor> {
  try {
    return await fs.openDirectory(parent, name)
  } catch (error) {
    if (codeOf(error) !== 'EXDEV') throw error
    throw unfit(`${path} is a mount point`, {
      code: 'EBUSY',
      syscall: 'openat2',
      path,
      advice: 'name a directory inside it, or mount its parent directory instead',
      cause: error,
    })
  }
}

async function refuseMountsBelow(fs: FileSystem, path: string, target: Descriptor): Promise<void> {
  const [mount] = await fs.mountsBelow(target)
  if (mount === undefined) return
  throw unfit(`${path}/${mount} is a mount point below the target`, {
    code: 'EBUSY',
    syscall: 'openat2',
    path,
    advice: `unmount ${path}/${mount}, or name a target without a mount below it`,
  })
}

function otherDevice(path: string): DurableWriteError {
  return unfit(`${path} is not on the same device as its parent (as the root of a btrfs subvolume is)`, {
    code: 'EXDEV',
    syscall: 'lstat',
    path,
    advice: 'name a directory inside it',
  })
}

/** As after a downgrade: what the record asks of its reader is not known here, and publishing would lose it. */
export function refuseNewer(path: string, { newer }: Pick<Records, 'newer'>): void {
  if (newer.length === 0) return
  throw unfit(`another version of holdfast published ${path}, with a record that this version cannot read`, {
    code: 'ENOTSUP',
    syscall: 'read',
    path,
    advice: 'use that version, or remove the record beside the target and publish again',
  })
}

/** The hold on a target's content; where that has drifted, on the content before. */
export function holdOf({ record }: Pick<Judgement, 'record'>, now: number): Hold | undefined {
  const hold = record?.hold
  return isInForce(hold, now) ? hold : undefined
}

/** Since when a path is held, until when, and why. */
export function describeHold(path: string, { reason, since, until }: Hold): string {
  const end = until === null ? '' : ` until ${new Date(until).toISOString()}`
  return `${path} is held since ${new Date(since).toISOString()}${end}${reason === '' ? '' : ` (${reason})`}`
}

/** An operator has said that it stays as it is. */
export function refuseHeld(path: string, hold: Hold | undefined): void {
  if (hold === undefined) return
  throw new DurableWriteError(describeHold(path, hold), {
    code: 'EPERM',
    syscall: 'none',
    path,
    reason: 'Held',
    state: 'nothing was changed',
    advice: `run "holdfast release ${path}" first; replace, write, sync, rollback and remove also take --release`,
  })
}

/** Since when a path is rolled back, until when, and why. */
export function describePin(path: string, { reason, since, until }: Pin): string {
  const ends = { newer: ', until something newer comes', released: ', until it is released' }
  const end = typeof until === 'number' ? `, until ${new Date(until).toISOString()}` : ends[until]
  return `${path} is rolled back since ${new Date(since).toISOString()}${end}${reason === '' ? '' : ` (${reason})`}`
}

/** What an operator has ordered for a target, each order in a few words. */
export function describeOrders(
  path: string,
  { hold, pin }: { readonly hold?: Hold | undefined; readonly pin?: Pin | undefined },
): string[] {
  return [...(hold ? [describeHold(path, hold)] : []), ...(pin ? [describePin(path, pin)] : [])]
}

/**
 * An operator has chosen an earlier content. It stays even where its durability is unknown: only the operator knows whether the command
 * reported that. It stays, too, where the content has drifted since: the record that speaks was not aborted.
 */
export function refusePinned(
  path: string,
  digest: string,
  { record }: Pick<Judgement, 'record'>,
  { supersedes, held }: Pick<PublicationOptions, 'supersedes' | 'held'>,
  now: number,
): void {
  const pin = record?.pin
  if (supersedes === undefined || held === 'release' || !isPinned(pin, now)) return
  if (pin.until === 'newer' && digest !== pin.digest && supersedes(pin)) return
  throw rolledBack(path, pin, `run "holdfast release ${path}" to publish what is newest`)
}

export function rolledBack(path: string, pin: Pin, advice: string): DurableWriteError {
  return new DurableWriteError(describePin(path, pin), {
    code: 'EPERM',
    syscall: 'none',
    path,
    reason: 'RolledBack',
    state: 'nothing was changed',
    advice,
  })
}

/** How each publisher leaves a target to the other one. */
const givingUp = {
  agent: "leave it out of the agent's configuration",
  install: 'leave out --cert-dir and the flags of its objects',
  rollout: 'leave out --resources',
} as const satisfies Record<Publisher, string>

/** Two programs that publish one target, each in its own way, would undo each other's work at each turn. */
export function refuseOtherPublisher(
  path: string,
  names: TargetNames,
  publisher: Publisher | undefined,
  { newest }: Pick<Judgement, 'newest'>,
): void {
  const owner = newest?.publisher
  if (newest === undefined || owner === undefined || publisher === undefined || owner === publisher) return
  const record = path.slice(0, path.lastIndexOf('/') + 1) + names.record(newest.sequence)
  throw foreign(`holdfast ${owner} published ${path}, and holdfast ${publisher} is now asked to publish it too`, path, {
    state: leftAsItWas(path),
    advice: `${givingUp[publisher]}; to hand it over, ${givingUp[owner]}, and remove its record ${record}`,
  })
}

/**
 * For a person's command: an agent, or `sync`, whose record is there and has not been let go, would undo it at its next comparison. Whether
 * one runs cannot be told here.
 */
export function refuseKeptByAgent(path: string, { record }: { readonly record?: Confirmed | undefined }): void {
  if (record?.publisher !== 'agent' || letGoSince(record) !== undefined) return
  throw foreign(`an agent or "holdfast sync" publishes ${path}, and would undo this`, path, {
    state: 'nothing was changed',
    advice: `change the objects that it is made from, or run "holdfast hold ${path}" and then this with --force: it stays until "holdfast release ${path}"`,
  })
}

/** Refuses a target that holdfast published in another form than the request's. */
export function refuseOtherForm(path: string, kind: RecordKind, { newest, exists }: Judgement): void {
  if (newest !== undefined && newest.kind !== kind && exists) throw otherForm(path, newest.kind)
}

/** Its readers find the content in this form, whoever made it. */
export function otherForm(path: string, form: RecordKind, isPublished = true): DurableWriteError {
  const way = form === 'file' ? 'as a file' : `with publish: ${form}`
  return unfit(isPublished ? `${path} was published ${way}` : `${path} has the form of publish: ${form}`, {
    code: 'EEXIST',
    syscall: 'lstat',
    path,
    advice:
      form === 'file'
        ? 'keep the file, or remove it first'
        : `another form would break its readers: keep publish: ${form}, or remove the directory first`,
  })
}

/** What to do about a foreign directory, in the words of the command or agent that asked. */
const foreignAdvice = {
  command: "give --replace-foreign (in the library: foreign: 'always') to replace it all the same, or move it away",
  agent: 'set adopt: replace to take it over, or move it away',
  install: 'move it away',
  rollout: 'move it away',
} as const satisfies Record<Publisher | 'command', string>

/** A non-empty directory that this program did not publish is foreign: only a superset of its content replaces it. */
export function refuseForeign(
  path: string,
  desired: Tree,
  { tree, recorded, record }: Judgement,
  publisher?: Publisher,
): void {
  if (recorded || tree === undefined) return
  const own = new Set(desired.entries.map((entry) => entry.path))
  const others = tree.entries.filter((entry) => !own.has(entry.path)).map((entry) => entry.path)
  if (others.length === 0) return
  const some = others.slice(0, 3).join(', ') + (others.length > 3 ? ', …' : '')
  const since = record && letGoSince(record)
  const whose =
    since === undefined ? `${path} was not published by holdfast,` : `${letGoText(path, since)}, has changed since,`
  throw foreign(`${whose} and holds files that the new content does not have (${some})`, path, {
    state: leftAsItWas(path),
    advice: foreignAdvice[publisher ?? 'command'],
  })
}

const emptySha256 = hash('sha256', '')

/** A stream that was read before, as a generator, gives nothing: that replaces no content that is there. */
export function refuseEmptied(path: string, emptyStreams: readonly string[], tree: Tree | undefined): void {
  const filled = tree?.entries.filter(({ type, sha256 }) => type === 'file' && sha256 !== emptySha256)
  const emptied = filled?.find((entry) => emptyStreams.includes(entry.path))
  if (emptied === undefined) return
  const shown = emptied.path === '' ? path : `${path}/${emptied.path}`
  throw new DurableWriteError(`the stream for ${shown} gave nothing, and the file has content`, {
    code: 'EINVAL',
    syscall: 'read',
    path: shown,
    state: leftAsItWas(path),
    advice: 'give a stream that was not read before, or set allowEmpty: true',
  })
}

/** A file that something is mounted on can be neither renamed over nor read by its own name. */
export function mountedFileError(path: string, cause: unknown): DurableWriteError {
  return unfit(`${path} is a mount point`, {
    code: 'EBUSY',
    syscall: 'openat2',
    path,
    advice: 'mount its parent directory instead (in a pod: no subPath)',
    cause,
  })
}

/** Why nothing can be published at a place: `check` and an adoption print it, a publication throws it. */
export interface Unfitness {
  readonly problem: string
  readonly advice: string
  /** No waiting changes it: it is the kind of the file system. */
  readonly lasting: boolean
}

/** Without redirect_dir, an overlay does not rename directories of its lower layers (fs/overlayfs/dir.c). */
export function lowerLayer(path: string): Unfitness {
  return {
    problem: `${path} is in a lower layer of an overlay, which the kernel does not rename`,
    advice: 'mount a directory of the host at its parent, or choose a path that is not in the image',
    lasting: true,
  }
}

const abilities = {
  exchange: 'exchange two names in one step (RENAME_EXCHANGE)',
  noreplace: 'rename without replacing (RENAME_NOREPLACE)',
  sync: 'sync a directory',
} as const

/** What the fit file systems have, and this one lacks. */
export function lacks(ability: keyof typeof abilities, { type }: Pick<Mount, 'type'>, path: string): Unfitness {
  const problem = `a file system of type ${type} cannot ${abilities[ability]}`
  return { problem, advice: `put ${path} on ext4, xfs or btrfs`, lasting: true }
}

/** The error of a rename that did not make the new content visible. */
export function renameError(path: string, mount: Mount, mode: RenameMode, failure: Error): Error {
  const code = codeOf(failure) ?? ''
  if (code === 'EEXIST' && mode === 'noreplace') {
    return foreign(`another program created ${path} meanwhile`, path, { state: leftAsItWas(path) })
  }
  const unable = ({ problem, advice }: Unfitness): DurableWriteError =>
    unfit(problem, { code, syscall: 'renameat2', path, state: leftAsItWas(path), advice, cause: failure })
  if (code === 'EXDEV' && mount.type === 'overlay' && mode === 'exchange') return unable(lowerLayer(path))
  // Both names are in one directory and neither is above the other, so EINVAL can only mean the flag (rename(2)). ENOSYS is the answer of a
  // seccomp profile, or of a kernel before 3.15, on each file system: its advice is that of the errno.
  if (code === 'EINVAL' && mode !== 'replace') return unable(lacks(mode, mount, path))
  return failure
}

export function nothingPublished(path: string): DurableWriteError {
  return unfit(`holdfast has published nothing at ${path}: there is no record beside it`, {
    code: 'ENOENT',
    syscall: 'open',
    path,
    advice: 'name a directory or file that holdfast publishes (holdfast status lists them)',
  })
}

/*
 * Attributes that statx(2) tells (STATX_ATTR_… of linux/stat.h). New content is made beside the target, and has of them what the parent
 * passes on. docs/durability.md has the whole table, with those that only an ioctl tells: `check` looks at these.
 */

const encrypted = 0x800

/** What an entry has for itself, and an administrator has to give to new content again. */
const told = [
  [0x10, 'immutable (chattr +i)'],
  [0x20, 'append-only (chattr +a)'],
  [0x10_0000, 'fs-verity'],
] as const

type Entries = { readonly entries: readonly Pick<TreeEntry, 'path' | 'flags'>[] } | undefined

/** A copy in a directory without fscrypt(8) would have the new keys on the disk in the clear. `parent`: of the target at `path`. */
export function refuseDecrypted(path: string, tree: Entries, parent: Pick<Attributes, 'flags'>): void {
  if ((parent.flags & encrypted) !== 0) return
  const found = tree?.entries.find(({ flags = 0 }) => (flags & encrypted) !== 0)
  if (found === undefined) return
  const shown = found.path === '' ? path : `${path}/${found.path}`
  throw unfit(`${shown} is encrypted, and new content beside it would not be`, {
    code: 'ENOTSUP',
    syscall: 'statx',
    path: shown,
    advice: `encrypt the directory that holds ${path} (fscrypt encrypt), or remove ${shown} first`,
  })
}

/** What entries of the old content have and the new ones will not, in words. */
export function lostFlags(tree: Entries): string[] {
  return told.flatMap(([bit, name]) => {
    const having = tree?.entries.filter(({ flags = 0 }) => (flags & bit) !== 0).map(({ path }) => path || '.') ?? []
    return having.length === 0 ? [] : [`${name} (${listed(having, 3)})`]
  })
}
