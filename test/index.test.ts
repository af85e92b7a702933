import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import * as holdfast from '../src/index.js'
import { contents, scratch } from './durable/scratch.js'

await t.test('the public face is what the contract names, and nothing else', (t) => {
  t.same(Object.keys(holdfast).sort(), [
    'DurableWriteError',
    'exchange',
    'replaceDirectories',
    'replaceDirectory',
    'replaceFile',
    'syncPath',
  ])
  t.end()
})

await t.test('callers without a type checker: nothing is guessed, nothing is touched', async (t) => {
  const parent = scratch(t)
  const target = join(parent, 'target')
  const replace = holdfast.replaceDirectory as (...args: unknown[]) => Promise<unknown>
  const bad: [unknown, string][] = [
    [{ files: new Map([['a', 'b']]) }, 'options.files must be a plain object: relative path to content'],
    [{ files: ['x'] }, 'options.files must be a plain object: relative path to content'],
    [{ files: null }, 'options.files must be a plain object: relative path to content'],
    [{ files: { a: null } }, 'options.files["a"] must be a string, a Uint8Array, or { content, mode }'],
    [
      { files: { a: { content: 'x', mod: 1 } } },
      'options.files["a"].mod is not known; known are content, mode',
    ],
    [{ files: {}, filemode: 0o600 }, 'options.filemode is not known; known are files, mode, fileMode, owner'],
    [undefined, 'options must be an object'],
    [{ files: {}, mode: '0644' }, 'mode must be an integer from 0 to 0o7777, not "0644"'],
    [{ files: { '\ud800': '' } }, 'files: "\\ud800" holds half of a surrogate pair, which is no text'],
  ]
  for (const [options, message] of bad) await t.rejects(replace(target, options), { message }, message)
  const replaceMany = holdfast.replaceDirectories as (requests: unknown) => Promise<unknown>
  await t.rejects(replaceMany(undefined), { message: /takes an array/ })
  await t.rejects(replaceMany([null]), { message: 'requests[0] must be an object' })
  t.same(readdirSync(parent), [])
})

await t.test('what the caller changes meanwhile is not what is published', async (t) => {
  const target = join(scratch(t), 'target')
  const content = Buffer.from('before')
  const publishing = holdfast.replaceDirectory(target, { files: { a: content, b: content }, mode: undefined })
  content.write('AFTER!')
  const { digest } = await publishing
  t.same(contents(target), { a: 'before', b: 'before' })
  t.match(await holdfast.replaceDirectory(target, { files: { a: 'before', b: 'before' } }), {
    outcome: 'unchanged',
    digest,
  })
})
