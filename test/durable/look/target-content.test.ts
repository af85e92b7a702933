/** What a target holds, or held, with the bytes of its files; `holdfast diff` shows it (test/cli/commands/diff.test.ts). */
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { setHold } from '../../../src/durable/operator/hold.js'
import { namesFor } from '../../../src/durable/path/names.js'
import { readContent } from '../../../src/durable/look/target-content.js'
import { codeOf } from '../../../src/errors.js'
import { forever, objectOf, scene } from '../history-scene.js'
import { failure, intercepted, Killed } from '../intercepted.js'

const names = namesFor('certs')
const codeOr = <T>(work: Promise<T>): Promise<unknown> =>
  work.catch((error: unknown) => (codeOf(error) === undefined ? 'fails' : error))

await t.test('what holdfast has not published is shown as it is', async (t) => {
  const { root, target, fs } = scene(t)
  t.same(await readContent(fs, target), { entries: [], objects: [] }, 'nothing')
  t.same(await readContent(fs, join(root, 'missing/certs')), { entries: [], objects: [] }, 'nor a parent')
  t.match(await codeOr(readContent(fs, target, 1)), { code: 'ENOENT', message: /has published nothing at/ })
  mkdirSync(target)
  writeFileSync(join(target, 'a'), 'one')
  const there = [
    { path: '', type: 'directory', asRecorded: false },
    { path: 'a', type: 'file', size: 3, asRecorded: false, content: Buffer.from('one') },
  ]
  t.match(await codeOr(readContent(fs, target)), { entries: there })
  rmSync(target, { recursive: true })
  writeFileSync(target, 'one')
  chmodSync(target, 0o640)
  const { entries } = await readContent(fs, target)
  t.match(entries, [{ path: '', type: 'file', mode: 0o640, size: 3, asRecorded: false }])
  t.notOk(entries[0] && 'content' in entries[0], 'of a file in the place of a directory')
  rmSync(target)
  symlinkSync('elsewhere', target)
  const shown = (await readContent(fs, target)).entries
  t.match(shown, [{ path: '', type: 'symlink', sha256: '', asRecorded: false }])
  t.equal(shown.length, 1)
})

await t.test('readContent answers the published content with its record, and the hold or pin in force', async (t) => {
  const { target, fs, replace } = scene(t)
  await replace('1', { objects: [objectOf('a')] })
  const publishedAt = new Date(fs.clock)
  const found = await readContent(fs, target)
  t.match(found, { sequence: 1, publishedAt, objects: [objectOf('a')] })
  t.strictSame(
    found.entries.map(({ path, asRecorded, content }) => [
      path,
      asRecorded,
      content && Buffer.from(content).toString(),
    ]),
    [
      ['', true, undefined],
      ['sub', true, undefined],
      ['sub/tls.key', true, '1'],
      ['tls.crt', true, '1'],
    ],
  )
  t.strictSame(
    ['hold', 'pin', 'brokenForm'].filter((name) => name in found),
    [],
  )
  const hold = { reason: 'work', since: fs.clock, until: fs.clock + 1000 }
  await setHold(fs, target, hold, {})
  t.match(await readContent(fs, target), { hold })
  fs.clock += 1000
  t.notOk('hold' in (await readContent(fs, target)), 'it is over')
  const pin = { reason: 'back', since: fs.clock, until: fs.clock + 1000 }
  await replace('2', { pin })
  t.match(await readContent(fs, target), { sequence: 3, pin: { reason: 'back' } })
  fs.clock += 1000
  t.notOk('pin' in (await readContent(fs, target)), 'it is over')
  let misses = 1
  const { fs: replaced } = intercepted((call, [, name]) => {
    if (call === 'openFile' && name === names.record(3) && misses-- > 0) throw failure('ENOENT', 'open')
  }, fs)
  t.match(await readContent(replaced, target), { sequence: 3 }, 'a record that goes while it is read')
  const calls: string[] = []
  const { fs: watched } = intercepted((call, [, name]) => calls.push(`${call} ${String(name)}`), fs)
  const looks = async (): Promise<number> => {
    await readContent(watched, target)
    return calls.splice(0).filter((call) => call === 'look certs').length
  }
  const once = await looks()
  rmSync(join(target, 'sub/tls.key'))
  mkdirSync(join(target, 'sub/tls.key'))
  writeFileSync(join(target, 'tls.crt'), 'other')
  t.equal(await looks(), 2 * once, 'drift is looked at once more: a publication may be under way')
  const drift = (await readContent(fs, target)).entries.map(({ path, asRecorded }) => [path, asRecorded])
  t.strictSame(drift, [
    ['', true],
    ['sub', true],
    ['sub/tls.key', false],
    ['tls.crt', false],
  ])
})

