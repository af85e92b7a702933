import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { project } from '../../project.js'

/**
 * What tells a wrong program from a right one: the tests named for the changed files, rules over played scenes, the same with a failure,
 * another publisher or an abort at each call, the model disk, generated histories and lives, and the calls of the real program under strace.
 */
export const oracles = ['unit', 'rules', 'failures', 'model', 'histories', 'calls'] as const
export type Oracle = (typeof oracles)[number]

/** Which oracles catch a mutation, by its name. */
export type Rows = ReadonlyMap<string, readonly Oracle[]>

const file = join(project, 'test/crash/oracles/rows.json')
export const page = join(project, 'docs/durability.md')

export function readRows(): Rows {
  const rows = JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>
  return new Map(Object.entries(rows).map(([name, by]) => [name, oracles.filter((one) => by.split(' ').includes(one))]))
}

/** Writes them, and their scores into the docs. */
export function writeRows(rows: Rows): void {
  const shown = Object.fromEntries([...rows].map(([name, by]) => [name, by.join(' ')]))
  writeFileSync(file, `${JSON.stringify(shown, undefined, 2)}\n`)
  const table = /(?<=^\| oracle .*\n\| -.*\n)(?:\|.*\n)+/m
  writeFileSync(
    page,
    readFileSync(page, 'utf8').replace(
      table,
      scores(rows)
        .map((line) => `${line}\n`)
        .join(''),
    ),
  )
}

/** How many mutations each oracle catches, and how many that no other one does. */
export function scores(rows: Rows): string[] {
  const all = [...rows.values()]
  const lines = oracles.map((oracle) => {
    const caught = all.filter((by) => by.includes(oracle))
    return `| ${oracle} | ${caught.length} of ${all.length} | ${caught.filter(({ length }) => length === 1).length} |`
  })
  return [...lines, `| none | ${all.filter(({ length }) => length === 0).length} of ${all.length} | |`]
}
