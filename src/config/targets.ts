/** Checks that need all of the configuration: targets against each other, against the system, and against holdfast's own paths. */
import { dirname } from 'node:path'
import type { ReadDirectory } from './directory.js'
import { isWithin } from './paths.js'
import { quote } from '../quote.js'
import { reportUnfitTarget } from './target-path.js'

/** Paths that holdfast itself needs, which no publication may sweep away. */
interface OwnPath {
  /** `stateDirectory`, as it is called in messages. */
  readonly name: string
  readonly path: string
}

export function reportTargetProblems(directories: readonly ReadDirectory[], own: readonly OwnPath[]): void {
  const byPath = new Map<string, ReadDirectory>()
  for (const directory of directories) {
    const { at, configuration } = directory
    const { path } = configuration
    if (reportUnfitTarget(at, path)) continue
    for (const { name, path: needed } of own) {
      if (isWithin(needed, path)) at.wrong(`${quote(path)} holds ${name}, ${quote(needed)}`, 'it would be replaced too')
    }
    const first = byPath.get(path)
    if (first !== undefined) {
      at.wrong(
        `${quote(path)} is the target of ${first.configuration.place} already`,
        'put all the contents into one directory',
      )
    } else byPath.set(path, directory)
  }
  // Only now are all of them known: the inner one of two may come first.
  for (const { at, configuration } of directories) {
    const outer = ancestors(configuration.path).find((ancestor) => byPath.has(ancestor))
    const holder = outer === undefined ? undefined : byPath.get(outer)
    if (holder === undefined) continue
    const message = `${quote(configuration.path)} is inside the target of ${holder.configuration.place}`
    at.wrong(message, 'put all the contents into one directory, with into')
  }
}

function ancestors(path: string): string[] {
  const found = []
  for (let above = dirname(path); above !== '/'; above = dirname(above)) found.push(above)
  return found
}

/** Checks `movedFrom`: a move removes its source in the end, so no directory may use that any more, and it leads to one path only. */
export function reportMoveProblems(directories: readonly ReadDirectory[], own: readonly OwnPath[]): void {
  const known = new Map<string, string>()
  for (const { configuration, movedFromAt: at } of directories) {
    const { path, place, movedFrom } = configuration
    if (movedFrom === undefined || at === undefined) continue
    const from = movedFrom.path
    if (reportUnfitTarget(at, from)) continue
    const first = known.get(from)
    if (first !== undefined) at.wrong(`${quote(from)} moves to ${first} already`, 'it can move to one path only')
    else known.set(from, place)
    if (from === path) at.wrong(`${quote(from)} is the path itself`, 'leave out movedFrom, or name the old path')
    else if (isWithin(from, path) || isWithin(path, from)) {
      const message = `${quote(from)} and the new path ${quote(path)} lie one in the other`
      at.wrong(message, 'choose a new path beside it, and move in two steps')
    }
    for (const other of directories) {
      if (other.configuration === configuration || !overlaps(from, other.configuration.path)) continue
      const { path: theirs, place: there, movedFrom: back } = other.configuration
      if (theirs === from && back?.path === path)
        at.wrong(`${place} and ${there} move to each other`, 'name one of them only')
      else if (theirs === from)
        at.wrong(`${quote(from)} is still the target of ${there}`, 'what moves is no target of its own: remove that')
      else at.wrong(`${quote(from)} and the target of ${there} lie one in the other`, 'it would be removed too')
    }
    for (const { name, path: needed } of own) {
      if (isWithin(needed, from)) at.wrong(`${quote(from)} holds ${name}, ${quote(needed)}`, 'it would be removed too')
    }
  }
}

function overlaps(a: string, b: string): boolean {
  return isWithin(a, b) || isWithin(b, a)
}
