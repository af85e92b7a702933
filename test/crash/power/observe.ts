/** Looks at a mounted file system: which generation a target holds, and what lies about that should not. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { differenceOf, faultOfLinks } from '../judge/contents.js'
import { contentAt, dataOf, namesInto, textOf } from '../judge/directory.js'
import { directoryMode, filesOf, type Target, type WantedFile, wholeFile } from './targets.js'

/** A target's content in a generation, as the judge has it; '': it is not there. */
export function textFor(target: Target, wanted: ReadonlyMap<string, WantedFile>): string {
  const { uid, gid } = target.owner ?? { uid: 0, gid: 0 }
  const directories = [...wanted.keys()].flatMap((name) => {
    const parts = name === wholeFile ? [] : name.split('/')
    return parts.map((_, length) => parts.slice(0, length).join('/'))
  })
  const directory = { type: 'directory', mode: directoryMode, uid, gid, data: '' } as const
  const files = [...wanted].map(
    ([name, { content, mode }]) => [name, { type: 'file', mode, uid, gid, data: content.toString('latin1') }] as const,
  )
  return textOf([...[...new Set(directories)].map((name) => [name, directory] as const), ...files])
}

/** undefined if the target is exactly this generation, else how it differs. */
export function difference(mountPoint: string, target: Target, generation: number): string | undefined {
  return differenceAt(join(mountPoint, target.path), target, filesOf(target, generation))
}

/** The same of these files at a path; none: it must not be there. */
export function differenceAt(
  path: string,
  target: Target,
  wanted: ReadonlyMap<string, WantedFile>,
): string | undefined {
  return differenceOf(contentAt(path), textFor(target, wanted))
}

/** The fault of the names that lead to content, where it is the first of these generations, and may be the others, too. */
export function linkDifference(mountPoint: string, target: Target, generations: readonly number[]): string | undefined {
  if (target.kind !== 'symlink') return undefined
  const path = join(mountPoint, target.path)
  const [own = new Set<string>(), ...others] = generations.map((one) => {
    return new Set([...filesOf(target, one).keys()].map((name) => name.split('/', 1)[0] ?? ''))
  })
  if (own.size === 0) return undefined
  const links = namesInto(path)
  const left = readdirSync(path).find((name) => !links.has(name) && name !== '..data' && name !== dataOf(path))
  return (
    faultOfLinks(target.path, links, own, others) ??
    (left !== undefined && others.length === 0 ? `${left} is left over, or leads elsewhere` : undefined)
  )
}
