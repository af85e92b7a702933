import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { setHold as holdOn } from '../../../src/durable/operator/hold.js'
import {
  readPublication,
  replaceDirectories,
  replaceDirectory,
  replaceFile,
  setHold,
} from '../../../src/durable/index.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { codeOf } from '../../../src/errors.js'
import { publish } from '../../../src/durable/publish/publish.js'
import { directoryPublication } from '../../../src/durable/publish/replace.js'
import { failure, intercepted } from '../intercepted.js'
import { kept, scratch, scratchWith } from '../scratch.js'
import { isKind } from '../../crash/judge/names.js'

const hold = { reason: 'a change window', since: Date.now(), until: null }
const held = { reason: 'Held', published: false, code: 'EPERM', message: /is held since .*a change window.*release/ }

await t.test('a hold stops every publication and repair until its release', async (t) => {
  const parent = scratch(t)
  for (const publish of ['exchange', 'symlink'] as const) {
    const target = join(parent, publish)
    await replaceDirectory(target, { files: { a: 'old' }, publish })
    t.equal(await setHold(target, hold), undefined)
    t.match((await readPublication(target))?.hold, hold)
    await t.rejects(replaceDirectory(target, { files: { a: 'new' }, publish }), held)
    t.match(await replaceDirectory(target, { files: { a: 'old' }, publish }), { outcome: 'unchanged' })
    t.same(await setHold(target, undefined), hold)
    t.equal((await readPublication(target))?.hold, undefined)
    t.equal(await setHold(target, undefined), undefined, 'a second time there is nothing to release')
    t.match(await replaceDirectory(target, { files: { a: 'new' }, publish }), { outcome: 'replaced' })
  }
  const file = join(parent, 'file')
  await replaceFile(file, 'old')
  await setHold(file, hold)
  await t.rejects(replaceFile(file, 'new'), held)
  t.equal(readFileSync(file, 'utf8'), 'old')
  t.match(await replaceFile(file, 'new', { held: 'release' }), { outcome: 'replaced' })
  t.equal((await readPublication(file))?.hold, undefined, 'publishing all the same releases it')
})

await t.test('a publication with release leaves no leftovers beside a held target', async (t) => {
  const [parent, target] = scratchWith(t, 'certs')
  const publish = async (text: string, keep: number, held: 'refuse' | 'release' = 'refuse') => {
    const request = { target, files: { a: text }, history: { keep, maxAge: null }, held }
    const [outcome] = await replaceDirectories([request])
    t.match(outcome, { outcome: /created|replaced/ })
  }
  for (const text of ['1', '2', '3']) await publish(text, 2)
  const [own = ''] = readdirSync(parent).filter((name) => name.endsWith('.lock'))
  mkdirSync(join(parent, own.replace('.lock', '-0123456789abcdef')))
  await setHold(target, hold)
  await publish('4', 1, 'release')
  t.strictSame(kept(parent), ['generation', 'lock', 'record'])
})

await t.test('a hold on drifted content stays: a publication writes nothing, and repairs nothing', async (t) => {
  const target = join(scratch(t), 'certs')
  await replaceFile(target, 'old')
  await setHold(target, hold)
  const before = statSync(target, { bigint: true })
  const { writeFileSync } = await import('node:fs')
  writeFileSync(target, 'drifted')
  t.match(await readPublication(target), { hold, differences: [{ problem: 'content' }] })
  await t.rejects(replaceFile(target, 'old'), held)
  t.equal(readFileSync(target, 'utf8'), 'drifted')
  t.equal(statSync(target, { bigint: true }).ino, before.ino)
})

await t.test('a hold ends by itself; a clock that stands before its beginning does not end it', async (t) => {
  const parent = scratch(t)
  const target = join(parent, 'certs')
  await replaceDirectory(target, { files: { a: 'old' } })
  const clock = { now: 5_000_000 }
  class Clocked extends NodeFileSystem {
    override now(): number {
      return clock.now
    }
  }
  const fs = new Clocked()
  const next = async (): Promise<unknown> =>
    (await publish([directoryPublication(fs, { target, files: { a: 'new' } })]))[0]
  await holdOn(fs, target, { reason: '', since: clock.now, until: clock.now + 1000 }, {})
  t.match(await next(), { error: { reason: 'Held', message: /until 1970-01-01T01:23:21\.000Z/ } })
  clock.now = 0
  t.match(await next(), { error: { reason: 'Held' } })
  clock.now = 5_001_000
  t.match(await next(), { outcome: 'replaced' })
})

