import { basename } from 'node:path'
import type { Reason } from '../../reasons.js'
import { DurableWriteError, foreign, leftAsItWas, unfit, wrapError } from '../errors.js'
import type { FileSystem } from '../file-system.js'
import type { PublishedContent } from '../look/index.js'
import { placeKey, namesFor, pathWithin, atPlace } from '../path/index.js'
import { requestAsRecorded } from '../publish/index.js'
import type { HoldOptions } from '../types.js'
import { isInForce, isPinned, type StoredRecord, withRecord } from '../record/index.js'
import { describeHold, describePin, holdOf, refuseHeld, refuseOtherPublisher } from '../target/index.js'
import { findRetired } from '../keep/index.js'
import type {
  DirectoryRequest,
  Hold,
  OldPathOptions,
  Pin,
  PublicationOptions,
  Relocation,
  RelocationState,
  ReplaceResult,
} from '../types.js'

/* The old path of a moving directory: its publications, and its refusals. See relocation.ts. */

export interface RelocationOptions extends HoldOptions, Pick<Relocation, 'from'> {
  /** Milliseconds that both paths stay at least. */
  readonly keep: number
  /** Runs what works at the new path: where each file system has its own threads, with those. Default: as the rest. */
  readonly atNew?: <T>(work: () => Promise<T>) => Promise<T>
  /** A user of the old path that is no process, in a few words. Default: none. */
  readonly usedBy?: () => Promise<string | undefined>
  /** Of the publications of the old path; its form, modes and owner stay as they are. */
  readonly publication?: OldPathOptions
}

/** What comes of a state: the next one, which goes on at once unless something is waited for. */
export interface Next {
  readonly next?: RelocationState
  readonly waits?: string
}

/** Another call has changed the old path's record since it was read. */
export class NotNow extends DurableWriteError {
  constructor(
    from: string,
    readonly next: Next,
  ) {
    super(next.waits ?? `${from} was published or removed meanwhile`, {
      code: 'EAGAIN',
      syscall: 'none',
      path: from,
      reason: 'Busy',
      state: leftAsItWas(from),
      advice: 'try again',
    })
  }
}

/**
 * The content of the new path in the form, with the modes and for the owner of the old one; what the old one did not have gets the modes
 * that it has at the new one.
 */
export function requestFor(
  old: StoredRecord,
  { record, files }: PublishedContent,
  to: string,
  { from, publication, lockTimeout = 0, log }: RelocationOptions,
): DirectoryRequest & PublicationOptions {
  const modes = new Map(old.entries.flatMap(({ path, type, mode }) => (type === 'file' ? [[path, mode]] : [])))
  const entries = record.entries.map((entry) => ({ ...entry, mode: modes.get(entry.path) ?? entry.mode }))
  return {
    ...publication,
    ...requestAsRecorded(from, old, [...old.entries.slice(0, 1), ...entries.slice(1)], files),
    objects: [...record.objects],
    // Its own keys are the new path's now, and so are their copies.
    history: { keep: 0, maxAge: null },
    // A record without `movedTo` comes from another publication or removal, which has not done so for this move.
    confirm({ record }) {
      if (record?.movedTo !== to) throw new NotNow(from, {})
    },
    // An operator's rollback of the old path stays until he releases it.
    supersedes: () => false,
    lockTimeout,
    ...(log && { log }),
  }
}

/** Of the present content, or of the retired one. */
export async function userOf(fs: FileSystem, target: string): Promise<string | undefined> {
  return withRecord(fs, target, async (parent, name, records) => {
    const [retired] = await findRetired({ fs, parent }, records)
    return (await fs.userOf(parent, name)) ?? (retired && `its old content ${retired.name} is still in use`)
  })
}

/** Under the old path's lock, before it says where it moves to. @throws DurableWriteError */
export function refuseClaim(found: StoredRecord, { from, publication }: RelocationOptions, now: number): void {
  refuseOtherPublisher(from, namesFor(basename(from)), publication?.publisher, { newest: found })
  refuseHeld(from, holdOf({ record: found }, now))
}

/**
 * The removal of a path would strand the one that still moves to it: no publication would bring that up to date, and none would remove it.
 * @throws DurableWriteError
 */
