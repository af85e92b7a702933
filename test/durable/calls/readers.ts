/* What those who read a disk find there: read from the model itself, and by the looks of the program. */
import { readRecord, readPublication } from '../../../src/durable/look/index.js'
import { readHistory } from '../../../src/durable/look/read-history.js'
import type { Publication } from '../../../src/durable/types.js'
import { codeOf } from '../../../src/errors.js'
import { nameBeside } from '../../crash/judge/names.js'
import { textOf, wholeOf } from '../../crash/model/content.js'
import type { Inode } from '../../crash/model/inode.js'
import { type ModelDisk, rootInode } from '../../crash/model/model-disk.js'
import { ModelProcess } from '../../crash/model/model-process.js'

/** A generation of the symlink form, and the link that is about to be renamed over `..data`: readers go through `..data`. */
const hiddenInside = /^(?:\.\.[0-9].*|\.\.data_tmp)$/

/** What readers come to, each with its path; of `..data` also what is behind it, at the same path. */
function* visible(disk: ModelDisk, { number, now } = disk.inode(rootInode), path = ''): Generator<[string, Inode]> {
  for (const name of now.entries.keys()) {
    const child = disk.child(number, name)
    if (child === undefined || name.startsWith('.holdfast-') || hiddenInside.test(name)) continue
    const behind = name === '..data' ? disk.child(number, child.now.data) : undefined
    for (const one of [...(behind ? [behind] : []), child]) {
      yield [`${path}/${name}`, one]
      if (one.type === 'directory') yield* visible(disk, one, `${path}/${name}`)
    }
  }
}

/** All that readers find, by its path: names that begin with `.holdfast-` are holdfast's alone. */
export function viewOf(disk: ModelDisk): Map<string, string> {
  const view = new Map<string, string>()
  for (const [path, inode] of visible(disk)) {
    const { mode, uid, gid, label, extended } = inode.now.attributes
    if (inode.type === 'directory') view.set(path, `d ${mode.toString(8)} ${uid}:${gid} ${label} ${extended}`)
    else view.set(path, path.endsWith('/..data') ? 'the link ..data' : textOf(disk, inode))
  }
  return view
}

/** The paths at which two views differ. New directories without any file are those that a publication makes above its target. */
export function differencesOf(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  const isEmpty = (path: string): boolean =>
    after.get(path)?.startsWith('d ') === true &&
    ![...after].some(([other, text]) => other.startsWith(`${path}/`) && !text.startsWith('d '))
  const paths = new Set([...before.keys(), ...after.keys()])
  return [...paths].filter(
    (path) => before.get(path) !== after.get(path) && !(before.get(path) === undefined && isEmpty(path)),
  )
}

/** The inodes that readers come to, with a path of each. */
export function visibleInodes(disk: ModelDisk): Map<number, string> {
  return new Map([...visible(disk)].map(([path, { number }]) => [number, path]))
}

/** What the program says of a target to those who ask: of its publication, its hold and its past. */
export interface Said {
  readonly publication: Partial<Publication> | string
  readonly hold: unknown
  readonly past: unknown
}

/** Answers that were given of equal disks: hundreds of plays leave the same one. */
const told = new Map<string, Promise<Said>>()
const toldAtMost = 2000

export function saidOf(disk: ModelDisk, path: string, user: ModelProcess['user']): Promise<Said> {
  const asked = [path, JSON.stringify(user), disk.hasMounts, wholeOf(disk)].join('\n')
  let said = told.get(asked)
  if (said === undefined) {
    if (told.size >= toldAtMost) told.clear()
    told.set(asked, (said = ask(disk, path, user)))
  }
  return said
}

async function ask(disk: ModelDisk, path: string, user: ModelProcess['user']): Promise<Said> {
  const fs = Object.assign(new ModelProcess(disk.fork()), { user })
  const quiet = <T>(look: Promise<T>): Promise<T | string> => look.catch((error: unknown) => String(codeOf(error)))
  const found = (await quiet(readPublication(fs, path))) ?? {}
  const history = await quiet(readHistory(fs, path))
  return {
    publication: typeof found === 'string' ? found : { ...found, settled: true, durable: true },
    hold: await quiet(readRecord(fs, path).then((said) => said?.hold)),
    past: Array.isArray(history) ? history.map(({ sequence, why, state }) => ({ sequence, why, state })) : history,
  }
}

/**
 * The part of it that no power cut may take. Hooks run at least once; old content may come back, and goes with the next run; that a move is
 * done is recorded again by the next run, which finds the old path gone.
 */
export function lastingOf({ publication, hold }: Said): object {
  if (typeof publication === 'string') return { publication, hold }
  const { pendingHooks: _, retired: __, pastSince: ___, differences = [], relocation, sequence, ...rest } = publication
  const said = { ...rest, differences: differences.filter(({ problem }) => problem !== 'unexpected'), hold }
  if (relocation?.state !== 'draining' && relocation?.state !== 'done') return { ...said, relocation, sequence }
  return { ...said, relocation: { from: relocation.from, state: 'draining or done' } }
}

/** Targets that have a record anywhere on the disk, and these. */
export function targetsOn(disk: ModelDisk, more: readonly string[] = []): string[] {
  const targets = new Set(more)
  const walk = (inode: Inode, path: string): void => {
    for (const [name] of inode.now.entries) {
      const child = disk.child(inode.number, name)
      if (child?.type === 'directory' && !name.startsWith('.holdfast-')) walk(child, `${path}/${name}`)
      if (child?.type !== 'file' || nameBeside(name).kind !== 'record') continue
      const named = /"name":"([^"]+)"/.exec(child.now.data)?.[1]
      if (named !== undefined) targets.add(`${path}/${named}`)
    }
  }
  walk(disk.inode(rootInode), '')
  return [...targets].sort()
}
