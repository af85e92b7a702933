import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { project } from '../project.js'
import { read } from './pages.js'

await t.test('the rooms of docs/architecture.md, and who may call whom, are those that the linter enforces', (t) => {
  const [, literal = ''] =
    /const rooms = (\{.*?^\})/ms.exec(readFileSync(join(project, 'eslint.config.js'), 'utf8')) ?? []
  // An object of names and lists of names, which YAML reads as JavaScript does.
  const rooms = parse(literal) as Record<string, string[]>
  t.ok(Object.keys(rooms).length >= 9, 'rooms are found')
  const page = read('docs/architecture.md')
  const table = page.slice(page.indexOf('## Rooms'), page.indexOf('## Five changes'))
  const shown = [...table.matchAll(/^\| `([\w/-]+)` +\| .*? +\| (.*?) +\|$/gm)].map(([, room = '', callees = '']) => [
    room,
    [...callees.matchAll(/`([^`]+)`/g)].map(([, callee]) => callee),
  ])
  t.same(Object.fromEntries(shown), rooms)
  t.end()
})
