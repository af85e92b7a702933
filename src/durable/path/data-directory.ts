import type { Descriptor, FileSystem } from '../file-system.js'
import { readTree, type Tree } from './tree.js'
import type { Bound } from './open-directories.js'
import { ifThere } from './scope.js'

/*
 * The form that kubelet's volumes have (pkg/volume/util/atomic_writer.go): the target is a directory that stays, which holds data directories
 * `..SEQUENCE-RANDOM`, a link `..data` to the current one, and for each first path element NAME a link `NAME → ..data/NAME`.
 */

export const dataLink = '..data'
export const nextDataLink = '..data_tmp'

const dataDirectoryPattern = /^\.\.[1-9][0-9]{0,14}-[0-9a-f]{16}$/

export function dataDirectoryName(sequence: number, random: string): string {
  return `..${sequence}-${random}`
}

export function isDataDirectory(name: string): boolean {
  return dataDirectoryPattern.test(name)
}

/** The top-level names of a set of relative paths. */
export function topNames(paths: Iterable<string>): Set<string> {
  const names = new Set<string>()
  for (const path of paths) if (path !== '') names.add(path.split('/', 1)[0] ?? path)
  return names
}

/** Which data directory `..data` names; undefined where it is missing or leads elsewhere. */
export async function currentDataDirectory(fs: FileSystem, target: Descriptor): Promise<string | undefined> {
  const data = await fs.look(target, dataLink)
  if (data?.type !== 'symlink') return undefined
  const text = await fs.readLink(target, dataLink)
  return isDataDirectory(text) ? text : undefined
}

/** What the current data directory holds; undefined where there is none. */
export async function readDataDirectory(
  fs: FileSystem,
  target: Descriptor,
  labels: boolean,
  bound?: Bound,
): Promise<Tree | undefined> {
  const name = await currentDataDirectory(fs, target)
  if (name === undefined) return undefined
  return ifThere(fs, fs.openDirectory(target, name), (opened) => readTree(fs, opened, labels, bound))
}

/** Names in a target that may be beside those that belong there. Its owner can make any number. */
export const mostOthers = 128

/** The links of ours in the target, `NAME → ..data/NAME`: those of these names, and others among the first of all. */
export async function keyLinks(fs: FileSystem, target: Descriptor, names: Iterable<string>): Promise<Set<string>> {
  const links = new Set<string>()
  for (const name of new Set([...names, ...(await fs.list(target, mostOthers))])) {
    if (name.startsWith('..')) continue
    const entry = await fs.look(target, name)
    if (entry?.type === 'symlink' && (await fs.readLink(target, name)) === `${dataLink}/${name}`) links.add(name)
  }
  return links
}
