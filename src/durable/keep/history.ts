import { nameOf, parentOf } from '../../relative-path.js'
import { objectName } from '../../message-text.js'
import {
  type StagedEntries,
  disinherit,
  notMapped,
  OpenDirectories,
  type Scope,
  setMetadata,
  type Tree,
} from '../path/index.js'
import type { Descriptor } from '../file-system.js'
import { isRepeated, type Judgement, letGoSince, type StoredRecord, withTakenOver } from '../record/index.js'
import { inParallel } from '../../parallel.js'
import type { Generation, History, HistoryLimits, PublicationOptions } from '../types.js'

/*
 * History: the contents that a target had before. When a publication replaces a content, a copy of it is staged with the new content and
 * synced in the same barrier, so that it costs no flush more: `.holdfast-ID.SEQUENCE-RANDOM` beside the target, a directory for its owner
 * alone, in which the copy has the target's name. The old content itself goes as always: a consumer that watches it must see that. (A
 * second name of its files, or the old directory renamed, would show them nothing.)
 *
 * The new record names the copies that stay, with their digests. A copy in no record in force is a leftover of an aborted publication. A
 * copy in one may still have been damaged since: it counts by its digest only.
 */

/** As many copies in parallel as libuv has threads. */
const writers = 4

type FoundJudgement = Pick<Judgement, 'current' | 'record' | 'recorded' | 'known'> | undefined

const none: HistoryLimits = { keep: 0, maxAge: null }

/**
 * The history in the record of the present content; where that has drifted, of the content before. A removed target has none, nor has
 * another program's content before its adoption: a copy of an aborted adoption is a leftover.
 */
function recordedHistory(found: FoundJudgement): History | undefined {
  const { current, record, recorded, known } = found ?? {}
  const isLetGo = record !== undefined && letGoSince(record) !== undefined
  if (recorded === false && known && !isLetGo) return undefined
  return current === undefined && record?.removing !== undefined ? undefined : record?.history
}

/** The hooks of a publication; by default those of the last one. */
function hooksAfter(asked: readonly string[] | undefined, found: FoundJudgement): readonly string[] | undefined {
  return asked ?? recordedHistory(found)?.hooks
}

/** The limits of this request, or else of the last one, without content from objects that are gone. */
export function limitsOf(asked: HistoryLimits | undefined, found: FoundJudgement): HistoryLimits {
  const limits: HistoryLimits = asked ?? recordedHistory(found) ?? none
  const gone = (found?.record?.objects ?? []).filter((object) => object.gone === true).map(objectName)
  if (gone.length === 0) return limits
  return { ...limits, mayStay: (object) => !gone.includes(objectName(object)) && limits.mayStay?.(object) !== false }
}

/**
 * A rollback that may not be durable keeps one generation more: the surplus one may be its source, which a repeated rollback reads again.
 */
export function limitsBeside(
  record: Pick<StoredRecord, 'why' | 'trusted'> | undefined,
  limits: HistoryLimits,
): HistoryLimits {
  return record?.why === 'rolledBack' && !record.trusted ? oneMore(limits) : limits
}

function oneMore(limits: HistoryLimits): HistoryLimits {
  return limits.keep === 0 ? limits : { ...limits, keep: limits.keep + 1 }
}

/** Those that may stay, newest first. A clock that is set back makes nothing older. */
export function within<Kept extends Pick<Generation, 'replacedAt' | 'objects'>>(
  { keep, maxAge, mayStay = () => true }: HistoryLimits,
  generations: readonly Kept[],
  now: number,
): Kept[] {
  return generations
    .filter(({ replacedAt }) => maxAge === null || now - replacedAt < maxAge)
    .filter(({ objects }) => objects.every((object) => mayStay(object)))
    .slice(0, keep)
}

export interface Sifted {
  readonly stays: readonly Generation[]
  /** Names of those that are beyond the limits. */
  readonly over: readonly string[]
  /** Names that stand in no record in force. */
  readonly leftovers: readonly string[]
}

/** Decides which generations stay and which go. */
export function sift(
  names: readonly string[],
  found: FoundJudgement,
  asked: HistoryLimits | undefined,
  now: number,
): Sifted {
  const listed = (recordedHistory(found)?.generations ?? []).filter(({ name }) => names.includes(name))
  const limits = limitsBeside(found?.record, limitsOf(asked, found))
  const stays = withTakenOver(within(limits, listed, now), listed)
  const staying = new Set(stays.map(({ name }) => name))
  const recorded = new Set(listed.map(({ name }) => name))
  return {
    stays,
    over: [...recorded].filter((name) => !staying.has(name)),
    leftovers: names.filter((name) => !recorded.has(name)),
  }
}

