import { hash } from 'node:crypto'
import { listed } from '../listed.js'
import { type DurableWriteError, foreign, unfit, wrapError } from './errors.js'
import type { FileSystem } from './file-system.js'
import { publicationIn, readPublishedFiles } from './inspect.js'
import { areOverlapping, isFile, recordOf, refuseReturn, wordOn, type RelocationOptions } from './old-path.js'
import { leftAt, refuseGone, refuseLess, withAdvice } from './hand-checks.js'
import { isOfThis } from './place.js'
import { publish, resultsOf } from './publish.js'
import { describes, type StoredRecord } from './record.js'
import { withRecord } from './record-files.js'
import { refuseHeld, rolledBack } from './refusals.js'
import { unprovenAt } from './proof.js'
import { endRelocation, relocate, type RelocationProgress } from './relocation.js'
import { directoryPublication } from './replace.js'
import { checkTarget } from './request.js'
import { nothingPublished } from './rewrite-record.js'
import type { Tree } from './tree.js'
import type { DirectoryRequest, PublicationOptions } from './types.js'

/*
 * A directory that a person or a program has published by a call of its own gets another path (`holdfast relocate OLD NEW`). Nobody else
 * publishes the new path, so its content comes from the old one. Once that says where it moves to, the new one leads, and all else is as in
 * relocation.ts.
 */

export interface HandRelocationOptions extends Omit<
  RelocationOptions,
  'from' | 'keep' | 'atNew' | 'byHand' | 'publication'
> {
  /** Only looks whether it can begin. */
  readonly dryRun?: boolean
  /** Refuse a new path on a file system on which durability is not proven; default false. */
  readonly requireProven?: boolean
}

/**
 * Takes a relocation by hand as far as it goes now; the same call goes on.
 * @throws DurableWriteError: OLD was not published by hand, has changed, is held or rolled back; NEW is somebody else's, or holds other content;
 *   one lies in the other, or either moves elsewhere; or what `relocate` throws
 */
export async function relocateByHand(
  fs: FileSystem,
  oldPath: string,
  newPath: string,
  options: HandRelocationOptions,
): Promise<RelocationProgress> {
  const [from, to] = [checkTarget(oldPath), checkTarget(newPath)]
  try {
    await refuseOverlap(fs, from, to)
    const old = await recordOf(fs, from)
    const now = await recordOf(fs, to)
    refuseOthers(from, to, old, now)
    const isMoving = now?.relocation?.from === from && !now.removing
    const unproven = await unprovenAt(fs, to, options.requireProven)
    const isDone = isMoving && now.relocation.state === 'done'
    if (isDone && (old === undefined || old.removing?.link !== undefined)) {
      await refuseGone(fs, from, to)
      return { state: 'done', as: await leftAt(fs, from, to), ...unproven }
    }
    if (unproven.unproven && options.force !== true) await refuseLess(fs, from, to)
    // One that is back after its removal, as from a backup, leads nobody anywhere.
    const leads = isMoving && (old === undefined || (old.movedTo === to && (!isDone || old.removing !== undefined)))
    let read: string | undefined
    if (!leads) {
      const { request, digest } = await requestForNew(fs, from, to, now, options)
      read = digest
      if (options.dryRun) {
        await examine(directoryPublication(fs, request))
        return unproven
      }
      // It was moved before, and has been published since.
      if (isDone) await endRelocation(fs, to, options)
      resultsOf(await publish([directoryPublication(fs, request)], options.signal))
    }
    if (options.dryRun) {
      const waits = old && wordOn(from, old, fs.now())
      const { state, as } = now?.relocation ?? {}
      const begun = { ...(state && { state }), ...(as && { as }), ...(waits !== undefined && { waits }) }
      return { ...(await withAdvice(fs, from, to, begun)), ...unproven }
    }
    const progress = await relocate(fs, to, { ...options, from, keep: 0, byHand: { digest: read } })
    return { ...(await withAdvice(fs, from, to, progress)), ...unproven }
  } catch (error) {
    throw wrapError(from, error, false, `could not move ${from} to ${to}`)
  }
}

/** Throws what keeps it from being published. */
async function examine(publication: ReturnType<typeof directoryPublication>): Promise<void> {
  try {
    await publication.preview()
  } finally {
    await publication.close()
  }
}

async function refuseOverlap(fs: FileSystem, from: string, to: string): Promise<void> {
  if (!(await areOverlapping(fs, to, { from }))) return
  throw unfit(`${from} and ${to} are the same directory, or one lies in the other`, {
    ...{ code: 'EEXIST', syscall: 'openat2', path: from },
    advice: 'choose a new path beside it; to move it there, move it elsewhere first',
  })
}

/** Before anything is made. What only looks wrong for an instant is looked at again under the locks. */
function refuseOthers(from: string, to: string, old: StoredRecord | undefined, now: StoredRecord | undefined): void {
  const movesTo = (record: StoredRecord | undefined) => (record?.removing ? undefined : record?.movedTo)
  const refuse = (problem: string, path: string, advice: string): DurableWriteError =>
    unfit(problem, { code: 'EBUSY', syscall: 'none', path, advice })
  for (const [path, record] of [
    [from, old],
    [to, now],
  ] as const) {
    const { publisher } = record ?? {}
    const advice =
      publisher === 'agent'
        ? `write "movedFrom: ${from}" at ${to} in the agent's configuration`
        : 'move only what "replace" has published'
    if (publisher !== undefined) throw refuse(`holdfast ${publisher} publishes ${path}`, path, advice)
  }
  const elsewhere = movesTo(old)
  if (elsewhere !== undefined && elsewhere !== to)
    throw refuse(
      `${from} moves to ${elsewhere} already`,
      from,
      `run "holdfast relocate ${from} ${elsewhere}" to its end`,
    )
  const next = movesTo(now)
  if (next !== undefined)
    throw refuse(`${to} itself moves to ${next}`, to, `run "holdfast relocate ${to} ${next}" to its end`)
  if (old) refuseReturn(from, to, old)
}

