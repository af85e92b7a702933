import { dirname } from 'node:path'
import type { Reason } from '../reasons.js'
import { DurableWriteError, foreign, leftAsItWas, unfit } from './errors.js'
import type { FileSystem } from './file-system.js'
import { readTarget } from './inspect.js'
import { linkText } from './left-link.js'
import type { HoldOptions } from './rewrite-record.js'
import type { PublishedContent } from './published-content.js'
import { describes, isInForce, isPinned, type StoredRecord } from './record.js'
import { withRecord } from './record-files.js'
import { describeHold, describePin } from './refusals.js'
import { resolve } from './resolve.js'
import { findRetired } from './retired.js'
import { Scope } from './scope.js'
import type { DirectoryRequest, Hold, Pin, PublicationOptions, Relocation, RelocationState } from './types.js'

/* The old path of a directory that moves: what is published there, and what is refused. See relocation.ts. */

export interface RelocationOptions extends HoldOptions, Pick<Relocation, 'from' | 'as'> {
  /** Milliseconds that both paths stay at least. */
  readonly keep: number
  /** Even where not all processes can be looked at; default false. */
  readonly force?: boolean
  /** Runs what works at the new path: where each file system has its own threads, with those. Default: as the rest. */
  readonly atNew?: <T>(work: () => Promise<T>) => Promise<T>
  /** Who uses the old path that is no process, in a few words. Default: nobody. */
  readonly usedBy?: () => Promise<string | undefined>
  /** Asked under the old path's lock, before it goes; throws what refuses that. Default: nobody does. */
  readonly confirm?: () => void | Promise<void>
  /** Of the publications of the old path; its form, modes and owner stay what they are. */
  readonly publication?: Pick<PublicationOptions, 'hooks' | 'publisher' | 'retire' | 'retireTimeout' | 'requireProven'>
}

/** What comes of a state: the next one, which goes on at once unless something is waited for. */
export interface Next {
  readonly next?: RelocationState
  readonly waits?: string
}

/** Somebody has changed the old path's record since it was looked at. */
export class NotNow extends Error {
  constructor(readonly next: Next) {
    super('the old path is not to be removed')
  }
}

/**
 * The content of the new path in the form, with the modes and for the owner of the old one; what the old one did not have gets the modes
 * that it has at the new one.
 */
export function requestFor(
  old: StoredRecord,
  { record, files }: PublishedContent,
  { from, publication, lockTimeout = 0, signal, log }: RelocationOptions,
): DirectoryRequest & PublicationOptions {
  const [root] = old.entries
  const ofFiles = [...record.entries, ...old.entries].filter(({ type }) => type === 'file')
  const modes = new Map(ofFiles.map(({ path, mode }) => [path, mode]))
  const empty = record.entries.filter(({ type, path }) => type === 'directory' && path !== '')
  return {
    ...publication,
    target: from,
    files: Object.fromEntries([...files].map(([path, content]) => [path, { content, mode: modes.get(path) }])),
    contentStays: true,
    mode: root?.mode,
    owner: root && { uid: root.uid, gid: root.gid },
    ...(old.keepsAttributes === true && { attributes: 'keep' }),
    objects: [...record.objects],
    // Its own keys are the new path's now, and so are their copies.
    history: { keep: 0, maxAge: null },
    ...(old.kind === 'symlink'
      ? { publish: 'symlink', retire: 'immediately' }
      : { emptyDirectories: empty.map(({ path }) => path) }),
    // An operator's rollback of the old path stays until he releases it.
    supersedes: () => false,
    lockTimeout,
    ...(signal && { signal }),
    ...(log && { log }),
  }
}

/** The record of what a target holds; where that is drift, the newest one. */
export async function recordOf(fs: FileSystem, target: string): Promise<StoredRecord | undefined> {
  return withRecord(fs, target, async (parent, name, records) => {
    const [newest] = records
    const tree = newest && (await readTarget(fs, target, parent, name, newest.kind))
    return records.find((one) => describes(one, tree)) ?? newest
  })
}

