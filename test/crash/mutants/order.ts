import { basename, dirname } from 'node:path'
import { distancesFrom } from '../../docs/import-graph.js'
import { knownTimes, type Times } from '../../runner/schedule.js'
import { ownTest, testsOf } from '../../tested.js'
import type { Item } from './battery.js'

/** The rules that hold in every scene: they notice most of what changes a step. */
const broadest = 'test/durable/calls.test.ts'

/**
 * Seconds. What takes more, and is not named for the file, stands behind all that is quick: three of four tests, which take a sixth of
 * the time of all.
 */
const quick = 2.5
/** Of an untimed item. */
const unknown = 1

const wordsOf = (path: string): string[] =>
  basename(path)
    .replace(/(\.test)?\.ts$/, '')
    .split('-')

/** How near its name is to that of a file. */
function tierOf({ name, isTest }: Item, file: string, named: ReadonlySet<string>): number {
  if (name === ownTest(file)) return 0
  if (named.has(name)) return 1
  if (!isTest) return 5
  const words = wordsOf(file)
  if (wordsOf(name).some((word) => words.includes(word))) return 2
  return name === broadest ? 3 : 4
}

/** So many tests speak of a file outside the core. */
const nearAtMost = 12

/** Of those, only what speaks of the file: named for it, of its room, or with a word of its name or few imports away; in this order. */
export function nearest(items: readonly Item[], file: string, times: Times = knownTimes()): Item[] {
  const named = new Set(testsOf(file))
  const room = `${dirname(file).replace(/^src/, 'test')}/`
  const placeOf = (item: Item): number => {
    const tier = tierOf(item, file, named)
    if (tier <= 1) return 0
    if (item.name.startsWith(room)) return 1
    return tier === 2 || (distancesFrom(item.name).get(file) ?? Infinity) <= 2 ? 2 : 3
  }
  return inOrder(items, file, times)
    .map((item) => ({ item, place: placeOf(item) }))
    .filter(({ place }) => place < 3)
    .sort((a, b) => a.place - b.place)
    .slice(0, nearAtMost)
    .map(({ item }) => item)
}

/** By the first number that differs. */
function compare(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((number, index) => number !== b[index])
  return at < 0 ? 0 : (a[at] ?? 0) - (b[at] ?? 0)
}

/**
 * What a mutant of this file is put before, the most promising first, as far as names, imports and the last runs say: the test of its name,
 * or else those of its users or of its row in test/README.md, those that share a word with its name, then the others, and the model disk; the quickest first, and of
 * two those with fewer imports between. Leaves out a test whose imports do not lead to the file. Only a run shows which of them pass the
 * mutant: to measure that costs as much.
 */
export function inOrder(items: readonly Item[], file: string, times: Times = knownTimes()): Item[] {
  const named = new Set(testsOf(file))
  return items
    .flatMap((item) => {
      const distance = item.isTest ? distancesFrom(item.name).get(file) : 0
      const tier = tierOf(item, file, named)
      if (tier > 1 && distance === undefined) return []
      const seconds = times[item.name] ?? unknown
      return [{ item, key: [tier > 1 && seconds > quick ? 1 : 0, tier, seconds, distance ?? 0] }]
    })
    .sort((a, b) => compare(a.key, b.key))
    .map(({ item }) => item)
}
