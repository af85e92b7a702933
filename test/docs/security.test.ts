/** docs/security.md: each sentence of its tables names a test, and that test is there. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { project } from '../project.js'
import { read } from './pages.js'

const page = 'docs/security.md'

/** The fault of one row of a table; undefined: its last cell names a test file and a part of the name of a test in it. */
function faultOf(row: string): string | undefined {
  const [, file = '', title = ''] = /\| `(test\/\S+\.test\.ts)` "([^"]+)" +\|$/.exec(row) ?? []
  if (file === '') return `names no test: ${row}`
  if (!existsSync(join(project, file))) return `${file}: no such file`
  // A title in the source, in the quotes of its language.
  const names = [...readFileSync(join(project, file), 'utf8').matchAll(/\btest\(\s*(['"`])(.*?[^\\])\1/gs)]
  return names.some(([, , name = '']) => name.includes(title)) ? undefined : `${file} has no test named "${title}"`
}

/** The rows of the page's tables, without their heads. */
function rowsOf(text: string): string[] {
  const lines = text.split('\n')
  return lines.filter((line, index) => {
    const isHead = /^\| -+/.test(lines[index + 1] ?? '')
    return line.startsWith('| ') && !/^\| -+/.test(line) && !isHead
  })
}

await t.test('each sentence of the security model names a test that is there', async (t) => {
  const rows = rowsOf(read(page))
  t.ok(rows.length > 40, `${rows.length} rows`)
  t.same(
    rows.flatMap((row) => faultOf(row) ?? []),
    [],
  )
})

await t.test(
  'a sentence without a test, with a file that is none, and with a name that is none, is a fault',
  async (t) => {
    t.match(faultOf('| cannot do anything |  |'), /names no test/)
    t.match(faultOf('| x | `test/none.test.ts` "y" |'), /no such file/)
    t.match(faultOf('| x | `test/trust.test.ts` "no such name" |'), /has no test named "no such name"/)
    t.equal(faultOf('| x | `test/trust.test.ts` "read-only here has no writers" |'), undefined)
  },
)

await t.test('each actor has a section with a table', async (t) => {
  const sections = read(page).split(/^## /m).slice(1)
  for (const actor of ['local user', 'tenant', 'labeller', 'stolen token', 'proxy', 'Root in a container']) {
    const section = sections.find((text) => text.split('\n', 1)[0]?.includes(actor))
    t.ok(section !== undefined && rowsOf(section).length > 2, actor)
  }
  t.match(read('SECURITY.md'), /\(docs\/security\.md\)/)
  t.match(read('docs/README.md'), /\(security\.md\)/)
})
