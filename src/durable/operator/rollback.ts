import { objectName } from '../../message-text.js'
import { damaged, generationsOf, noneEarlier, readEarlier, type EarlierContent, withSnapshot } from '../look/index.js'
import { type DurableWriteError, foreign, leftAsItWas, readError, unfit } from '../errors.js'
import type { FileSystem } from '../file-system.js'
import type { HoldOptions } from '../types.js'
import { agentOf, letGoSince, letGoText, withRecord, describes, digestBy, type StoredRecord } from '../record/index.js'
import {
  goneFrom,
  PlannedTree,
  publish,
  directoryPublication,
  only,
  planFor,
  planOf,
  requestAsRecorded,
  type DirectoryChange,
  type PublicationRequest,
} from '../publish/index.js'
import { type Tree, checkTarget, isUnicode } from '../path/index.js'
import type { Confirmed, ContentCheck, Generation, Pin, ReplaceResult } from '../types.js'

/*
 * Rollback: an ordinary publication publishes an earlier content again. It reads that into memory first, and accepts it only by the digest
 * of its record. The new record pins the target: see Pin.
 */

export interface RollbackOptions extends HoldOptions {
  /** Sequence of an earlier content. Default: the newest one that differs from the present content. */
  readonly to?: number | undefined
  readonly pin: Pick<Pin, 'reason' | 'until'>
  /** Even where the target is held, which ends the hold; default false. */
  readonly release?: boolean
  /** Even where an object has another uid by now; default false. */
  readonly force?: boolean
  /** Looks at the files that are about to be published, by their paths; throws what refuses them. */
  readonly confirmFiles?: (files: ReadonlyMap<string, Uint8Array>) => void
  /** Asked as by any publication: see PublicationOptions. */
  readonly check?: ContentCheck
  /** Refuse file systems on which durability is not proven; default false. */
  readonly requireProven?: boolean
  /** Plans alone: takes no lock, changes nothing, and asks no `check`, which needs a staged content; default false. */
  readonly dryRun?: boolean
}

/** With `changes`, what a dry run has planned. */
export type RollbackResult = ReplaceResult & { sequence: number; changes?: DirectoryChange[] }

/**
 * Publishes an earlier content again, and pins the target. Answers which one.
 * @throws DurableWriteError. Nothing was changed where there is no such content, it is damaged, or an object has another uid by now;
 *   otherwise as of any publication
 */
export async function rollBack(fs: FileSystem, path: string, options: RollbackOptions): Promise<RollbackResult> {
  const target = checkTarget(path)
  const { generation, request } = await readEarlierAtRest(fs, target, options)
  const { sequence } = generation
  const publication = directoryPublication(fs, request)
  if (options.dryRun === true) return { ...(await planOf(publication, true)), sequence }
  return { ...only(await publish([publication], options.signal)), sequence }
}

/** How often rollback reads the earlier contents where another process publishes each time meanwhile. */
const readsAtMost = 4

/** Reads without the lock. Where another record stands there afterwards, neither the content nor a failure proves anything: it reads again. */
async function readEarlierAtRest(
  fs: FileSystem,
  target: string,
  options: RollbackOptions,
): Promise<{ generation: Generation; request: PublicationRequest }> {
  try {
    for (let time = 1; ; time++) {
      const before = await newestOf(fs, target)
      try {
        return await earlier(fs, target, options)
      } catch (error) {
        if ((await newestOf(fs, target)) === before) throw error
        if (time === readsAtMost) throw movedOn(target)
      }
    }
  } catch (error) {
    throw readError(target, error, `could not read the earlier contents of ${target}`)
  }
}

function newestOf(fs: FileSystem, target: string): Promise<number | undefined> {
  return withRecord(fs, target, (_, __, [newest]) => Promise.resolve(newest?.sequence))
}

async function earlier(
  fs: FileSystem,
  target: string,
  options: RollbackOptions,
): Promise<{ generation: Generation; request: PublicationRequest }> {
  const found = await withSnapshot(fs, target, async (seen) => {
    const [newest] = seen.records
    const record = await seen.record()
    if (newest === undefined || record === undefined) return undefined
    const tree = await seen.tree()
    const generation = chosen(target, record, await generationsOf(seen, record), digestBy(record, tree), options.to)
    if (options.force !== true) {
      refuseOtherObjects(target, generation, record)
      refuseLetGo(target, record, tree)
    }
    refuseVoidPin(target, record, options.pin, fs.now())
    const content = await readEarlier(seen, generation)
    if (content === undefined || content instanceof Error) throw damaged(target, generation, content)
    refuseOdd(target, generation, content.entries)
    options.confirmFiles?.(content.files)
    const confirm: PublicationRequest['confirm'] = (now, generations) => {
      refuseMovedOn(target, newest, generation, now.newest, generations)
      if (options.force !== true) refuseOtherObjects(target, generation, now.record)
    }
    const request = { ...requestFromPast(target, record, generation, content, options), confirm }
    if (request.attributes !== 'keep') refuseMixed(target, generation, content.entries)
    if (!(await isWhole(fs, request, content, generation))) throw damaged(target, generation)
    return { generation, request }
  })
  if (found === undefined) throw noneEarlier(target, `holdfast has published nothing at ${target}`)
  return found
}

