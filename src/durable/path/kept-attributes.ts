import type { Owner } from '../types.js'
import { hash } from 'node:crypto'
import { mapThem, unmappedIds } from '../../capabilities.js'
import { adviceFor, isSystemError } from '../../errors.js'
import { parentOf } from '../../relative-path.js'
import { inheritedList, listWithMode, modeByList } from './access-list.js'
import { DurableWriteError, leftAsItWas, unfit } from '../errors.js'
import type { Attributes, Descriptor, EntryType, ExtendedAttributes, FileSystem } from '../file-system.js'
import { withOpen } from './scope.js'

/** What one entry is to have for itself. */
export interface OwnAttributes {
  readonly mode: number
  readonly owner: Owner
  /** ACLs, and nothing else. */
  readonly lists: ExtendedAttributes | undefined
}

/** For new content that is a copy, and is to take another directory's place later. For the form `exchange` only. */
export interface CopyOptions {
  /** For every path, '' for the target itself: instead of `mode`, `fileMode`, `owner`, and of the ACLs of the old content. */
  readonly entries?: ReadonlyMap<string, OwnAttributes> | undefined
  /** In the target's parent: the new content gets its labels and user attributes, as if it were the target. */
  readonly inPlaceOf?: string
}

/*
 * An administrator sets ACLs and user attributes on the disk: no request names them, no digest covers them. A new entry takes those of the
 * old entry of the same path, before its fsync.
 */

export const accessAttribute = 'system.posix_acl_access'
export const defaultAttribute = 'system.posix_acl_default'

/** Which extended attributes a publication keeps. `setMetadata` keeps a label by another call. */
export function isKept(name: string): boolean {
  return isList(name) || name.startsWith('user.')
}

interface OldEntry {
  readonly path: string
  readonly type: EntryType
  readonly extended?: ExtendedAttributes
}

/** What `found` answers of the path itself, else of the nearest directory above it that it answers of; '', in which all are, is the last. */
export function nearest<T>(path: string, found: (at: string) => T | undefined): T | undefined {
  for (let at = path; ; at = parentOf(at)) {
    const answer = found(at)
    if (answer !== undefined || at === '') return answer
  }
}

/** The attributes that staged entries get. */
export class KeptAttributes {
  readonly #old: ReadonlyMap<string, OldEntry>

  /** `inherited`: the default ACL of the directory in which the target is new. */
  constructor(
    old: readonly OldEntry[],
    readonly inherited: Uint8Array | undefined,
  ) {
    this.#old = new Map(old.map((entry) => [entry.path, entry]))
  }

  /** Those of the same path where it was of the same type, else what a new path inherits; with the ACL of this mode. */
  of(path: string, type: 'file' | 'directory', mode: number): ExtendedAttributes | undefined {
    const old = this.#old.get(path)
    if (old?.type === type) return withMode(old.extended, mode)
    const inherited = path === '' ? this.inherited : this.#defaultOf(parentOf(path))
    if (inherited === undefined) return undefined
    const list = inheritedList(inherited, mode)
    return new Map([
      ...(list ? [[accessAttribute, list] as const] : []),
      ...(type === 'directory' ? [[defaultAttribute, inherited] as const] : []),
    ])
  }

  /** The default ACL that a directory of the new content has. */
  #defaultOf(path: string): Uint8Array | undefined {
    if (this.#old.size === 0) return this.inherited
    const old = nearest(path, (at) => {
      const entry = this.#old.get(at)
      return entry?.type === 'directory' ? entry : undefined
    })
    return old ? old.extended?.get(defaultAttribute) : this.inherited
  }
}

function isList(name: string): boolean {
  return name === accessAttribute || name === defaultAttribute
}

/** The ACLs among these attributes; undefined where there are none. */
function listsIn(extended: ExtendedAttributes | undefined): ExtendedAttributes | undefined {
  const lists = [...(extended ?? [])].filter(([name]) => isList(name))
  return lists.length === 0 ? undefined : new Map(lists)
}

