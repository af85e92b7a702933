/*
 * Another program (Ansible, a backup) puts a target's earlier content back. That is drift of a committed publication, and no sign of an
 * aborted one: its record stays, with pin, history and hooks.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { readPublication } from '../../src/durable/look/inspect.js'
import { setHold } from '../../src/durable/operator/hold.js'
import { readHistory } from '../../src/durable/look/read-history.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { publish } from '../../src/durable/publish/publish.js'
import { directoryPublication, filePublication } from '../../src/durable/publish/replace.js'
import { rollBack } from '../../src/durable/operator/rollback.js'
import type { FileSystem } from '../../src/durable/file-system.js'
import type { PublicationOptions } from '../../src/durable/types.js'
import { failing, failure, intercepted, Killed, Rebooted } from './intercepted.js'
import { byItself, objectOf } from './rollback-story.js'
import { contents, kept, scratchWith } from './scratch.js'
import { isKind } from '../crash/judge/names.js'

type Files = Readonly<Record<string, string>>
type Form = NonNullable<PublicationOptions['publish']>

const real = new NodeFileSystem()

const answer = (call: Promise<unknown>): Promise<unknown> => call.catch((error: unknown) => error)

/** How another program brings content back: into the directory that is there, or as a new one. */
const ways = ['in place', 'as a new directory'] as const

function scene(t: Test, form: Form = 'exchange') {
  const [root, target] = scratchWith(t, 'certs')
  const replace = async (files: Files, options: PublicationOptions = {}, by: FileSystem = real) => {
    const request = { target, files, history: { keep: 3, maxAge: null }, publish: form, ...options }
    const [outcome] = await publish([directoryPublication(by, request)], options.signal)
    if (outcome === undefined || 'error' in outcome) throw outcome?.error ?? new Error('no outcome')
    return outcome
  }
  const content = (): string =>
    form === 'exchange' ? target : join(target, readdirSync(target).find((name) => /^\.\.\d/.test(name)) ?? '')
  /** As a program does that knows nothing of holdfast. */
  const bringBack = (files: Files, way: (typeof ways)[number]): void => {
    const place = content()
    const into = way === 'in place' ? place : `${place}.new`
    mkdirSync(into, { recursive: true })
    for (const name of readdirSync(into)) rmSync(join(into, name))
    for (const [name, text] of Object.entries(files)) writeFileSync(join(into, name), text, { mode: 0o600 })
    if (way === 'in place') return
    rmSync(place, { recursive: true })
    renameSync(into, place)
  }
  const records = (): string[] =>
    readdirSync(root)
      .filter(isKind('record'))
      .map((name) => join(root, name))
  /** The answers of all readers. */
  const answers = async () => ({
    publication: await readPublication(real, target),
    history: await readHistory(real, target),
    records: records().map((path) => readFileSync(path, 'utf8')),
  })
  return { root, target, replace, bringBack, records, answers }
}

/** The disk is full once something is to be staged. */
const full = (code = 'ENOSPC'): FileSystem =>
  intercepted((call) => {
    if (call === 'createDirectory' || call === 'createFile') throw failure(code, call)
  }).fs

