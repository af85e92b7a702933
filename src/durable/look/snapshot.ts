import { codeOf } from '../../errors.js'
import type { Descriptor, FileSystem } from '../file-system.js'
import { Bound, ifThere, readDataDirectory, readFileTree, readTree, type Tree } from '../path/index.js'
import { type RecordKind, recordFor, type StoredRecord, withRecord } from '../record/index.js'
import { openOffMounts } from '../target/index.js'

/*
 * Reads a target without a lock, and writes nothing. A publication in the same instant may change the target between two reads; a reader
 * that finds another record than before starts again.
 */

/** A target, as one look finds it: its records, and what it holds, which is read once somebody asks for it. */
export class TargetSnapshot {
  #tree: Promise<Tree | undefined> | undefined

  constructor(
    readonly fs: FileSystem,
    readonly target: string,
    /** The directory that holds it, open. */
    readonly parent: Descriptor,
    readonly name: string,
    /** Newest first. */
    readonly records: readonly StoredRecord[],
  ) {}

  /** Its content in the form of the newest record, as far as the records go; without one, all of it. undefined where there is none. */
  tree(): Promise<Tree | undefined> {
    const { fs, target, parent, name, records } = this
    this.#tree ??= readTarget(fs, target, parent, name, records[0]?.kind, records)
    return this.#tree
  }

  /**
   * The record of its content; where that has drifted, of the content before. Reads the content only where that decides: a publication
   * killed before its exchange leaves a record that does not count.
   */
  async record(): Promise<StoredRecord | undefined> {
    const [newest] = this.records
    if (newest === undefined || newest.committed || this.records.length === 1) return newest
    return recordFor(newest, this.records, await this.tree())
  }
}

/** Hands over what one look finds; undefined where the directory of the target is missing. */
export async function withSnapshot<T>(
  fs: FileSystem,
  target: string,
  use: (seen: TargetSnapshot, missed: boolean) => Promise<T | undefined>,
): Promise<T | undefined> {
  return withRecord(fs, target, (parent, name, records, missed) =>
    use(new TargetSnapshot(fs, target, parent, name, records), missed),
  )
}

const looks = 8

interface Look<State> {
  readonly state: State
  /** No other program has changed the target during the reads. */
  readonly quiet: boolean
}

/**
 * Looks at a target, and again while a publication may be under way. undefined where its directory is missing, or `once` finds nothing.
 */
export async function lookUntilQuiet<State>(
  fs: FileSystem,
  target: string,
  once: (seen: TargetSnapshot) => Promise<Look<State> | undefined>,
): Promise<State | undefined> {
  let before: number | undefined
  for (let look = 1; ; look++) {
    const now = await withSnapshot(fs, target, async (seen, missed) => {
      refuseMissed(target, seen.records, missed)
      const found = await once(seen)
      return found && { ...found, sequence: (await seen.record())?.sequence ?? 0 }
    }).catch((error: unknown) => {
      // A listed name had gone at its opening, as beside a publication in the same instant.
      if (look < looks && (error instanceof RecordMoving || movingCodes.has(codeOf(error) ?? '')))
        return 'moving' as const
      throw error
    })
    const quiet = now !== 'moving' && (now === undefined || now.quiet)
    if (now !== 'moving' && (quiet || look === looks || now.sequence === before)) return now?.state
    before = now === 'moving' ? undefined : now.sequence
  }
}

/** The record went while it was read, and its successor had not come when the names were listed. @internal */
export function refuseMissed(target: string, records: readonly StoredRecord[], missed: boolean): void {
  if (!missed || records.length > 0) return
  throw new RecordMoving(`the record beside ${target} was replaced at each of ${looks} looks: try again`)
}

class RecordMoving extends Error {}
const movingCodes = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ESTALE'])

/** The record that speaks for a target; undefined where nothing was ever published. */
export async function speakingRecord(fs: FileSystem, target: string): Promise<StoredRecord | undefined> {
  return lookUntilQuiet(fs, target, async (seen) => {
    const state = await seen.record()
    return state && { state, quiet: true }
  })
}

export function typeOf(kind: RecordKind): 'file' | 'directory' {
  return kind === 'file' ? 'file' : 'directory'
}

/**
 * The content of a target in the form of its publication, as far as these records and the bound go; without a record, all of it. undefined
 * where there is none. `kind`: default: of the entry that is there.
 */
export async function readTarget(
  fs: FileSystem,
  target: string,
  parent: Descriptor,
  name: string,
  kind: RecordKind | undefined,
  records: readonly Pick<StoredRecord, 'entries'>[],
): Promise<Tree | undefined> {
  const bound = records.length === 0 ? undefined : new Bound(records.flatMap(({ entries }) => entries))
  const entry = await fs.look(parent, name)
  if (entry === undefined) return undefined
  const form = kind ?? (entry.type === 'file' ? 'file' : 'exchange')
  if (entry.type !== typeOf(form)) return undefined
  if (form === 'file') return readFileTree(fs, parent, name, bound)
  const read = form === 'symlink' ? readDataDirectory : readTree
  return ifThere(fs, openOffMounts(fs, target, parent, name), (opened) => read(fs, opened, false, bound))
}