await t.test('the record of a hold has the lines that were appended to its predecessor', async (t) => {
  const target = join(scratch(t), 'certs')
  const objects = [{ kind: 'Secret', namespace: 'n', name: 's', uid: 'u', resourceVersion: '7', paths: ['a'] }]
  const { digest } = await replaceDirectory(target, { files: { a: 'old' }, objects, hooks: ['one', 'two'] })
  const { completeHook, recordObjects } = await import('../../../src/durable/index.js')
  await completeHook(target, digest, 'one')
  await recordObjects(target, digest, [{ ...(objects[0] as (typeof objects)[0]), resourceVersion: '8' }])
  const before = await readPublication(target)
  await setHold(target, hold)
  t.same(await readPublication(target), { ...before, hold, sequence: 2 })
  t.match(before, { pendingHooks: ['two'], objects: [{ resourceVersion: '8' }], durable: true })
})

await t.test('where nothing was published there is nothing to hold', async (t) => {
  const parent = scratch(t)
  for (const target of [join(parent, 'nothing'), join(parent, 'no/parent/here')]) {
    await t.rejects(setHold(target, hold), { code: 'ENOENT', reason: 'TargetUnfit', message: /published nothing at/ })
  }
  t.notOk(existsSync(join(parent, 'no')), 'no directory is made for it')
})

await t.test(
  'a directory above it is renamed meanwhile: no hold is in force, and the error speaks of the hold',
  async (t) => {
    const parent = join(scratch(t), 'parent')
    const target = join(parent, 'certs')
    await replaceDirectory(target, { files: { a: 'old' } })
    const renamed = () =>
      intercepted((call) => {
        if (call === 'sync' && existsSync(parent)) renameSync(parent, `${parent}.old`)
      })
    const about = { code: 'ESTALE', published: false, path: target }
    const not = /^could not hold .*certs: a directory above it was renamed or removed meanwhile; .*; hold it again/
    await t.rejects(holdOn(renamed().fs, target, hold, {}), { ...about, message: not })
    renameSync(`${parent}.old`, parent)
    t.equal((await readPublication(target))?.hold, undefined)
    await setHold(target, hold)
    const still =
      /^could not release .*certs: a directory above it was renamed or removed meanwhile; .*; release it again/
    await t.rejects(holdOn(renamed().fs, target, undefined, {}), { ...about, message: still })
    renameSync(`${parent}.old`, parent)
    t.match((await readPublication(target))?.hold, hold)
  },
)

await t.test('a second release syncs the directory before it answers', async (t) => {
  const parent = join(scratch(t), 'parent')
  const target = join(parent, 'certs')
  await replaceDirectory(target, { files: { a: 'old' } })
  const calls: string[] = []
  await holdOn(intercepted((call) => void calls.push(call)).fs, target, undefined, {})
  t.strictSame(
    calls.filter((call) => ['sync', 'createFile', 'removeFile'].includes(call)),
    ['sync', 'createFile', 'removeFile'],
    'the file system is made to write its journal, and no record is written',
  )
  // As late as can be seen.
  const { fs } = intercepted((call) => {
    if (call === 'removeFile') renameSync(parent, `${parent}.old`)
  })
  t.equal(await holdOn(fs, target, undefined, {}).then(() => 'acknowledged', codeOf), 'ESTALE')
})

await t.test('after a failed fsync setHold removes the new record, and the old one stands', async (t) => {
  const target = join(scratch(t), 'certs')
  await replaceDirectory(target, { files: { a: 'old' } })
  const calls: string[] = []
  const { fs } = intercepted((call) => {
    calls.push(call)
    if (call === 'sync') throw failure('EIO', 'fsync')
  })
  t.equal(await holdOn(fs, target, hold, {}).then(() => 'acknowledged', codeOf), 'EIO')
  t.strictSame(
    calls.filter((call) => ['sync', 'removeFile'].includes(call)),
    ['sync', 'removeFile'],
  )
  t.equal((await readPublication(target))?.hold, undefined)
})

await t.test(
  'an older version refuses a held target, since the record requires a reader that knows holds',
  async (t) => {
    const [parent, target] = scratchWith(t, 'certs')
    await replaceDirectory(target, { files: { a: 'old' } })
    const body = (): object => {
      const name = readdirSync(parent).find(isKind('record')) ?? ''
      return JSON.parse((readFileSync(join(parent, name), 'utf8').split('\n')[0] ?? '').slice(65)) as object
    }
    const before = body()
    await setHold(target, hold)
    t.match(body(), { requires: ['hold'], hold })
    await setHold(target, undefined)
    t.same(body(), before, 'and it is as it was once the hold is gone')
  },
)
