import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { project } from '../project.js'
import { reached, typescriptFiles } from './import-graph.js'
import { read } from './pages.js'

/*
 * Each source file has a test of its own name, or stands in the table of test/README.md, which says where it is tested. So
 * whoever changes a rule finds its test, and a new file without one is noticed.
 */

const sources = [...typescriptFiles('src'), ...typescriptFiles('native')]

function hasOwnTest(source: string): boolean {
  const test = join('test', source.replace(/^src\//, '').replace(/\.ts$/, '.test.ts'))
  return existsSync(join(project, test)) && reached(test).has(source)
}

/** `a/{b,c}.ts` is a/b.ts and a/c.ts. */
function expand(pattern: string): string[] {
  const [, before = '', names, after = ''] = /^(.*)\{(.*)\}(.*)$/.exec(pattern) ?? []
  return names === undefined ? [pattern] : names.split(',').map((name) => `${before}${name.trim()}${after}`)
}

interface Row {
  readonly sources: readonly string[]
  /** None: types and constants, which the compiler checks. */
  readonly tests: readonly string[]
}

const rows: Row[] = read('test/README.md')
  .split('\n')
  .flatMap((line) => {
    const [, first = '', second = ''] = /^\| +(`(?:src|native)\/.*?) +\| +(.*?) +\|/.exec(line) ?? []
    if (first === '') return []
    const quoted = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].flatMap(([, path = '']) => expand(path))
    const tests = quoted(second)
    return [{ sources: quoted(first), tests }]
  })
const listed = new Set(rows.flatMap((row) => row.sources))

await t.test('each source file has a test of its name, or a row that says where it is tested', (t) => {
  t.ok(sources.length > 100, 'sources are found')
  t.same(
    sources.filter((source) => !listed.has(source) && !hasOwnTest(source)),
    [],
  )
  t.end()
})

await t.test('each row names files that exist, and tests that run them', (t) => {
  t.ok(rows.length > 10, 'rows are found')
  for (const row of rows) {
    const missing = [...row.sources, ...row.tests].filter((path) => !existsSync(join(project, path)))
    t.same(missing, [], `files of the row ${row.sources[0]}`)
    const run = new Set(row.tests.flatMap((test) => [...reached(test)]))
    if (row.tests.length > 0) {
      t.same(
        row.sources.filter((source) => !run.has(source)),
        [],
        `sources that ${row.tests.join(', ')} do not run`,
      )
    }
  }
  t.end()
})

await t.test('a file stands in one row, and not beside a test of its own name', (t) => {
  const all = rows.flatMap((row) => row.sources)
  t.same(
    all.filter((source, index) => all.indexOf(source) !== index),
    [],
  )
  t.same(
    all.filter((source) => hasOwnTest(source)),
    [],
  )
  t.end()
})