for (const form of ['exchange', 'symlink'] as const) {
  for (const way of ways) {
    await t.test(
      `${form}: what a rollback went back from returns ${way}: the pin stays, and the history`,
      async (t) => {
        const { target, replace, bringBack, answers } = scene(t, form)
        await replace({ a: 'good' }, { objects: objectOf('1') })
        await replace({ a: 'bad' }, { objects: objectOf('2') })
        await rollBack(real, target, { pin: { reason: 'bad', until: 'released' } })
        bringBack({ a: 'bad' }, way)
        const before = await answers()
        t.match(before.publication?.pin, { reason: 'bad' })
        for (const attempt of [1, 2, 3]) {
          t.match(await answer(replace({ a: 'bad' }, byItself('2'))), { reason: 'RolledBack', published: false })
          t.strictSame(await answers(), before, `${attempt}: nothing has changed`)
        }
        await setHold(real, target, undefined, {})
        t.match(await replace({ a: 'bad' }, byItself('2')), { outcome: 'replaced' }, 'released, it goes on')
        const past = (await readHistory(real, target)) ?? []
        t.ok(past.length > 2 && (past[0]?.sequence ?? 0) > 3, 'with its history')
      },
    )

    await t.test(`${form}: more files come back ${way}, and the disk is full once: it heals`, async (t) => {
      const { target, replace, bringBack, answers } = scene(t, form)
      const agent: PublicationOptions = { publisher: 'agent', foreign: 'same-names', hooks: ['reload'] }
      await replace({ a: '1', b: '1' }, agent)
      await replace({ a: '2' }, agent)
      bringBack({ a: '1', b: '1' }, way)
      const before = await answers()
      await t.rejects(replace({ a: '2' }, agent, full()), { code: 'ENOSPC', published: false })
      t.strictSame(await answers(), before)
      t.match(await replace({ a: '2' }, agent), { outcome: 'replaced' })
      const published = await readPublication(real, target)
      t.strictSame([published?.differences, published?.pendingHooks], [[], ['reload']])
      t.match((await readHistory(real, target))?.[0], { why: 'driftRepaired' })
    })
  }
}

await t.test('a first publication is removed by hand, and the next one fails: the record stays', async (t) => {
  const { target, replace, answers } = scene(t)
  const options: PublicationOptions = { publisher: 'agent', hooks: ['reload'], objects: objectOf('1') }
  await replace({ a: '1' }, options)
  rmSync(target, { recursive: true })
  const before = await answers()
  t.match(before.publication, { pendingHooks: ['reload'] })
  await t.rejects(replace({ a: '2' }, options, full()), { code: 'ENOSPC', published: false })
  t.strictSame(await answers(), before)
  const controller = new AbortController()
  const { fs: aborting } = intercepted((call) => {
    if (call === 'createDirectory') controller.abort()
  })
  const { signal } = controller
  await t.rejects(replace({ a: '2' }, { ...options, signal }, aborting), { code: 'ABORT_ERR', published: false })
  t.strictSame(await answers(), before, 'nor does a signal that is aborted')
  const { fs: unsynced } = failing('sync', 'EIO', 'fsync')
  await t.rejects(replace({ a: '2' }, options, unsynced), { code: 'EIO', published: false })
  t.strictSame(await answers(), before, 'nor a barrier that fails')
})

await t.test('a file gets its earlier content back, and the next publication fails: the record stays', async (t) => {
  const [root, path] = scratchWith(t, 'pod.yaml')
  const write = async (text: string, by: FileSystem = real, options: PublicationOptions = {}) => {
    const [outcome] = await publish([filePublication(by, path, text, options)])
    if (outcome === undefined || 'error' in outcome) throw outcome?.error ?? new Error('no outcome')
    return outcome
  }
  const brought = {
    'in place': () => writeFileSync(path, 'one'),
    'as a new file': () => {
      writeFileSync(join(root, 'new'), 'one', { mode: 0o600 })
      renameSync(join(root, 'new'), path)
    },
  }
  for (const [way, bringBack] of Object.entries(brought)) {
    await write('one')
    await write('two', real, { publisher: 'install', hooks: ['reload'] })
    bringBack()
    const before = await readPublication(real, path)
    t.match(before, { pendingHooks: ['reload'] })
    t.match(await answer(write('two', full())), { code: 'ENOSPC', published: false })
    t.strictSame(await readPublication(real, path), before, way)
    t.match(await write('two'), { outcome: 'replaced' }, way)
  }
})

