import { readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { project } from '../../project.js'
import type { Verdict } from './answer.js'
import type { Mutant, Source } from './mutants.js'
import { hashOf } from './battery.js'
import { equivalents, ofRooms } from './equivalents.js'
import { namesIn } from './listed.js'
import { inPart, type Result } from './results.js'

interface Counts {
  readonly mutants: number
  readonly killed: number
  /** Those that every test lets live. */
  readonly survived: number
  /** Those at which the tests hang or break, which is no kill. */
  readonly unjudged: number
  readonly equivalent: number
  readonly untried: number
}

export function countsOf(sources: readonly Source[], results: ReadonlyMap<string, Result>): Counts {
  const same = new Set(namesIn(equivalents))
  const all = sources.flatMap(({ mutants }) => mutants.map(({ id }) => id))
  const equivalent = all.filter((id) => same.has(id)).length
  const verdicts = all.filter((id) => !same.has(id)).map((id) => results.get(id)?.verdict)
  const count = (...wanted: (string | undefined)[]): number => verdicts.filter((one) => wanted.includes(one)).length
  return {
    mutants: all.length,
    killed: count('killed'),
    survived: count('survived'),
    unjudged: count('hangs', 'breaks'),
    equivalent,
    untried: count(undefined),
  }
}

/** Per cent of those that were tried and are no equivalents; what hangs or breaks is not killed. */
export function score({ killed, survived, unjudged }: Counts): string {
  const tried = killed + survived + unjudged
  return tried === 0 ? '' : `${((100 * killed) / tried).toFixed(1)} %`
}

const head = ['file', 'mutants', 'killed', 'survived', 'hangs or breaks', 'equivalent', 'untried', 'score']

function row(name: string, counts: Counts): string[] {
  const { mutants, killed, survived, unjudged, equivalent, untried } = counts
  return [name, ...[mutants, killed, survived, unjudged, equivalent, untried].map(String), score(counts)]
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0), 3))
  const line = (cells: readonly string[]): string => {
    const padded = cells.map((cell, column) =>
      column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
    )
    return `| ${padded.join(' | ')} |`
  }
  const [first = [], ...rest] = rows
  const rule = widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`))
  return [line(first), line(rule), ...rest.map(line)].join('\n')
}

/** The sources that hold mutants, by their names: where one stands is no part of the score. */
function fileNames(sources: readonly Source[]): string[] {
  return [...new Set(sources.filter(({ mutants }) => mutants.length > 0).map(({ file }) => basename(file)))].sort()
}

const page = join(project, 'docs/mutation-score.md')
const rooms = /^## Outside the core\n[^]*?(?=^## |$(?![^]))/m

/** The room of a source: its first folder, and `src` for what stands in none. */
const roomOf = (file: string): string => /^(?:src\/)?([^/]+)\//.exec(file)?.[1] ?? 'src'

/** Writes the table by room into docs/mutation-score.md: of the mutants that the program still has, those that were tried. */
export function writeRooms(sources: readonly Source[], kept: ReadonlyMap<string, Result>, seed: string): void {
  const outside = sources.filter(({ mutants }) =>
    mutants.some(({ id }) => kept.has(id) || namesIn(ofRooms).includes(id)),
  )
  const same = new Set(namesIn(ofRooms))
  const rowOf = (name: string, mutants: readonly Mutant[]): string[] => {
    const equivalent = mutants.filter(({ id }) => same.has(id)).length
    const verdicts = mutants
      .filter(({ id, context }) => !same.has(id) && kept.get(id)?.hash === hashOf(context))
      .map(({ id }) => kept.get(id)?.verdict)
    const count = (one: Verdict): number => verdicts.filter((verdict) => verdict === one).length
    const [killed, breaks, hangs, survived] = [count('killed'), count('breaks'), count('hangs'), count('survived')]
    const noticed = `${((100 * (verdicts.length - survived)) / Math.max(1, verdicts.length)).toFixed(1)} %`
    return [
      name,
      ...[mutants.length, verdicts.length, killed, breaks, hangs, survived, equivalent].map(String),
      noticed,
    ]
  }
  const names = [...new Set(outside.map(({ file }) => roomOf(file)))].sort()
  const mutantsIn = (name: string): Mutant[] =>
    sources.filter(({ file }) => roomOf(file) === name).flatMap(({ mutants }) => mutants)
  const rows = names.map((name) => rowOf(name, mutantsIn(name)))
  const text = `## Outside the core

Mutants that were drawn and tried, by room, the last by seed ${seed}; a mutant that has changed since then counts no more, and one that only
some of its tests had let live when the time was over does not count. Noticed are those that an assertion kills, that break a test, or at
which one ends by its time.

${table([['room', 'mutants', 'tried', 'killed', 'break', 'by time', 'survived', 'equivalent', 'noticed'], ...rows, rowOf('all', names.flatMap(mutantsIn))])}

`
  const before = readFileSync(page, 'utf8')
  writeFileSync(
    page,
    rooms.test(before) ? before.replace(rooms, () => text) : before.replace(/^## /m, () => `${text}## `),
  )
}

/** Writes `docs/mutation-score.md`, which holds the score of the last full run. */
export function writeSummary(sources: readonly Source[], results: ReadonlyMap<string, Result>): void {
  const rows = fileNames(sources).map((name) => {
    const ofThis = sources.filter(({ file }) => basename(file) === name)
    return row(`\`${name}\``, countsOf(ofThis, results))
  })
  const total = row('all', countsOf(sources, results))
  const partly = [...results.values()].filter(({ verdict, hash }) => verdict === 'survived' && hash === inPart).length
  const reasons = equivalents.map(({ reason, mutants }) => `- ${reason} (${mutants.length})`)
  const text = `# Mutation score

Written by \`npm run test:mutants\`, which makes one small change at a time to the sources below and runs the tests that come by it.
A mutant is killed when an assertion fails, or the model disk reports a violation. One at which the tests hang, or break without
an assertion, is not: most of the former take away what ends a loop or a wait, and most of the latter a value that the next line needs.
The score is the share of killed mutants among those that were tried and are not equivalent.
The figures are those of the last full run, and of the program as it was then. \`npm run test:crash\` draws mutants of the program as it
is, and fails where no test notices one that is not listed below.

Of those that survived, ${partly} were put before the most promising tests only: the next run puts them before all that come by them.

${table([head, ...rows, total])}

${rooms.exec(readFileSync(page, 'utf8'))?.[0] ?? ''}## Equivalent mutants

No test can tell these from the program; \`test/crash/mutants/equivalents.ts\` names each.

${reasons.length > 0 ? reasons.join('\n') : 'None are listed yet.'}
`
  writeFileSync(page, text)
}
