import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { project } from '../project.js'
import { ownTest, testedRows, testsByImports } from '../tested.js'
import { reached, typescriptFiles } from './import-graph.js'

/*
 * Each source file has a test of the same name; or a test imports it, or has the name of a source that does; or the table of test/README.md
 * has a row, which names its tests. So the author of a change finds the tests of a rule, and a new file without one fails this test.
 */

const sources = [...typescriptFiles('src'), ...typescriptFiles('native'), ...typescriptFiles('torture')]

function hasOwnTest(source: string): boolean {
  const test = ownTest(source)
  return existsSync(join(project, test)) && reached(test).has(source)
}

const hasTest = (source: string): boolean => hasOwnTest(source) || testsByImports(source).length > 0

const rows = testedRows()
const listed = new Set(rows.flatMap((row) => row.sources))

await t.test(
  'each source file has a test of its name, a test of its users, or a row that says where it is tested',
  async (t) => {
    t.ok(sources.length > 100, 'sources are found')
    t.same(
      sources.filter((source) => !listed.has(source) && !hasTest(source)),
      [],
    )
  },
)

await t.test('each row names files that exist, and tests that run them', async (t) => {
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
})

await t.test('a file has one row in the table, and none beside a test that its name or its users tell', async (t) => {
  const all = rows.flatMap((row) => row.sources)
  t.same(
    all.filter((source, index) => all.indexOf(source) !== index),
    [],
  )
  t.same(
    all.filter((source) => hasTest(source)),
    [],
  )
})
