import { existsSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import t from 'tap'
import { project } from '../project.js'
import { pages, projectPathsIn, read } from './pages.js'

/** A changelog names former files; built files need not be there yet. */
const history = 'CHANGELOG.md'

/** A `*` in the last part stands for any name; a table of tests may leave out `.test.ts`. */
function exists(path: string): boolean {
  if (!path.includes('*')) return [path, `${path}.test.ts`].some((name) => existsSync(join(project, name)))
  const directory = join(project, dirname(path))
  if (!existsSync(directory)) return false
  const [before = '', after = ''] = basename(path).split('*')
  return readdirSync(directory).some((name) => name.startsWith(before) && name.endsWith(after))
}

await t.test('every file of the project that a page names exists', async (t) => {
  const named = pages()
    .filter((page) => page !== history)
    .flatMap((page) => projectPathsIn(read(page)).map((path) => ({ page, path })))
  t.ok(named.length > 20, 'paths are found')
  t.same(
    named.filter(({ path }) => !exists(path)).map(({ page, path }) => `${page}: ${path}`),
    [],
  )
})

await t.test('paths are found in prose, code and diagrams, and not in links or paths of the node', async (t) => {
  const text =
    'See `src/durable/publish/publish.ts`, native/aio.ts. [link](docs/none.md) /etc/test/x ../deploy/base `test/crash/*.ts` src/cli/NAME.ts'
  t.same(projectPathsIn(text), ['src/durable/publish/publish.ts', 'native/aio.ts', 'test/crash/*.ts'])
  t.notOk(exists('src/none.ts'))
  t.notOk(exists('src/none/*.ts'))
  t.notOk(exists('src/*.none'))
  t.ok(exists('src/*.ts'))
})
