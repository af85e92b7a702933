/** What names a place of the program by its text finds it: the list of mutations, and the modules that a suite loads from a build. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { project } from '../project.js'
import { mutations } from './mutations.js'

await t.test('each mutation changes what stands in its file once', (t) => {
  t.ok(mutations.length > 200, `${mutations.length} mutations`)
  for (const { name, patches } of mutations)
    for (const { file, find } of patches) {
      const path = join(project, file)
      const times = existsSync(path) ? readFileSync(path, 'utf8').split(find).length - 1 : 0
      if (times !== 1) t.fail(`${name}: ${file} holds it ${times} times: ${find}`)
    }
  t.end()
})

await t.test('each test of its own is there', (t) => {
  const files = mutations.flatMap(({ caughtBy }) => caughtBy.flatMap((by) => (by.suite === 'own test' ? by.file : [])))
  t.ok(files.length > 20, `${files.length} tests`)
  t.same(
    [...new Set(files)].filter((file) => !existsSync(join(project, 'test', `${file}.test.ts`))),
    [],
  )
  t.end()
})

await t.test('each module that a suite loads from a build is there', (t) => {
  const texts = readdirSync(join(project, 'test/crash'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(join(project, 'test/crash', name), 'utf8'))
  const named = texts.flatMap((text) => [
    ...[...text.matchAll(/\bmodule(?:<\w+>)?\('([\w/-]+)'\)/g)].map(([, name = '']) => `src/${name}.ts`),
    ...[...text.matchAll(/'(src\/[\w/-]+)\.js'/g)].map(([, name = '']) => `${name}.ts`),
  ])
  t.ok(named.length > 10, `${named.length} names`)
  t.same(
    [...new Set(named)].filter((path) => !existsSync(join(project, path))),
    [],
  )
  t.end()
})
