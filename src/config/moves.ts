import type { ReadDirectory } from './directory.js'
import { isWithin } from './paths.js'
import { quote } from '../quote.js'
import { reportUnfitTarget } from './target-path.js'
import type { OwnPath } from './targets.js'

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
