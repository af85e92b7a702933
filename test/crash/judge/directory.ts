/** Reads a target for the judge: of a real file system, or what another engine has seen. */
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { leftIn, leftInside } from './leftovers.js'

export interface Entry {
  readonly type: 'file' | 'directory' | 'symlink'
  /** Permission bits. */
  readonly mode: number
  readonly uid: number
  readonly gid: number
  /** A file's bytes, one character each; a link's text. */
  readonly data: string
}

/** A tree by relative path, '' for its root, as one text: equal texts are equal trees. */
export function textOf(entries: Iterable<readonly [string, Entry]>): string {
  const lines = [...entries].map(([path, { type, mode, uid, gid, data }]) => {
    // A link has no mode that a call could set.
    const permissions = type === 'symlink' ? '' : ` ${mode.toString(8)}`
    return `${path} ${type[0]}${permissions} ${uid}:${gid} <${data}>`
  })
  return lines.sort().join('\n')
}

/** The entries of a real tree by relative path, with the device and inode of each: equal for two names of one. */
export function* entriesAt(path: string, name = ''): Generator<[string, Entry & { readonly identity: string }]> {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return
  const type = stats.isDirectory() ? 'directory' : stats.isSymbolicLink() ? 'symlink' : 'file'
  const data = type === 'directory' ? '' : type === 'symlink' ? readlinkSync(path) : readFileSync(path, 'latin1')
  const { uid, gid, mode, dev, ino } = stats
  yield [name, { type, mode: mode & 0o7777, uid, gid, data, identity: `${dev}:${ino}` }]
  if (type === 'directory')
    for (const inner of readdirSync(path)) yield* entriesAt(join(path, inner), join(name, inner))
}

/** The content of a target as readers find it, in the form with links behind `..data`; '': there is none. */
export function contentAt(path: string): string {
  return textOf(entriesAt(dataOf(path) === undefined ? path : `${path}/..data/`))
}

/** Where the `..data` of a target in the form of links leads. */
export function dataOf(path: string): string | undefined {
  return linksAt(path, (name) => name === '..data')[0]?.text
}

/** The symbolic links in a directory. */
function linksAt(path: string, isAsked: (name: string) => boolean): { name: string; text: string }[] {
  if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return []
  const links = readdirSync(path, { withFileTypes: true }).filter((one) => one.isSymbolicLink() && isAsked(one.name))
  return links.map(({ name }) => ({ name, text: readlinkSync(join(path, name)) }))
}

/** The names in a target of that form that lead to its content. */
export function namesInto(path: string): Set<string> {
  const links = linksAt(path, (name) => name !== '..data').filter(({ name, text }) => text === `..data/${name}`)
  return new Set(links.map(({ name }) => name))
}

/**
 * What finished runs leave of targets below a directory, beside them and inside those of the form with links; `targets`: how many earlier
 * contents each may keep.
 */
export function leftBelow(root: string, targets: ReadonlyMap<string, number>): string[] {
  const parents = new Set([...targets.keys()].map((target) => dirname(target)))
  const beside = [...parents].flatMap((parent) => {
    const names = readdirSync(join(root, parent))
    const here = [...targets].filter(([target]) => dirname(target) === parent)
    const records = (target: string): number[] => [names.includes(basename(target)) ? 1 : 0]
    return leftIn(names, new Map(here.map(([one, generations]) => [one, { records: records(one), generations }])))
  })
  const inside = [...targets.keys()].map((target) => {
    const data = dataOf(join(root, target))
    return data === undefined ? undefined : leftInside(target, readdirSync(join(root, target)), data)
  })
  return [...beside, ...inside.filter((one) => one !== undefined)]
}
