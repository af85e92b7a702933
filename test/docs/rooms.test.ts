import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { project } from '../project.js'
import { read } from './pages.js'

await t.test(
  'the rooms of docs/architecture.md, and who may call whom, are those that the linter enforces',
  async (t) => {
    const [, literal = ''] =
      /const rooms = (\{.*?^\})/ms.exec(readFileSync(join(project, 'eslint.config.js'), 'utf8')) ?? []
    // An object of names and lists of names, which YAML reads as JavaScript does.
    const rooms = parse(literal) as Record<string, string[]>
    t.ok(Object.keys(rooms).length >= 9, 'rooms are found')
    const page = read('docs/architecture.md')
    const table = page.slice(page.indexOf('## Rooms'), page.indexOf('## The rooms of the core'))
    const shown = [...table.matchAll(/^\| `([\w/-]+)` +\| .*? +\| (.*?) +\|$/gm)].map(([, room = '', callees = '']) => [
      room,
      [...callees.matchAll(/`([^`]+)`/g)].map(([, callee]) => callee),
    ])
    t.same(Object.fromEntries(shown), rooms)
  },
)

await t.test('the rooms of the core stand there in the order that the linter and the figures enforce', async (t) => {
  const page = read('docs/architecture.md')
  const table = page.slice(page.indexOf('## The rooms of the core'), page.indexOf('## The floors of the agent'))
  const shown = [...table.matchAll(/^\| `([\w-]+)` +\|/gm)].map(([, room]) => room)
  const [, literal = ''] =
    /const floors = (\[.*?\])/s.exec(readFileSync(join(project, 'scripts/floors.mjs'), 'utf8')) ?? []
  t.same(shown, parse(literal))
})