/**
 * What holdfast has published at the new path is replaced only by what it was made from: what is equal, or newer, once that has moved there.
 * Answers what looks again, under the lock, at what may be replaced.
 */
function refuseOtherContent(
  from: string,
  to: string,
  { record, tree }: OldContent,
  now: StoredRecord | undefined,
): NonNullable<PublicationOptions['confirm']> {
  const same = [record.after, tree.digest]
  // Older than what the old path holds, or the first copy of it, which was never followed.
  const came = ({ relocation, publishedAt }: StoredRecord): boolean => {
    const isCopy = relocation?.state === 'staged' && publishedAt === relocation.since
    return relocation?.from === from && (isCopy || publishedAt <= record.publishedAt)
  }
  const details = { code: 'EBUSY', syscall: 'none', path: to }
  if (now !== undefined && !now.removing && !came(now) && !same.includes(now.after))
    throw unfit(`${to} holds other content, which holdfast has published there`, {
      ...details,
      advice: `see which of the two is wanted, and run "holdfast remove ${to}" before this, or "holdfast remove ${from}" instead`,
    })
  return ({ record: found }) => {
    const isKnown = found?.publisher === undefined && [...same, now?.after].includes(found?.after)
    if (found === undefined || found.removing || isKnown) return
    throw unfit(`${to} was published by another call meanwhile`, {
      ...details,
      advice: 'see what it holds, and try again',
    })
  }
}

interface OldContent {
  readonly record: StoredRecord
  readonly tree: Tree
}

/** What is there, where it may move. */
async function contentOfOld(fs: FileSystem, from: string, force: boolean): Promise<OldContent> {
  const found = await withRecord(fs, from, async (parent, name, records) => {
    const seen = await publicationIn(fs, from, parent, name, records)
    if (seen === undefined) return undefined
    const { record, state, tree, here } = seen
    if (record.kind === 'file') throw isFile(from)
    refuseHeld(from, state.hold)
    if (state.pin) throw rolledBack(from, state.pin, `run "holdfast release ${from}" first`)
    if (tree === undefined)
      throw unfit(`${from} is not there any more`, {
        ...{ code: 'ENOENT', syscall: 'lstat', path: from },
        advice:
          record.movedTo === undefined ? 'publish it again first' : `it has moved to ${record.movedTo}: move that`,
      })
    const isOwn = records.some((one) => describes(one, tree) && isOfThis(one, here))
    const what = `${from} is not what holdfast published`
    const changes = state.differences.map(({ path, problem }) => `${path} (${problem})`)
    if (!force && changes.length > 0) throw drifted(`${what}: ${listed(changes, 3)}`, from)
    if (!force && !isOwn)
      throw drifted(`${what}: its record is of another one, as after a copy or a restored backup`, from)
    const other = tree.entries.find(({ type }) => type !== 'file' && type !== 'directory')
    if (other)
      throw unfit(`${from}/${other.path} is no file`, {
        code: 'EINVAL',
        syscall: 'lstat',
        path: from,
        advice: 'move it away',
      })
    return { record, tree }
  })
  if (found === undefined) throw nothingPublished(from)
  return found
}

function drifted(problem: string, path: string): DurableWriteError {
  const advice = 'see what it holds; to move it as it is, use --force'
  return foreign(problem, path, { state: 'nothing was changed', advice })
}

/** The old path's content, with its modes and in its form. */
async function requestForNew(
  fs: FileSystem,
  from: string,
  to: string,
  now: StoredRecord | undefined,
  { as, force, lockTimeout = 0, log }: HandRelocationOptions,
): Promise<{ request: DirectoryRequest & PublicationOptions; digest: string }> {
  const old = await contentOfOld(fs, from, force === true)
  const confirm = refuseOtherContent(from, to, old, now)
  const { record, tree } = old
  const [root] = tree.entries
  const pathsOf = (kind: string) =>
    tree.entries.filter(({ type, path }) => type === kind && path !== '').map((one) => one.path)
  const paths = pathsOf('file')
  const files = await readPublishedFiles(fs, from, paths)
  const hashes = new Map(tree.entries.map(({ path, sha256 }) => [path, sha256]))
  const missed = paths.find(
    (path) => files[path] === undefined || hash('sha256', files[path].content) !== hashes.get(path),
  )
  if (missed !== undefined)
    throw unfit(`${from}/${missed} changed while it was read`, {
      code: 'EAGAIN',
      syscall: 'read',
      path: from,
      advice: 'try again',
    })
  const request: DirectoryRequest & PublicationOptions = {
    target: to,
    files,
    contentStays: true,
    mode: root?.mode,
    owner: root,
    objects: [...record.objects],
    ...(record.history && { history: { keep: record.history.keep, maxAge: record.history.maxAge } }),
    ...(record.keepsAttributes === true && { attributes: 'keep' }),
    ...(record.kind === 'symlink' ? { publish: 'symlink' } : { emptyDirectories: pathsOf('directory') }),
    foreign: 'same-names',
    movedFrom: { from, as },
    movedTo: null,
    confirm,
    lockTimeout,
    ...(log && { log }),
  }
  return { request, digest: tree.digest }
}