/** Of what is there, or of what was there before. */
export async function userOf(fs: FileSystem, target: string, onlySeen?: boolean): Promise<string | undefined> {
  return withRecord(fs, target, async (parent, name, records) => {
    const [retired] = await findRetired({ fs, parent }, records)
    return (await fs.userOf(parent, name, onlySeen)) ?? (retired && `its old content ${retired.name} is still in use`)
  })
}

export function notWhole(to: string): string {
  return `${to} is not what was published there last`
}

export function notOurs(from: string, to: string): DurableWriteError {
  return foreign(`holdfast has published nothing at ${from}, which is to move to ${to}`, from, {
    state: leftAsItWas(from),
    advice: 'leave out movedFrom, and move away what is there once nobody needs it',
  })
}

export function notDirectory(from: string): DurableWriteError {
  return unfit(`${from} is a file, and only directories can move`, {
    code: 'ENOTDIR',
    syscall: 'lstat',
    path: from,
    advice: 'leave out movedFrom',
  })
}

/** Why an operator's word keeps it as it is, as a sentence without its full stop; undefined: nothing does. */
export function wordOn(
  from: string,
  { hold, pin }: { readonly hold?: Hold | undefined; readonly pin?: Pin | undefined },
  now: number,
): string | undefined {
  if (isInForce(hold, now)) return describeHold(from, hold)
  return isPinned(pin, now) ? describePin(from, pin) : undefined
}

/**
 * The configuration sees only their texts: by a symbolic link or a bind mount, what is removed at the old path may be what the new one
 * holds.
 * @throws DurableWriteError: they are one directory, or one lies in the other
 */
export async function refuseSame(fs: FileSystem, to: string, options: RelocationOptions): Promise<void> {
  const { from } = options
  if (!(await areOverlapping(fs, to, options))) return
  throw unfit(`${from} and ${to} are the same directory, or one lies in the other`, {
    code: 'EEXIST',
    syscall: 'openat2',
    path: from,
    state: leftAsItWas(from),
    advice: 'leave out movedFrom',
  })
}

/** Whether they are one directory, or one lies in the other. */
export async function areOverlapping(fs: FileSystem, to: string, options: RelocationOptions): Promise<boolean> {
  const [old, now] = await placesOf(fs, to, options)
  const [a, b] = [`${old.path}/`, `${now.path}/`]
  const isSame = a === b || (old.identity !== undefined && old.identity === now.identity)
  return isSame || a.startsWith(b) || b.startsWith(a)
}

/** The text of a link at the old path that leads to the new one. */
export async function linkTextFor(fs: FileSystem, to: string, options: RelocationOptions): Promise<string> {
  const [old, now] = await placesOf(fs, to, options)
  return linkText(dirname(old.path), now.path)
}

async function placesOf(fs: FileSystem, to: string, { from, atNew }: RelocationOptions) {
  const there = () => placeOf(fs, to)
  return [await placeOf(fs, from), await (atNew ? atNew(there) : there())] as const
}

/** Its path without symbolic links, and what is equal for two paths that are one; undefined where its directory is not there. */
async function placeOf(fs: FileSystem, target: string): Promise<{ path: string; identity: string | undefined }> {
  const scope = new Scope(fs)
  try {
    const { realParent, anchor, missing, name } = await resolve(scope, target)
    const path = `${realParent === '/' ? '' : realParent}/${name}`
    if (missing.length > 0) return { path, identity: undefined }
    const { device, inode } = await fs.attributes(anchor)
    return { path, identity: `${device}:${inode}:${name}` }
  } finally {
    await scope.closeAll()
  }
}

/** For one of these a removal leaves it in its place, which is no failure: somebody uses it, has changed it, or wants it kept as it is. */
const staying: ReadonlySet<Reason> = new Set(['InUse', 'TargetForeign', 'Held', 'RolledBack'])

/** Why its removal has left it in its place, as a sentence without its full stop; undefined: that was a failure. */
export function isInPlace(error: unknown): string | undefined {
  if (!(error instanceof DurableWriteError) || error.published) return undefined
  return staying.has(error.reason) ? error.problem : undefined
}
