/** Checks that need all of the configuration: targets against each other, against the system, and against holdfast's own paths. */
import { dirname } from 'node:path'
import type { ReadDirectory } from './directory.js'
import { isWithin } from './paths.js'
import { quote } from '../quote.js'
import { reportUnfitTarget } from './target-path.js'

/** Paths that holdfast itself needs, which no publication may sweep away. */
export interface OwnPath {
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
