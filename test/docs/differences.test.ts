import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { differences } from '../library-go/differences.js'
import { page, withTable } from '../library-go/table.js'
import { project } from '../project.js'
import { read } from './pages.js'

await t.test('the page has the table of differences that the cases use', async (t) => {
  const text = read(page)
  t.equal(withTable(text), text, 'node dist/test/library-go/write-table.js writes it')
})

await t.test('each row has a reason, and is shown by a case or by a test that exists', async (t) => {
  for (const { libraryGo, holdfast, why, shown, tested } of differences) {
    t.ok(holdfast !== '' && why !== '', libraryGo)
    t.ok((shown === undefined) !== (tested === undefined), `${libraryGo}: shown by cases, or by a test`)
    if (!tested) continue
    const [file, text] = tested
    t.match(readFileSync(join(project, file), 'utf8').replaceAll("\\'", "'"), text, `${libraryGo}: ${file}`)
  }
  t.equal(new Set(differences.map(({ libraryGo }) => libraryGo)).size, differences.length, 'no row stands there twice')
})
