import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { directoryPublication } from '../../src/durable/publish/replace.js'
import { publish } from '../../src/durable/publish/publish.js'
import { intercepted, Killed } from './intercepted.js'
import { contents, scratchWith } from './scratch.js'

/** What another program adds to a target between the moment it was read and the exchange. */
const cases: readonly [string, (target: string) => void, string][] = [
  ['a file', (target) => writeFileSync(join(target, 'theirs'), 'theirs'), 'theirs'],
  [
    'a directory',
    (target) => {
      mkdirSync(join(target, 'their'))
      writeFileSync(join(target, 'their', 'file'), 'theirs')
    },
    'their/file',
  ],
  ['new content of a file', (target) => writeFileSync(join(target, 'a'), 'theirs'), 'a'],
]

const foreignIn = (parent: string): string[] => readdirSync(parent).filter((name) => name.endsWith('.foreign'))

for (const options of [{ foreign: 'same-names' }, {}] as const) {
  const by = 'foreign' in options ? 'an agent that does not adopt' : 'an explicit command'
  for (const [what, add, path] of cases) {
    await t.test(`a publication keeps ${what} that another program adds meanwhile: ${by}`, async (t) => {
      const [parent, target] = scratchWith(t, 'certs')
      mkdirSync(target)
      writeFileSync(join(target, 'a'), 'before')
      let exchanged = false
      const { fs } = intercepted((call) => {
        if (call !== 'rename' || exchanged) return
        exchanged = true
        add(target)
      })
      const [result] = await publish([directoryPublication(fs, { target, files: { a: 'new' }, ...options })])
      t.match(result, { outcome: 'replaced' })
      t.same(contents(target), { a: 'new' })
      const [kept = '', ...more] = foreignIn(parent)
      t.same(more, [])
      t.equal(readFileSync(join(parent, kept, path), 'utf8'), 'theirs')
    })
  }
}

await t.test('a publication keeps a file that another program adds while it removes the old content', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  mkdirSync(target)
  writeFileSync(join(target, 'a'), 'before')
  const { fs } = intercepted((call, [, name]) => {
    if (call === 'removeDirectory') writeFileSync(join(parent, String(name), 'theirs'), 'theirs')
  })
  t.match(await publish([directoryPublication(fs, { target, files: { a: 'new' } })]), [{ outcome: 'replaced' }])
  t.same(contents(target), { a: 'new' })
  const [kept = ''] = foreignIn(parent)
  t.same(contents(join(parent, kept)), { theirs: 'theirs' })
})

await t.test('the same, where the process is killed right after the exchange: the next run keeps it', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  mkdirSync(target)
  writeFileSync(join(target, 'a'), 'before')
  let dead = false
  const { fs } = intercepted((call) => {
    if (dead) throw new Killed()
    if (call !== 'rename') return
    writeFileSync(join(target, 'theirs'), 'theirs')
    dead = true
  })
  await publish([directoryPublication(fs, { target, files: { a: 'new' } })]).catch(() => undefined)
  t.same(contents(target), { a: 'new' }, 'exchanged')
  const { fs: next } = intercepted(() => undefined)
  t.match(await publish([directoryPublication(next, { target, files: { a: 'third' } })]), [{ outcome: 'replaced' }])
  const [kept = ''] = foreignIn(parent)
  t.equal(readFileSync(join(parent, kept, 'theirs'), 'utf8'), 'theirs')
})

await t.test('killed while the old content was being removed: the rest of it is ours, and goes', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  mkdirSync(target)
  for (const name of ['a', 'b', 'c', 'd']) writeFileSync(join(target, name), 'before')
  let removed = 0
  const { fs } = intercepted((call) => {
    if (call === 'removeFile' && ++removed > 2) throw new Killed()
  })
  await publish([directoryPublication(fs, { target, files: { a: 'new' } })]).catch(() => undefined)
  const { fs: next } = intercepted(() => undefined)
  t.match(await publish([directoryPublication(next, { target, files: { a: 'third' } })]), [{ outcome: 'replaced' }])
  t.same(foreignIn(parent), [])
  t.same(
    readdirSync(parent).filter((name) => /-[0-9a-f]{16}$/.test(name)),
    [],
    'no leftover',
  )
})
