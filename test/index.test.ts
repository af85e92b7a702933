import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
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
      'options.files["a"].mod is not a known option; known are content, mode',
    ],
    [{ files: {}, filemode: 0o600 }, 'options.filemode is not a known option; known are files, mode, fileMode, owner'],
    [undefined, 'options must be an object'],
    [{ files: {}, mode: '0644' }, 'mode must be an integer from 0 to 0o7777, not "0644"'],
    [{ files: {}, mode: null }, 'options.mode must not be null'],
    [{ files: {}, owner: null }, 'options.owner must be { uid, gid }, two numbers'],
    [{ files: {}, owner: '0:0' }, 'options.owner must be { uid, gid }, two numbers'],
    [{ files: {}, owner: { uid: 0, gid: 0, user: 0 } }, 'options.owner.user is not a known option; known are uid, gid'],
    [{ files: {}, owner: { uid: 0 } }, 'owner.gid must be an integer from 0 to 4294967294, not undefined'],
    [{ files: { '\ud800': '' } }, 'files: "\\ud800" holds half of a surrogate pair, which is not valid text'],
  ]
  for (const [options, message] of bad) await t.rejects(replace(target, options), { message }, message)
  const url = pathToFileURL(target)
  const message = 'a path must be a string, not a URL: use fileURLToPath of node:url'
  await t.rejects(replace(url, { files: {} }), { message })
  const others = [holdfast.replaceFile, holdfast.syncPath, holdfast.exchange] as unknown as (typeof replace)[]
  for (const call of others) {
    await t.rejects(call(url, ''), { name: 'TypeError', message })
    await t.rejects(call(undefined, ''), { message: 'a path must be a string, not undefined' })
    await t.rejects(call('', ''), { message: 'the path is empty' })
    await t.rejects(call(`${target}\0`, ''), { message: 'the path holds a NUL byte' })
  }
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