/** What the next record says of the past; undefined where it has nothing to say. `added`: what this publication replaces. */
export function historyAfter(
  limits: HistoryLimits,
  stays: readonly Generation[],
  added: Generation | undefined,
  now: number,
  options: Pick<PublicationOptions, 'hooks' | 'pin'>,
  found: Judgement | undefined,
  desired: Tree,
): History | undefined {
  const { keep, maxAge } = limits
  const all = [...(added ? [added] : []), ...stays]
  const kept = within(options.pin ? oneMore(limits) : limits, all, now)
  // A repeated rollback must find its source again.
  const isFirst = isRepeated(found, desired) || options.pin !== undefined || added !== undefined
  const generations = isFirst ? withTakenOver(kept, all) : kept
  if (keep === 0 && generations.length === 0) return undefined
  const hooks = hooksAfter(options.hooks, found) ?? []
  return {
    keep,
    maxAge,
    ...(hooks.length > 0 && { hooks: [...hooks] }),
    generations,
  }
}

/**
 * What becomes an earlier content with this publication; undefined where none is to stay, and for content that is only published again.
 * `nameOf`: of the copy, by the sequence of its record.
 */
export function generationFor(
  found: Judgement | undefined,
  desired: Tree,
  limits: HistoryLimits,
  nameOf: (sequence: number) => string,
  now: number,
): Generation | undefined {
  const { current, tree } = found ?? {}
  if (limits.keep === 0 || !current || !tree || isRepeated(found, desired)) return undefined
  const { sequence, publishedAt, why = 'published', objects } = current
  const replacedAt = Math.max(now, publishedAt, ...replacements(found))
  const said = { sequence, digest: tree.digest, publishedAt, replacedAt, why, objects: [...objects] }
  const generation = { name: nameOf(sequence), ...said }
  return within(limits, [generation], now).length === 0 ? undefined : generation
}

/**
 * When earlier contents were replaced. A content's replacement comes after its publication, and after all earlier ones: a clock that says
 * otherwise is behind, as after a boot without a battery, and its time would be old as soon as the clock is set. The newest known time
 * keeps the copy too long rather than not at all.
 */
function replacements(found: FoundJudgement): number[] {
  return (recordedHistory(found)?.generations ?? []).map(({ replacedAt }) => replacedAt)
}

/** An old content that is to be copied. */
export interface OldContent {
  /** Open. */
  readonly root: Descriptor
  readonly tree: Tree
  /** The target's name. */
  readonly name: string
}

/**
 * Copies an old content to a new directory of this name in `parent`; files and subdirectories are handed over to `staged`. Answers what
 * else is to be synced.
 */
export async function stageGeneration<T>(
  scope: Scope,
  parent: Descriptor,
  name: string,
  old: OldContent,
  staged: StagedEntries<T>,
  owner: T,
): Promise<Descriptor[]> {
  const { fs } = scope
  await fs.createDirectory(parent, name, 0o700)
  const holder = await scope.keep(fs.openDirectory(parent, name))
  await disinherit(fs, holder)
  await setMetadata(fs, holder, { target: name, mode: 0o700 })
  await fs.createDirectory(holder, old.name, 0o700)
  const copy = await scope.keep(fs.openDirectory(holder, old.name))
  await copyTree(scope, old, copy, staged, owner)
  return [holder, copy]
}

/** Modes and owners are the old ones; ACLs and labels are not, since only the owner of the copies can reach them. */
async function copyTree<T>(
  scope: Scope,
  { root, tree, name: target }: OldContent,
  copy: Descriptor,
  staged: StagedEntries<T>,
  owner: T,
): Promise<void> {
  const { fs } = scope
  const from = new OpenDirectories(fs, root)
  const to = new OpenDirectories(fs, copy)
  const likeOld = ({ path, mode, uid, gid }: Tree['entries'][number]) => ({ target, path, mode, owner: { uid, gid } })
  const directories = tree.entries.filter(({ type, path }) => type === 'directory' && path !== '')
  try {
    for (const { path } of directories) {
      await to.use(parentOf(path), (parent) => fs.createDirectory(parent, nameOf(path), 0o700))
    }
    const files = tree.entries.filter(({ type }) => type === 'file')
    await inParallel(files, writers, async (entry) => {
      const { path } = entry
      await from.useFile(path, async (source) => {
        const file = await to.use(parentOf(path), (parent) => staged.create(scope, parent, nameOf(path)))
        await fs.copy(source, file)
        await setMetadata(fs, file, likeOld(entry))
        staged.add(scope, file, owner)
      })
    })
    for (const entry of tree.entries.filter(({ type }) => type === 'symlink')) {
      const [above, name] = [parentOf(entry.path), nameOf(entry.path)]
      const text = await from.use(above, (parent) => fs.readLink(parent, name))
      await to.use(above, async (parent) => {
        await fs.createLink(parent, name, text)
        await fs.setLinkOwner(parent, name, entry.uid, entry.gid).catch(notMapped(entry.path, entry))
      })
    }
    // The deepest first, since they are reached through the others.
    for (const entry of directories.reverse()) {
      const directory = await scope.keep(to.take(entry.path))
      await setMetadata(fs, directory, likeOld(entry))
      await staged.addDirectory(scope, directory, owner)
    }
    const [top] = tree.entries
    if (top) await setMetadata(fs, copy, likeOld(top))
  } finally {
    await from.closeAll()
    await to.closeAll()
  }
}
