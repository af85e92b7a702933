import { nameOf, parentOf } from '../../relative-path.js'
import { basename, dirname, join } from 'node:path'
import { codeOf } from '../../errors.js'
import { type DurableWriteError, unfit } from '../errors.js'
import { writableByAll, writableByGroup } from '../../writers.js'
import type { Attributes, Descriptor, FileSystem } from '../file-system.js'
import {
  currentDataDirectory,
  namesFor,
  recordPattern,
  identityOf,
  inScope,
  inTree,
  isSame,
  withOpen,
  type Tree,
} from '../path/index.js'
import { letGoSince, isInForce, isPinned, type RecordBody, readAllRecords, readRecords } from '../record/index.js'

/*
 * No target lies in another: a publication of the outer one would take the inner one away, with its record, its hold and its history.
 * Records tell, above a path and below it.
 */

/** Another target, and its record's path. */
export interface Above {
  readonly path: string
  readonly record: string
}

/**
 * The innermost target among a directory and its ancestors. `directory`: its path without symbolic links. The first publication of a target
 * makes its lock, which stays: so one stat for each directory tells that it has no record to read.
 */
export async function targetAbove(fs: FileSystem, directory: string): Promise<Above | undefined> {
  for (let path = directory; path !== '/'; path = dirname(path)) {
    const names = namesFor(basename(path))
    if (!(await isThere(fs, join(dirname(path), names.lock)))) continue
    const above = await withOpen(fs, fs.openPath(dirname(path)), async (parent) => {
      const { valid } = await readRecords(fs, parent, basename(path), names)
      for (const record of valid) {
        if (record.kind === 'file' || letGoSince(record) !== undefined || !(await isTarget(fs, parent, record)))
          continue
        return { path, record: join(dirname(path), names.record(record.sequence)) }
      }
      return undefined
    })
    if (above) return above
  }
  return undefined
}

/** What this user may not look at may be another's target. */
async function isThere(fs: FileSystem, path: string): Promise<boolean> {
  try {
    return (await fs.lookPath(path)) !== undefined
  } catch (error) {
    if (codeOf(error) === 'ENOTDIR') return false
    throw error
  }
}

/**
 * Whether a record in this directory is of a target: not a copy, which names another directory, and not one that a removal takes away.
 * Where a reboot changes the numbers of inodes, a record of another boot counts.
 */
async function isTarget(fs: FileSystem, parent: Descriptor, record: RecordBody): Promise<boolean> {
  const { place, removing, boot } = record
  if (removing !== undefined) return false
  if (isSame(place.parent, identityOf(await fs.attributes(parent)))) return true
  return boot !== (await fs.bootId()) && !(await fs.mount(parent)).lasting
}

/** Whether it was let go, and the operator has left nothing there that would go with it. */
function isFinished(record: RecordBody, now: number): boolean {
  if (letGoSince(record) === undefined) return false
  const hasPast = (record.history?.generations ?? []).length > 0
  return !hasPast && !isInForce(record.hold, now) && !isPinned(record.pin, now)
}

export function insideAnother(path: string, above: Above): DurableWriteError {
  return nested(path, `${path} lies in ${above.path}, which holdfast publishes as a whole`, above)
}

function nested(path: string, problem: string, other: Above): DurableWriteError {
  return unfit(problem, {
    code: 'EEXIST',
    syscall: 'lstat',
    path,
    advice:
      `publish both as one directory, or choose another path for one of them; ` +
      `if nothing publishes ${other.path} any more, remove its record ${other.record}`,
  })
}

/** Where a target is. */
interface Beside {
  readonly fs: FileSystem
  readonly path: string
  readonly parent: Descriptor
  readonly name: string
}

/**
 * Refuses a directory in which another target lies. `tree`: its content; of a symbolic-link directory, that of `..data`. Opens nothing
 * where no name in it looks like a record.
 */
export async function refuseTargetBelow({ fs, path, parent, name }: Beside, tree: Tree | undefined): Promise<void> {
  const found = recordsIn(tree)
  if (found.length === 0) return
  await inScope(fs, async (scope) => {
    const opened = await scope.keep(fs.openDirectory(parent, name))
    const dataDirectory = await currentDataDirectory(fs, opened)
    const isInDataDirectory =
      dataDirectory !== undefined && tree?.entries.every((entry) => !entry.path.startsWith(dataDirectory))
    const root = isInDataDirectory === true ? await scope.keep(fs.openDirectory(opened, dataDirectory)) : opened
    await refuseRecords(fs, path, root, found)
  })
}

/** The paths in a tree that have a name as records have. */
function recordsIn(tree: Pick<Tree, 'entries'> | undefined): string[] {
  const entries = tree?.entries.filter(({ path, type }) => type === 'file' && recordPattern.test(nameOf(path)))
  return entries?.map((entry) => entry.path) ?? []
}

/** A service that owns its directory in a target, or may write there, can make any name in it: that stops no publication of the target. */
function isOthers({ uid, mode }: Attributes, fs: FileSystem): boolean {
  return (uid !== 0 && uid !== fs.user.uid) || (mode & (writableByAll | writableByGroup)) !== 0
}

async function refuseRecords(fs: FileSystem, path: string, root: Descriptor, found: readonly string[]): Promise<void> {
  await inTree(fs, root, async (directories) => {
    for (const record of found) {
      const inner = await directories.use(parentOf(record), async (holder) => {
        for (const body of await readAllRecords(fs, holder, isOthers)) {
          const isOfIt = namesFor(body.name).sequenceOf(nameOf(record)) !== undefined
          if (isOfIt && !isFinished(body, fs.now()) && (await isTarget(fs, holder, body)))
            return join(path, parentOf(record), body.name)
        }
        return undefined
      })
      if (inner === undefined) continue
      const problem = `${inner}, which holdfast publishes by itself, lies in ${path}`
      throw nested(path, problem, { path: inner, record: join(path, record) })
    }
  })
}