await t.test(
  'readContent names the record of what is there, and not that of a publication that came to nothing',
  async (t) => {
    const { target, fs, replace, replaceBy } = scene(t)
    await replace('1')
    let isDead = false
    const { fs: killed } = intercepted((call) => {
      isDead ||= call === 'rename'
      if (isDead) throw new Killed()
    }, fs)
    await t.rejects(replaceBy(killed, '2'))
    const { sequence, entries } = await readContent(fs, target)
    t.equal(sequence, 1)
    t.ok(entries.every(({ asRecorded }) => asRecorded))
  },
)

await t.test('readContent of the form symlink names the parts that its readers no longer reach', async (t) => {
  const { target, fs, replace } = scene(t, 'symlink')
  await replace('1', { history: forever(0) })
  t.match(await codeOr(readContent(fs, target, 7)), { code: 'ENOENT', message: /there are 1;/ }, 'nor has it a past')
  t.notOk('brokenForm' in (await readContent(fs, target)))
  rmSync(join(target, 'tls.crt'))
  const { brokenForm, sequence } = await readContent(fs, target)
  t.equal(sequence, 1)
  t.match(brokenForm, [{ path: 'tls.crt' }])
})

await t.test('readContent by sequence answers unchanged content, or nothing', async (t) => {
  const { root, target, fs, replace, generations } = scene(t)
  const at = fs.clock
  await replace('1', { objects: [objectOf('a')] })
  fs.clock += 1000
  await replace('2', { objects: [objectOf('b')] })
  const textOf = (found: unknown): string =>
    Buffer.from((found as Awaited<ReturnType<typeof readContent>>).entries.at(-1)?.content ?? []).toString()
  const [second, first] = [await readContent(fs, target, 2), await readContent(fs, target, 1)]
  t.match(second, { sequence: 2, objects: [objectOf('b')] })
  t.match(first, { sequence: 1, objects: [objectOf('a')], publishedAt: new Date(at) })
  t.strictSame([textOf(second), textOf(first)], ['2', '1'])
  t.ok(first.entries.every(({ asRecorded }) => asRecorded))
  t.match(await codeOr(readContent(fs, target, 7)), { code: 'ENOENT', message: /has no content 7; there are 2, 1/ })

  const calls: string[] = []
  const { fs: watched } = intercepted((call, [path]) => calls.push(`${call} ${String(path)}`), fs)
  await readContent(watched, target, 1)
  const looks = calls.filter((call) => call.startsWith('openPath')).length
  let left = looks
  const { fs: moved } = intercepted((call) => {
    if (call === 'openPath' && --left === 0) renameSync(root, `${root}.away`)
  }, fs)
  const away = await codeOr(readContent(moved, target, 1))
  renameSync(`${root}.away`, root)
  t.match(away, { code: 'ENOENT', message: /has no content 1: its directory is gone/ }, 'meanwhile')

  const { fs: unread } = intercepted((call, [, name]) => {
    if (call === 'openDirectory' && names.isGeneration(String(name))) throw failure('EIO', 'open')
  }, fs)
  const cannot = { code: 'EBADMSG', message: /is damaged: it cannot be read: .*EIO/ }
  t.match(await codeOr(readContent(unread, target, 1)), cannot)
  const [copy = ''] = generations()
  writeFileSync(join(copy, 'certs/tls.crt'), 'other')
  t.match(await codeOr(readContent(fs, target, 1)), { code: 'EBADMSG', message: /it is not what was published/ })
  writeFileSync(join(target, 'tls.crt'), 'other')
  t.match(await codeOr(readContent(fs, target, 2)), { code: 'EBADMSG', message: /somebody has changed it since/ })
  t.equal(readFileSync(join(target, 'tls.crt'), 'utf8'), 'other')
  t.match(await readContent(fs, target), { sequence: 2 }, 'without a number, what is there')
})
