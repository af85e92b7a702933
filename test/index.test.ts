import { chownSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import * as holdfast from '../src/index.js'
import { contents, scratch, scratchWith } from './durable/scratch.js'

await t.test('the public face is what the contract names, and nothing else', async (t) => {
  t.same(Object.keys(holdfast).sort(), [
    'DurableWriteError',
    'exchange',
    'readPublication',
    'replaceDirectories',
    'replaceDirectory',
    'replaceFile',
    'syncPath',
    'verifyDirectory',
  ])
})

await t.test('bytes are those at the time of the call', async (t) => {
  const [root, directory, file] = scratchWith(t, 'directory', 'file')
  const [a, b, c] = [Buffer.from('one'), Buffer.from('one'), Buffer.from('one')]
  const calls = [
    holdfast.replaceDirectory(directory, { files: { a, b: { content: b, mode: 0o600 } } }),
    holdfast.replaceFile(file, c),
  ]
  for (const bytes of [a, b, c]) bytes.write('two')
  await Promise.all(calls)
  for (const path of ['directory/a', 'directory/b', 'file'])
    t.equal(readFileSync(join(root, path), 'utf8'), 'one', path)
})

await t.test('callers without a type checker: nothing is guessed, nothing is touched', async (t) => {
  const [parent, target] = scratchWith(t, 'target')
  const replace = holdfast.replaceDirectory as (...args: unknown[]) => Promise<unknown>
  const bad: [unknown, string][] = [
    [{ files: new Map([['a', 'b']]) }, 'options.files must be a plain object: relative path to content'],
    [{ files: ['x'] }, 'options.files must be a plain object: relative path to content'],
    [{ files: null }, 'options.files must be a plain object: relative path to content'],
    [
      { files: { a: null } },
      'options.files["a"] must be a string, a Uint8Array, { path }, a stream, or { content, mode }',
    ],
    [
      { files: { a: { content: 'x', mod: 1 } } },
      'options.files["a"].mod is not a known option; known are content, mode',
    ],
    [
      { files: {}, filemode: 0o600 },
      'options.filemode is not a known option; known are files, mode, fileMode, owner, publish, foreign, attributes, allowEmpty, lockTimeout, signal, requireProven, log',
    ],
    [{ files: {}, mode: 755 }, 'options.mode is the decimal number 755, which is 0o1363: write 0o755'],
    [{ files: {}, fileMode: 600 }, 'options.fileMode is the decimal number 600, which is 0o1130: write 0o600'],
    [
      { files: { a: { content: '', mode: 644 } } },
      'options.files["a"].mode is the decimal number 644, which is 0o1204: write 0o644',
    ],
    [{ files: {}, publish: 'link' }, 'options.publish must be one of "exchange", "symlink"'],
    [{ files: {}, foreign: 'never' }, 'options.foreign must be one of "always", "same-names"'],
    [{ files: {}, lockTimeout: '1s' }, 'options.lockTimeout must be a number of milliseconds, 0 or more'],
    [{ files: {}, signal: {} }, 'options.signal must be an AbortSignal'],
    [{ files: {}, requireProven: 1 }, 'options.requireProven must be true or false'],
    [{ files: {}, log: {} }, 'options.log must have the functions debug, info, warn and error'],
    [{ files: { a: { path: 5 } } }, 'options.files["a"].path must be a string'],
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

await t.test("the library publishes its arguments' values at the time of the call", async (t) => {
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

await t.test('what the options of the core do, and looking without publishing', async (t) => {
  const [parent, target] = scratchWith(t, 'target')
  t.equal(await holdfast.readPublication(target), undefined)
  t.strictSame(await holdfast.verifyDirectory(target), {
    path: target,
    intact: false,
    digest: undefined,
    actual: undefined,
    differences: [],
  })
  const source = join(parent, 'source')
  writeFileSync(source, 'x')
  for (const mode of [0o755, 0o644, 0o600, 0o640, 0o400, 0o711, 0o1777, 0o2755, 0]) {
    await holdfast.replaceFile(join(parent, 'file'), { path: source }, { mode })
  }
  const { digest } = await holdfast.replaceDirectory(target, {
    files: { a: { path: source }, b: { content: { path: source } } },
  })
  t.match(await holdfast.readPublication(target), { digest, actual: digest, durable: Boolean })
  t.strictSame(await holdfast.verifyDirectory(target), {
    path: target,
    intact: true,
    digest,
    actual: digest,
    differences: [],
  })
  writeFileSync(join(target, 'a'), 'y')
  t.match(await holdfast.verifyDirectory(target), { intact: false, differences: [{ path: 'a', problem: 'content' }] })

  const reason = new Error('the installer ends')
  const signal = AbortSignal.abort(reason)
  const options = { files: { a: 'z' }, signal }
  await t.rejects(holdfast.replaceDirectory(target, options), {
    name: 'AbortError',
    code: 'ABORT_ERR',
    published: false,
    cause: reason,
  })
  const [stopped] = await holdfast.replaceDirectories([{ target, files: { a: 'z' } }], { signal })
  t.match(stopped, { error: { name: 'AbortError', code: 'ABORT_ERR', cause: reason } })
  const one = holdfast.replaceDirectories as (requests: unknown) => Promise<unknown>
  await t.rejects(one([{ target, ...options }]), { message: /signal belongs to the options of replaceDirectories/ })
  const others = join(parent, 'others')
  mkdirSync(others)
  writeFileSync(join(others, 'theirs'), '')
  const call = holdfast.replaceDirectory(others, { files: { a: '' }, foreign: 'same-names' })
  await t.rejects(call, { code: 'EEXIST', message: /theirs|foreign|did not publish|not among/ })
  await holdfast.replaceDirectory(join(parent, 'linked'), { files: { a: '' }, publish: 'symlink' })
  t.ok(readdirSync(join(parent, 'linked')).includes('..data'))
})

await t.test('relative paths are resolved when the call is made', async (t) => {
  const here = scratchWith(t, 'here')[1]
  const before = process.cwd()
  t.teardown(() => process.chdir(before))
  await holdfast.replaceDirectory(join(here, 'target'), { files: { a: 'x' } })
  writeFileSync(join(here, 'b'), '')
  const elsewhere = scratch(t)
  const calls: Record<string, () => Promise<unknown>> = {
    readPublication: () =>
      holdfast.readPublication('target').then((found) => t.match(found, { path: join(here, 'target') })),
    verifyDirectory: () => holdfast.verifyDirectory('target').then((found) => t.match(found, { intact: true })),
    syncPath: () => holdfast.syncPath('b'),
    exchange: () => holdfast.exchange('target', 'b'),
    replaceFile: () => holdfast.replaceFile('c', { path: 'target' }),
    replaceDirectory: () => holdfast.replaceDirectory('d', { files: { a: { path: 'c' } } }),
    replaceDirectories: () => holdfast.replaceDirectories([{ target: 'e', files: {} }]),
  }
  for (const [name, call] of Object.entries(calls)) {
    process.chdir(here)
    const called = call()
    process.chdir(elsewhere)
    await t.resolves(
      called.then(() => undefined),
      name,
    )
  }
  t.same(readdirSync(elsewhere), [])
})

await t.test(
  'the user is the one that calls, not the one that imported',
  { skip: process.getuid?.() !== 0 && 'needs root' },
  async (t) => {
    const [parent, target] = scratchWith(t, 'target')
    const user = 65_534
    chownSync(parent, user, 0)
    process.seteuid?.(user)
    t.teardown(() => process.seteuid?.(0))
    for (const content of ['x', 'y']) await holdfast.replaceDirectory(target, { files: { a: content } })
    await holdfast.exchange(target, target)
    t.match(await holdfast.verifyDirectory(target), { intact: true })
  },
)