/** These ACLs in place of those among the attributes. */
export function withLists(
  extended: ExtendedAttributes | undefined,
  lists: ExtendedAttributes | undefined,
): ExtendedAttributes | undefined {
  const others = [...(extended ?? [])].filter(([name]) => !isList(name))
  return others.length === 0 ? lists : new Map([...others, ...(lists ?? [])])
}

/** Differs where an ACL of any entry does; null where none has any. */
export function listsDigest(entries: CopyOptions['entries']): string | null {
  return attributesDigest([...(entries ?? [])].map(([path, { lists }]) => ({ path, extended: lists })))
}

/** The paths of those entries that have other ACLs than they are to have; `.` is the target itself. */
export function otherLists(wanted: CopyOptions['entries'], found: readonly OldEntry[]): string[] {
  const digestOf = (lists: ExtendedAttributes | undefined): string | null =>
    attributesDigest([{ path: '', extended: lists }])
  return found.flatMap(({ path, extended }) => {
    const own = wanted?.get(path)
    if (own === undefined || digestOf(own.lists) === digestOf(listsIn(extended))) return []
    return [path === '' ? '.' : path]
  })
}

/** The same attributes for an inode of this mode. */
export function withMode(extended: ExtendedAttributes | undefined, mode: number): ExtendedAttributes | undefined {
  const list = extended?.get(accessAttribute)
  return list === undefined ? extended : new Map(extended).set(accessAttribute, listWithMode(list, mode))
}

/** The mode of an inode whose st_mode this is: with an ACL, its group bits are the ACL's mask. */
export function modeOf(mode: number, extended: ExtendedAttributes | undefined): number {
  return modeByList(extended?.get(accessAttribute), mode)
}

/** Differs where an ACL or a user attribute of any entry does; null where none has any. */
export function attributesDigest(
  entries: readonly { readonly path: string; readonly extended?: ExtendedAttributes | undefined }[],
): string | null {
  const all = entries.flatMap(({ path, extended }) =>
    [...(extended ?? [])].map(([name, value]) => JSON.stringify([path, name, Buffer.from(value).toString('base64')])),
  )
  return all.length === 0 ? null : `sha256:${hash('sha256', all.sort().join())}`
}

/** What something open has of mode, owner and attributes. */
export async function metadataOf(
  fs: FileSystem,
  descriptor: Descriptor,
): Promise<{ mode: number; uid: number; gid: number; size: number; extended: ExtendedAttributes | undefined }> {
  const { mode, uid, gid, size } = await fs.attributes(descriptor)
  const extended = await fs.extendedAttributes(descriptor)
  return { mode: modeOf(mode, extended), uid, gid, size, extended }
}

/** What a copy of the file or directory has for itself. `path` leads from this open directory through no symbolic link (ELOOP). */
export async function attributesAt(fs: FileSystem, root: Descriptor, path: string): Promise<OwnAttributes> {
  return withOpen(fs, fs.openContent(path, false, root), async (descriptor) => {
    const { mode, uid, gid, extended } = await metadataOf(fs, descriptor)
    return { mode, owner: { uid, gid }, lists: listsIn(extended) }
  })
}

/**
 * Takes away the attributes that a new entry inherited from its directory, so that its own entries inherit none: `setMetadata` sets the
 * desired ones at the end. Returns the default ACL among it.
 */
export async function disinherit(fs: FileSystem, descriptor: Descriptor): Promise<Uint8Array | undefined> {
  const inherited = await fs.extendedAttributes(descriptor)
  for (const name of inherited?.keys() ?? []) await fs.setExtendedAttribute(descriptor, name, undefined)
  return inherited?.get(defaultAttribute)
}

/** The same for a staged file, which has no default ACL: `parent`'s is returned, where the file inherited anything from it. */
export async function disinheritFile(
  fs: FileSystem,
  file: Descriptor,
  parent: Descriptor,
): Promise<Uint8Array | undefined> {
  const inherited = await fs.extendedAttributes(file)
  if (inherited === undefined) return undefined
  await disinherit(fs, file)
  return (await fs.extendedAttributes(parent))?.get(defaultAttribute)
}

