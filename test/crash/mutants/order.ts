import { basename, dirname } from 'node:path'
import { distancesFrom } from '../../docs/import-graph.js'
import { ownTest, testedRows } from '../../tested.js'
import type { Item } from './battery.js'

/** Every call that the core makes, in its order: it notices most of what changes a step. */
const broadest = 'test/durable/calls.test.ts'

const wordsOf = (path: string): string[] =>
  basename(path)
    .replace(/(\.test)?\.ts$/, '')
    .split('-')

/** The rooms of tests that put the core to the test, and little else: they take less time than those of whole commands. */
const ofTheCore = /^test\/(durable|native|crash)\//

type Rank = readonly [number, number]

/** Where it stands among those that a mutant of this file is put before; none where nothing leads from it to the file. */
function rankOf(item: Item, file: string, named: ReadonlySet<string>): Rank | undefined {
  if (item.name === ownTest(file)) return [0, 0]
  if (named.has(item.name)) return [1, 0]
  if (!item.isTest) return [7, 0]
  const distance = distancesFrom(item.name).get(file)
  if (distance === undefined) return undefined
  const words = wordsOf(file)
  const shared = wordsOf(item.name).filter((word) => words.includes(word)).length
  if (shared > 0) return [2, -shared]
  if (item.name === broadest) return [3, 0]
  if (dirname(item.name) === dirname(ownTest(file))) return [4, distance]
  return [ofTheCore.test(item.name) && ofTheCore.test(ownTest(file)) ? 5 : 6, distance]
}

/**
 * What a mutant of this file is put before, the most promising first, as far as names and imports say: the test of its name, those
 * that test/README.md names, those that share a word with its name, then those of its room and the others by how many imports stand
 * between; at last the model disk. Which of them come by the mutant is found by putting it before them: measuring that costs as much.
 */
export function inOrder(items: readonly Item[], file: string): Item[] {
  const named = new Set(
    testedRows()
      .filter(({ sources }) => sources.includes(file))
      .flatMap(({ tests }) => tests),
  )
  return items
    .flatMap((item) => {
      const rank = rankOf(item, file, named)
      return rank === undefined ? [] : [{ item, rank }]
    })
    .sort((a, b) => a.rank[0] - b.rank[0] || a.rank[1] - b.rank[1])
    .map(({ item }) => item)
}
