/** What names a place of the program finds it: the list of mutations, and the modules that a suite loads from a build. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { project } from '../project.js'
import { type Edit, edited } from './changes.js'
import { withOtherNames } from './mutants/shown.js'
import { editsOf, misfit, testFile } from './mutation.js'
import { mutations } from './mutations.js'
import { type Oracle, page, readRows, scores } from './oracles/table.js'
import { Core } from './places.js'
import { compile, core, coreTexts } from './program.js'

/** So many mutations quote the source, and break when a variable is renamed: they may only become fewer. */
const quotedAtMost = 21

await t.test('each mutation changes one place of the core, or each of several', async (t) => {
  const texts = coreTexts()
  t.ok(mutations.length > 150, `${mutations.length} mutations`)
  t.same(
    mutations.flatMap((mutation) => misfit(mutation) ?? []),
    [],
  )
  for (const mutation of mutations.filter((one) => misfit(one) === undefined)) {
    const edits = editsOf(mutation)
    for (const file of new Set(edits.map((edit) => edit.file))) {
      const text = texts.get(file) ?? ''
      const own = edits.filter((edit) => edit.file === file)
      t.not(compile(edited(text, own)), compile(text), mutation.name)
    }
  }
  const names = mutations.map(({ name }) => name)
  t.same(
    names.filter((name, index) => names.indexOf(name) !== index),
    [],
  )
})

/** Lines before an edit: renaming adds none. */
const linesBefore = (texts: ReadonlyMap<string, string>, { file, start }: Edit): number =>
  (texts.get(file) ?? '').slice(0, start).split('\n').length

await t.test('no mutation needs the name of a file, and few need that of a variable', async (t) => {
  const texts = coreTexts()
  const moved = new Map([...texts.values()].map((text, index) => [`src/${index}.ts`, withOtherNames(text)] as const))
  const [here, there] = [core(), new Core(moved)]
  for (const { name, changes } of mutations)
    for (const { isQuoted, edits } of changes)
      if (!isQuoted)
        t.same(
          edits(there).map((edit) => linesBefore(moved, edit)),
          edits(here).map((edit) => linesBefore(texts, edit)),
          name,
        )
  const quoting = mutations.filter(({ changes }) => changes.some(({ isQuoted }) => isQuoted))
  t.ok(quoting.length <= quotedAtMost, 'a mutation names what it breaks')
})

await t.test('each test that a mutation names is there', async (t) => {
  const files = mutations.flatMap((mutation) =>
    mutation.caughtBy.flatMap((by) => (by.suite === 'own test' ? testFile(by, mutation) : [])),
  )
  t.ok(files.length > 20, `${files.length} tests`)
  t.same(
    [...new Set(files)].filter((file) => !existsSync(join(project, file))),
    [],
  )
})

await t.test('each module that a suite loads from a build is there', async (t) => {
  const texts = readdirSync(join(project, 'test/crash'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(join(project, 'test/crash', name), 'utf8'))
  const named = texts.flatMap((text) => [
    ...[...text.matchAll(/\bmodule(?:<\w+>)?\('([\w/-]+)'\)/g)].map(([, name = '']) => `src/${name}.ts`),
    ...[...text.matchAll(/'(src\/[\w/-]+)\.js'/g)].map(([, name = '']) => `${name}.ts`),
  ])
  t.ok(named.length > 5, `${named.length} names`)
  t.same(
    [...new Set(named)].filter((path) => !existsSync(join(project, path))),
    [],
  )
})

await t.test('each program that a test starts by the name of its file is there', async (t) => {
  const named = readdirSync(join(project, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .flatMap((name) => {
      const path = join(project, 'test', name)
      const names = readFileSync(path, 'utf8').matchAll(/\b(?:new URL|here)\('([./\w-]+)\.js'/g)
      return [...names].map(([, program = '']) => join(dirname(path), `${program}.ts`))
    })
  t.ok(named.length > 20, `${named.length} names`)
  t.same(
    named.filter((path) => !existsSync(path)),
    [],
  )
})

await t.test(
  'the score of an oracle counts what it catches, and what no other oracle does; the docs have those of the record',
  (t) => {
    const some = new Map<string, Oracle[]>([
      ['a', ['unit', 'model']],
      ['b', ['model']],
      ['c', []],
    ])
    const [unit, rules, , model, , , none] = scores(some)
    t.same(
      [unit, rules, model, none],
      ['| unit | 1 of 3 | 0 |', '| rules | 0 of 3 | 0 |', '| model | 2 of 3 | 1 |', '| none | 1 of 3 | |'],
    )
    const docs = readFileSync(page, 'utf8').replaceAll(/ +/g, ' ')
    for (const line of scores(readRows())) t.ok(docs.includes(line), line)
    t.end()
  },
)