/**
 * Gives attributes to a staged entry that has none: `when` is before its owner and mode are set, as user attributes need the right to
 * write (xattr_permission in fs/xattr.c), or after, as chmod(2) would change an ACL.
 * @throws DurableWriteError that names `path`, where they cannot be kept
 * @internal
 */
export async function setExtended(
  fs: FileSystem,
  descriptor: Descriptor,
  extended: ExtendedAttributes | undefined,
  when: 'before' | 'after',
  path: string,
): Promise<void> {
  for (const [name, value] of extended ?? []) {
    if (name.startsWith('user.') !== (when === 'before')) continue
    try {
      await fs.setExtendedAttribute(descriptor, name, value)
    } catch (error) {
      throw notKept(path, name, error)
    }
  }
}

function notKept(path: string, name: string, error: unknown): unknown {
  if (!isSystemError(error)) return error
  const { code, syscall } = error
  const isUser = name.startsWith('user.')
  const what = isUser ? `the attribute ${name}` : name === defaultAttribute ? 'the default ACL' : 'the ACL'
  const remove = isUser ? `setfattr -x ${name}` : name === defaultAttribute ? 'setfacl -k' : 'setfacl -b'
  return new DurableWriteError(`could not keep ${what} of ${path}: ${syscall}: ${code}`, {
    code,
    syscall,
    path,
    state: leftAsItWas(path),
    advice: (code === 'ENOSPC' ? adviceFor(code) : undefined) ?? `take it away (${remove}), or publish as root`,
    cause: error,
  })
}

/** For the failure of a chown(2) of this path. @throws DurableWriteError where the user namespace lacks the owner, else the error as it is */
export function notMapped(path: string, owner: Owner): (error: unknown) => never {
  return (error) => {
    const ids = isSystemError(error) && error.code === 'EINVAL' ? unmappedIds(owner) : undefined
    if (!isSystemError(error) || ids === undefined) throw error
    const { code, syscall } = error
    throw unfit(
      `could not give ${path} to ${owner.uid}:${owner.gid}: the user namespace of holdfast does not map ${ids} (${syscall}: ${code})`,
      { code, syscall, path, state: leftAsItWas(path), advice: mapThem, cause: error },
    )
  }
}

/** What something new is to have. */
export interface Metadata {
  /** Of the target, for messages, and the path in it. */
  readonly target: string
  readonly path?: string
  readonly owner?: Owner | undefined
  readonly mode: number
  readonly label?: Uint8Array | undefined
  readonly extended?: ExtendedAttributes | undefined
}

/**
 * Owner, mode, label and attributes of a new entry, which has no attributes yet. The owner comes before the mode, since chown(2) takes
 * set-user-ID bits away, and the mode before the ACL, whose mask chmod(2) would change. Answers what it had before: the inode stays.
 */
export async function setMetadata(fs: FileSystem, descriptor: Descriptor, metadata: Metadata): Promise<Attributes> {
  const { owner: desired = fs.user, mode, label, extended, target } = metadata
  const shown = metadata.path ? `${target}/${metadata.path}` : target
  await setExtended(fs, descriptor, extended, 'before', shown)
  // A parent with the set-group-ID bit hands its group down.
  const now = await fs.attributes(descriptor)
  const disowned = now.uid !== desired.uid || now.gid !== desired.gid
  if (disowned) await fs.setOwner(descriptor, desired.uid, desired.gid).catch(notMapped(shown, desired))
  if (disowned || now.mode !== mode) await fs.setMode(descriptor, mode)
  // Even to set a label that is equal takes the right to relabel (selinux_inode_setxattr).
  if (label && !isEqual(await fs.label(descriptor), label)) await fs.setLabel(descriptor, label)
  await setExtended(fs, descriptor, extended, 'after', shown)
  return now
}

function isEqual(a: Uint8Array | undefined, b: Uint8Array): boolean {
  return a !== undefined && Buffer.compare(a, b) === 0
}