export function refuseChain(from: string, { relocation }: StoredRecord, to: string): void {
  if (relocation === undefined || relocation.state === 'done') return
  const { from: first, state } = relocation
  throw unfit(`${first} still moves to ${from} (${state}), which is to move to ${to}`, {
    code: 'EBUSY',
    syscall: 'none',
    path: from,
    state: leftBehind(from, to),
    advice: `configure ${from} with movedFrom: ${first} until that move is done, or without movedFrom, which leaves ${first} as it is`,
  })
}

/** A move begins once the new path is published: its refusal leaves that there. */
function leftBehind(from: string, to: string): string {
  return `${leftAsItWas(from)}, and ${to} is published already`
}

export function notWhole(to: string): string {
  return `${to} is not what was published there last`
}

/** After a failure, the content can be there without its record's word that it survives a power cut. */
export function notDurable(to: string, record: StoredRecord | undefined): string {
  return record === undefined ? `${to} is not published yet` : `what ${to} holds is not known to be durable yet`
}

export function notOurs(from: string, to: string): DurableWriteError {
  return foreign(`holdfast has published nothing at ${from}, which is to move to ${to}`, from, {
    state: leftAsItWas(from),
    advice: 'leave out movedFrom, and move away what is there once nobody needs it',
  })
}

export function notDirectory(from: string, to: string): DurableWriteError {
  return unfit(`${from} is a file, and only directories can move`, {
    code: 'ENOTDIR',
    syscall: 'lstat',
    path: from,
    state: leftBehind(from, to),
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
 * The configuration sees only their texts: by a symbolic link or a bind mount, the content at the old path may be that of the new one.
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
async function areOverlapping(fs: FileSystem, to: string, { from, atNew }: RelocationOptions): Promise<boolean> {
  const [old, now] = [await placeOf(fs, from), await (atNew ? atNew(() => placeOf(fs, to)) : placeOf(fs, to))]
  if (old.identity !== undefined && old.identity === now.identity) return true
  const isNested = (a: string, b: string): boolean => `${a}/`.startsWith(`${b}/`) || `${b}/`.startsWith(`${a}/`)
  return isNested(old.path, now.path) || (old.device === now.device && isNested(old.within, now.within))
}

interface FoundPath {
  /** Without symbolic links. */
  readonly path: string
  /** In its file system, through any mounts. */
  readonly within: string
  /** Of the file system, not st_dev: a subvolume of btrfs lies in another one, and both can be mounted elsewhere. */
  readonly device: string
  /** Equal for two paths that are one; undefined where its directory is not there. */
  readonly identity: string | undefined
}

async function placeOf(fs: FileSystem, target: string): Promise<FoundPath> {
  return atPlace(fs, target, async ({ realParent, anchor, missing, name }) => {
    const path = `${realParent === '/' ? '' : realParent}/${name}`
    const [parent, mount] = [await fs.attributes(anchor), await fs.mount(anchor)]
    const identity = missing.length > 0 ? undefined : placeKey(parent, name)
    return { path, within: pathWithin(mount, path), device: mount.device, identity }
  })
}

/**
 * With these reasons a removal leaves the old path in place, which is no failure: a process uses it, it has changed, or an operator keeps
 * it.
 */
const staying: ReadonlySet<Reason> = new Set(['InUse', 'TargetForeign', 'Held', 'RolledBack'])

/** Why its removal has left it in its place, as a sentence without its full stop; undefined: that was a failure. */
export function isInPlace(error: unknown): string | undefined {
  if (!(error instanceof DurableWriteError) || error.published) return undefined
  return staying.has(error.reason) ? error.problem : undefined
}

/**
 * Once the old path was given new content, an error would say that it is as it was: what fails then is what the rest waits for, as a
 * sentence without its full stop. undefined: it is an error.
 */
export function nextTime(error: unknown, result: ReplaceResult | undefined, options: RelocationOptions) {
  if ([undefined, 'unchanged'].includes(result?.outcome) || options.signal?.aborted) return undefined
  const { published, problem, advice } = wrapError(options.from, error, false, 'could not go on')
  return published ? undefined : [problem, advice].filter((part) => part !== undefined).join('; ')
}

/** Whether anything has this name where a target is. */
export async function isThere(fs: FileSystem, target: string, name: string): Promise<boolean> {
  return atPlace(
    fs,
    target,
    async ({ missing, anchor }) => missing.length === 0 && (await fs.look(anchor, name)) !== undefined,
  )
}

export function shown(time: number): string {
  return new Date(time).toISOString()
}