/** The generation of the request. */
function chosen(
  target: string,
  { sequence: present, after, trusted, why }: StoredRecord,
  generations: readonly Generation[],
  digest: string | undefined,
  to: number | undefined,
): Generation {
  const shown = generations.map(({ sequence }) => sequence).join(', ')
  if (generations.length === 0) throw noneEarlier(target, `no earlier content of ${target} is kept`)
  if (why === 'rolledBack' && !trusted && digest === after && (to === undefined || to === present)) {
    const again = generations.find((one) => one.digest === digest)
    if (again) return again
    throw noneEarlier(
      target,
      `${target} was rolled back already, and no copy of that content is kept; there are ${shown}`,
    )
  }
  const found = generations.find((one) => (to === undefined ? one.digest !== digest : one.sequence === to))
  // The present content, unless known to be durable, may be published again.
  const isThere =
    found === undefined ? to === undefined || (to === present && digest === after) : found.digest === digest
  if (isThere && (found === undefined || trusted)) {
    throw noneEarlier(target, `${target} holds this content already; there are ${shown}`)
  }
  if (found === undefined) throw noneEarlier(target, `${target} has no earlier content ${to}; there are ${shown}`)
  return found
}

/** Refuses content whose object was replaced: a later publication shows another object of its name. */
function refuseOtherObjects(target: string, { sequence, objects }: Generation, record: Confirmed | undefined): void {
  for (const object of objects) {
    const { kind, namespace, name, uid } = object
    const now = record?.objects.find((one) => one.kind === kind && one.namespace === namespace && one.name === name)
    if (now === undefined || now.uid === uid) continue
    const message = `the content ${sequence} of ${target} was made from another ${objectName(object)}, which was deleted since`
    throw unfit(message, {
      code: 'ESTALE',
      syscall: 'none',
      path: target,
      advice: 'to publish it all the same, use --force',
    })
  }
}

/** Refuses to overwrite another program's changes to a target that was let go, since no copy keeps them. */
function refuseLetGo(target: string, record: StoredRecord, tree: Tree | undefined): void {
  const since = letGoSince(record)
  if (since === undefined || tree === undefined || describes(record, tree)) return
  throw foreign(`${letGoText(target, since)}, and has changed since`, target, {
    state: leftAsItWas(target),
    advice: 'see what it holds; to publish the earlier content in its place all the same, use --force',
  })
}

/** Any object is newer than none: the pin would be void at once. */
function refuseVoidPin(target: string, record: StoredRecord, { until }: RollbackOptions['pin'], now: number): void {
  if (until !== 'newer' || goneFrom(record, now).length > 0) return
  throw unfit(`what ${target} holds, and all before it, was made from no object: nothing could be newer`, {
    code: 'ENODATA',
    syscall: 'none',
    path: target,
    advice: 'pin it until it is released (--pin released), or for a time',
  })
}

/** Called under the lock: the record, read without it, must be the same still. */
function refuseMovedOn(
  target: string,
  { sequence }: StoredRecord,
  { name }: Generation,
  newest: Confirmed | undefined,
  generations: readonly Generation[],
): void {
  if (newest?.sequence === sequence && generations.some((one) => one.name === name)) return
  throw movedOn(target)
}

function movedOn(target: string): DurableWriteError {
  return unfit(`another process has published ${target} meanwhile, or removed the earlier content`, {
    code: 'ESTALE',
    syscall: 'none',
    path: target,
    advice: `repeat the call (holdfast history ${target} lists what there is)`,
  })
}

/** The request that the publisher of the present content would make. */
function requestFromPast(
  target: string,
  record: StoredRecord,
  { objects }: Generation,
  { entries, files }: EarlierContent,
  { pin, release = false, lockTimeout = 0, requireProven = false, check, log }: RollbackOptions,
): PublicationRequest {
  const { publisher, history } = record
  return {
    ...requestAsRecorded(target, record, entries, files),
    ...(publisher && { publisher, agent: agentOf(record) }),
    ...(history?.hooks && { hooks: history.hooks }),
    objects: [...objects],
    pin,
    held: release ? 'release' : 'refuse',
    lockTimeout,
    requireProven,
    ...(check && { check }),
    ...(log && { log }),
  }
}

/** Whether the read content equals its record: names, bytes, modes and owners. */
async function isWhole(
  fs: FileSystem,
  request: PublicationRequest,
  { entries }: EarlierContent,
  { digest }: Generation,
): Promise<boolean> {
  const planned = PlannedTree.ofDirectory(planFor(request.target, { ...request, fs }), fs.user)
  await planned.read()
  // An administrator may have given its entries an owner each.
  if (request.attributes === 'keep') await planned.keep(request.target, { entries, digest })
  return planned.tree.digest === digest
}

/** Refuses taken-over links, and names that are no text, which no publication makes. */
function refuseOdd(target: string, generation: Generation, entries: EarlierContent['entries']): void {
  const odd = entries.find(({ type, path }) => type === 'symlink' || !isUnicode(path))
  if (odd === undefined) return
  const [code, why] =
    odd.type === 'symlink'
      ? ['ELOOP', `holds a symbolic link (${odd.path})`]
      : ['EILSEQ', `has a name that is not UTF-8 (${JSON.stringify(odd.path)})`]
  throw notPublished(target, generation, code, `${why}, which holdfast does not publish`)
}

/** Refuses taken-over content with several owners or modes. A publication gives all of it one owner, and all directories one mode. */
function refuseMixed(target: string, generation: Generation, entries: EarlierContent['entries']): void {
  const [root] = entries
  const other = entries.find(
    ({ type, mode, uid, gid }) => uid !== root?.uid || gid !== root.gid || (type === 'directory' && mode !== root.mode),
  )
  if (other === undefined) return
  const why = `cannot be published as it was: its entries have different owners or modes (${other.path})`
  throw notPublished(target, generation, 'ENOTSUP', why)
}

function notPublished(target: string, { sequence, name }: Generation, code: string, why: string): Error {
  const path = `${target.slice(0, target.lastIndexOf('/'))}/${name}`
  const advice = `copy what you need from ${path}`
  return unfit(`the content ${sequence} of ${target} ${why}`, { code, syscall: 'none', path, advice })
}
