import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { project } from '../../project.js'
import type { Verdict } from './answer.js'

/** The result for a mutant. */
export interface Result {
  readonly verdict: Verdict
  /** Its killer; of a mutant that hangs or breaks, the place. */
  readonly by: string
  /** Of the inputs of the answer. */
  readonly hash: string
}

/** The hash of an answer for which not everything was tried. */
export const inPart = '-'

/** It goes with the build: an aborted run goes on from here, and a new clone begins anew. */
const kept = join(project, 'dist/.mutants-results.tsv')

/** The same for mutants that were drawn outside the core. */
export const keptOfRooms = join(project, 'dist/.mutants-rooms.tsv')

/** By the mutants' names. */
export function readResults(file = kept): Map<string, Result> {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch {
    return new Map()
  }
  const lines = text.split('\n').filter((line) => line !== '')
  return new Map(
    lines.map((line) => {
      const [id = '', verdict = 'survived', by = '', hash = ''] = line.split('\t')
      return [id, { verdict: verdict as Verdict, by, hash }]
    }),
  )
}

/** One line each, in the order of their names, so that a diff shows the changes. */
export function writeResults(results: ReadonlyMap<string, Result>, file = kept): void {
  const lines = [...results].sort(([a], [b]) => (a < b ? -1 : 1))
  writeFileSync(file, lines.map(([id, { verdict, by, hash }]) => `${id}\t${verdict}\t${by}\t${hash}\n`).join(''))
}