await t.test('the mark of the commit is lost with the power: the inode says that it was published', async (t) => {
  for (const way of ways) {
    const { target, replace, bringBack, records, answers } = scene(t)
    await replace({ a: 'good' }, { objects: objectOf('1') })
    await replace({ a: 'bad' }, { objects: objectOf('2') })
    await rollBack(real, target, { pin: { reason: 'bad', until: 'released' } })
    const [path = ''] = records()
    writeFileSync(path, `${readFileSync(path, 'utf8').split('\n')[0] ?? ''}\n`)
    bringBack({ a: 'bad' }, way)
    for (const by of [new Rebooted(), real]) {
      const before = await answers()
      t.match(await answer(replace({ a: 'bad' }, byItself('2'), by)), { reason: 'RolledBack' }, way)
      t.strictSame(await answers(), before)
    }
  }
})

await t.test('the record before was not removed: the newest committed one speaks all the same', async (t) => {
  const { root, target, replace, bringBack, records, answers } = scene(t)
  await replace({ a: 'good' })
  const { fs } = intercepted((call, [, name]) => {
    if (call === 'removeFile' && String(name).endsWith('.1')) throw failure('EIO', call)
  })
  await replace({ a: 'bad' }, { publisher: 'agent', hooks: ['reload'] }, fs)
  t.equal(records().length, 2)
  bringBack({ a: 'good' }, 'as a new directory')
  const before = await answers()
  t.match(before.publication, { pendingHooks: ['reload'], digest: /./ })
  t.not(before.publication?.digest, before.publication?.actual, 'it has drifted')
  await t.rejects(replace({ a: 'bad' }, { publisher: 'agent' }, full()), { code: 'ENOSPC' })
  t.strictSame(await answers(), before)
  t.match(await replace({ a: 'good' }, { publisher: 'agent' }), { outcome: 'replaced' })
  t.same(contents(target), { a: 'good' })
  t.equal(records().length, 1)
  t.ok(kept(root).includes('record'))
})

await t.test(
  'recovery still tells a publication that was aborted before its exchange from a committed one',
  async (t) => {
    for (const form of ['exchange', 'symlink'] as const) {
      const { target, replace, records } = scene(t, form)
      await replace({ a: '1' }, { publisher: 'agent' })
      let dead = false
      const { fs } = intercepted((call) => {
        if (dead) throw new Killed()
        if (call !== 'rename') return
        dead = true
        throw new Killed()
      })
      await replace({ a: '2' }, {}, fs).catch(() => undefined)
      t.equal(records().length, 2)
      const seen = await readPublication(real, target)
      t.equal(seen?.digest, seen?.actual, 'the record of what is there speaks')
      // The next publication removes the data directory that was staged inside of a target of links.
      const outcome = form === 'exchange' ? 'unchanged' : 'replaced'
      t.match(await replace({ a: '1' }, { publisher: 'agent' }), { outcome })
      t.equal(records().length, 1, 'and the other one goes')
    }
  },
)

await t.test(
  "recovery does not take another program's entry with a freed inode number for the old content",
  async (t) => {
    const [root, path] = scratchWith(t, 'file')
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, 'theirs', { mode: 0o600 })
    const [first] = await publish([filePublication(real, path, 'ours', { publisher: 'install' })])
    t.match(first, { outcome: 'replaced' })
    // ext4 gives the freed number out again at once; elsewhere this is but one more inode.
    writeFileSync(join(root, 'new'), 'theirs', { mode: 0o600 })
    renameSync(join(root, 'new'), path)
    const [record = ''] = readdirSync(root).filter((name) => name.endsWith('.1'))
    const [line = ''] = readFileSync(join(root, record), 'utf8').split('\n')
    writeFileSync(join(root, record), `${line}\n`)
    const before = await readPublication(real, path)
    t.match(before, { differences: [{ path: '.' }] })
    const [failed] = await publish([filePublication(full(), path, 'ours', { publisher: 'install' })])
    t.match(failed, { error: { code: 'ENOSPC' } })
    t.strictSame(await readPublication(real, path), before)
    t.ok(readdirSync(root).includes(record))
  },
)
