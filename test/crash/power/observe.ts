/** Looks at a mounted file system: which generation a target holds, and what lies about that should not. */
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { directoryMode, filesOf, wholeFile, type Target } from './targets.js'

/** undefined if the target is exactly this generation, else what differs. */
export function difference(mountPoint: string, target: Target, generation: number): string | undefined {
  return wantedDifference(mountPoint, target, filesOf(target, generation))
}

/** The same of these files; none: it must not be there. */
export function wantedDifference(
  mountPoint: string,
  target: Target,
  wanted: ReturnType<typeof filesOf>,
): string | undefined {
  const path = join(mountPoint, target.path)
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (wanted.size === 0) return found ? 'it exists' : undefined
  if (!found) return 'it is missing'
  if (target.kind === 'file' || target.kind === 'pod') return fileDifference(path, wholeFile, target, wanted)
  if (target.kind === 'directory') return treeDifference(path, target, wanted)
  const data = lstatSync(join(path, '..data'), { throwIfNoEntry: false })
  if (!data?.isSymbolicLink()) return '..data is no link'
  return treeDifference(join(path, readlinkSync(join(path, '..data'))), target, wanted)
}

/** undefined if the directory holds exactly these files. */
export function treeDifference(root: string, target: Target, wanted: ReturnType<typeof filesOf>): string | undefined {
  const missing = new Set(wanted.keys())
  const directories = new Set<string>()
  for (const name of wanted.keys()) {
    const parts = name.split('/')
    for (let length = 1; length < parts.length; length++) directories.add(parts.slice(0, length).join('/'))
  }
  const look = (name: string): string | undefined => {
    const stat = lstatSync(join(root, name), { throwIfNoEntry: false })
    if (!stat?.isDirectory()) return `${name || 'it'} is no directory`
    if ((stat.mode & 0o7777) !== directoryMode) return `${name || 'it'} has mode ${stat.mode.toString(8)}`
    if (isOther(stat, target)) return `${name || 'it'} belongs to ${stat.uid}:${stat.gid}`
    for (const entry of readdirSync(join(root, name))) {
      const inner = name === '' ? entry : `${name}/${entry}`
      let problem: string | undefined
      if (directories.delete(inner)) problem = look(inner)
      else if (missing.delete(inner)) problem = fileDifference(join(root, inner), inner, target, wanted)
      else problem = `${inner} is not of it`
      if (problem !== undefined) return problem
    }
    return undefined
  }
  const problem = look('')
  if (problem !== undefined) return problem
  const [gone] = [...directories, ...missing]
  return gone === undefined ? undefined : `${gone} is missing`
}

function fileDifference(
  path: string,
  name: string,
  target: Target,
  wanted: ReturnType<typeof filesOf>,
): string | undefined {
  const file = wanted.get(name)
  const stat = lstatSync(path)
  if (!file || !stat.isFile()) return `${name} is no file`
  const content = readFileSync(path)
  const called = name === wholeFile ? 'it' : name
  if (!content.equals(file.content)) {
    return `${called} has ${content.length} bytes, ${content.every((byte) => byte === 0) ? 'all zero' : 'not those'} of ${file.content.length}`
  }
  if ((stat.mode & 0o7777) !== file.mode) return `${called} has mode ${(stat.mode & 0o7777).toString(8)}`
  if (isOther(stat, target)) return `${called} belongs to ${stat.uid}:${stat.gid}`
  return undefined
}

function isOther({ uid, gid }: { uid: number; gid: number }, { owner }: Target): boolean {
  return uid !== (owner?.uid ?? 0) || gid !== (owner?.gid ?? 0)
}

/** In symlink mode, names of a committed generation are links into ..data, and there is one generation. */
export function linkDifference(mountPoint: string, target: Target, generation: number): string | undefined {
  if (target.kind !== 'symlink') return undefined
  const path = join(mountPoint, target.path)
  const links = new Set([...filesOf(target, generation).keys()].map((name) => name.split('/', 1)[0] ?? ''))
  if (links.size === 0) return undefined
  const data = readlinkSync(join(path, '..data'))
  for (const entry of readdirSync(path)) {
    if (entry === '..data' || entry === data) continue
    if (!links.delete(entry)) return `${entry} is left over`
    if (readlinkSync(join(path, entry)) !== `..data/${entry}`) return `${entry} leads elsewhere`
  }
  return links.size === 0 ? undefined : `there is no link ${[...links].join(', ')}`
}

/** Names that both generations have must lead to content at every instant. */
export function brokenLink(mountPoint: string, target: Target, generations: readonly number[]): string | undefined {
  if (target.kind !== 'symlink' || generations.includes(0)) return undefined
  const [first = new Set<string>(), ...rest] = generations.map(
    (generation) => new Set(filesOf(target, generation).keys()),
  )
  for (const name of first) {
    if (!rest.every((names) => names.has(name))) continue
    try {
      readFileSync(join(mountPoint, target.path, name))
    } catch (error) {
      return `${name}: ${(error as Error).message}`
    }
  }
  return undefined
}

/** What the program keeps beside targets once nothing is going on: a lock and one record each. Names of everything else. */
export function leftovers(mountPoint: string, targets: readonly Target[]): string[] {
  const own = /^\.holdfast-([0-9a-f]{16})(\.lock|\.[0-9]+|-[0-9a-f]{16}|\.[0-9]+-[0-9a-f]{16})$/
  const left: string[] = []
  for (const parent of new Set(targets.map(({ path }) => join(mountPoint, path, '..')))) {
    const records = new Map<string, number>()
    // Which of those may stay, life.ts says.
    const keepsEarlier = targets.some(({ path, life }) => life !== undefined && join(mountPoint, path, '..') === parent)
    for (const entry of readdirSync(parent)) {
      const [, id = '', suffix = ''] = own.exec(entry) ?? []
      if (id === '') {
        if (entry.startsWith('.')) left.push(entry)
      } else if (suffix.startsWith('-')) left.push(entry)
      else if (suffix.includes('-')) left.push(...(keepsEarlier ? [] : [entry]))
      else if (suffix !== '.lock') records.set(id, (records.get(id) ?? 0) + 1)
    }
    for (const [id, count] of records) if (count !== 1) left.push(`${count} records of ${id}`)
  }
  return left
}
