/** rollback publishes an earlier content again, which stays until newer content comes; it never publishes damaged content. */
import { rmSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { FileSystem } from '../../../src/durable/file-system.js'
import { readPublication } from '../../../src/durable/look/inspect.js'
import { setHold } from '../../../src/durable/operator/hold.js'
import { pruneHistory } from '../../../src/durable/look/read-history.js'
import type { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { readContent } from '../../../src/durable/look/target-content.js'
import { publish } from '../../../src/durable/publish/publish.js'
import { directoryPublication } from '../../../src/durable/publish/replace.js'
import { recordObjects } from '../../../src/durable/record/record-files.js'
import { rollBack, type RollbackOptions } from '../../../src/durable/operator/rollback.js'
import type { PublicationOptions } from '../../../src/durable/types.js'
import { changesMeanwhile } from '../../runner/unchanged-answers.js'
import { beside, failure, intercepted } from '../intercepted.js'
import { byItself, objectOf, pin, scene } from '../rollback-story.js'
import { modeOf } from '../scratch.js'

/** What others do between the look without the lock and the publication, which begins with a random name. */
function meanwhile(real: NodeFileSystem, act: () => Promise<unknown>): FileSystem {
  let begun = 0
  const disturb = (): Promise<unknown> => {
    changesMeanwhile('another process prunes the history, or records objects, before the lock is taken')
    return act()
  }
  return beside(real, (call) => (call === 'random' || begun > 0) && ++begun === 2, disturb)
}

// Under load, the disk is slow.

await t.test('an earlier content comes back as it was, as a new publication, with hooks and publisher', async (t) => {
  const { target, fs, replace, back, holds, past } = scene(t)
  const more: PublicationOptions = { publisher: 'agent', hooks: ['reload'] }
  await replace('1', more)
  const first = await readPublication(fs, target)
  await replace('2', more)
  await replace('3', more)
  t.match(await back({ to: 1 }), { outcome: 'replaced', sequence: 1, digest: first?.digest })
  t.equal(holds(), '1')
  t.equal(modeOf(join(target, 'sub/tls.key')), '440')
  t.strictSame(await past(), ['4 rolledBack present', '3 published whole', '2 published whole', '1 published whole'])
  const now = await readPublication(fs, target)
  t.match(now, { pendingHooks: ['reload'], objects: objectOf('1'), settled: true })
  t.match(now?.pin, { ...pin, from: objectOf('3') })
  t.match(await back(), { sequence: 3 }, 'the newest that differs')
  t.equal(holds(), '3')
})

await t.test(
  'a publisher that acts by itself leaves a rollback alone until newer content comes; any other call ends it',
  async (t) => {
    const { target, fs, replace, back, holds } = scene(t)
    await replace('1')
    await replace('2')
    await replace('3')
    await back()
    t.equal(holds(), '2')
    await t.rejects(replace('3', byItself('3')), { message: /is rolled back since .* \(INC-9\)/ })
    await t.rejects(
      replace('3', byItself('4')),
      { message: /is rolled back since/ },
      'the very content that was rolled back from',
    )
    t.match(await replace('2', byItself('2')), { outcome: 'unchanged' })
    await back({ to: 1 })
    await t.rejects(
      replace('3', byItself('3')),
      { message: /is rolled back since/ },
      'rolled back twice, it is from the same',
    )
    writeFileSync(join(target, 'tls.crt'), 'edited')
    await t.rejects(replace('3', byItself('3')), { message: /is rolled back since/ }, 'drift does not end it')
    t.equal(holds(), 'edited')
    t.match(await replace('4', byItself('4')), { outcome: 'replaced' })
    t.notOk((await readPublication(fs, target))?.pin)
    await back()
    t.match(await replace('5'), { outcome: 'replaced' }, 'a call is its own consent')
  },
)

await t.test('until it is released, for a time, and beside a hold', async (t) => {
  const { target, fs, replace, back, holds } = scene(t)
  await replace('1')
  await replace('2')
  await back({ pin: { reason: '', until: 'released' } })
  await t.rejects(replace('9', byItself('9')), { message: /is rolled back since/ })
  await setHold(fs, target, { reason: '', since: 0, until: null }, {})
  await t.rejects(back(), { message: /is held since/ })
  t.match(await readPublication(fs, target), { hold: {}, pin: { until: 'released' } }, 'a hold carries it on')
  t.match(await back({ release: true }), { outcome: 'replaced' })
  t.equal(holds(), '2')
  t.match(await setHold(fs, target, undefined, {}), { reason: 'INC-9' })
  t.match(await replace('9', byItself('1')), { outcome: 'replaced' })
  await back({ pin: { reason: '', until: fs.now() - 1 } })
  t.match(await replace('9', byItself('1')), { outcome: 'replaced' }, 'its time is over')
})

await t.test('what cannot be gone back to is refused, with what there is; nothing is changed', async (t) => {
  const { root, target, fs, replace, back, holds, generation } = scene(t)
  await t.rejects(back(), { message: /has published nothing/ })
  await replace('1')
  await t.rejects(back(), { message: /no earlier content of .* is kept; .*holdfast history/ })
  await replace('2')
  await replace('3')
  await t.rejects(back({ to: 9 }), { message: /has no earlier content 9; there are 2, 1/ })
  await t.rejects(back({ to: 3 }), { message: /holds this content already/ })
  let looks = 0
  const edit = () => ++looks === 3 && writeFileSync(join(generation(2), 'certs/tls.crt'), '8')
  const watched = intercepted((call, [, name]) => call === 'openFile' && name === 'tls.crt' && edit(), fs).fs
  const damaged = { code: 'EBADMSG', message: /content 2 of .* is damaged: it is not what was published/ }
  await t.rejects(back({}, watched), damaged, 'changed between comparing and reading')
  await t.rejects(back({}, watched), damaged)
  t.equal(looks, 5, 'what is damaged is not read into memory')
  writeFileSync(join(generation(2), 'certs/tls.crt'), '2')
  writeFileSync(join(generation(2), 'certs/more'), '')
  await t.rejects(back(), { code: 'EBADMSG' })
  rmSync(join(generation(2), 'certs/more'))
  rmSync(join(generation(2), 'certs/sub'), { recursive: true })
  await t.rejects(back(), { code: 'EBADMSG' })
  rmSync(join(generation(2), 'certs'), { recursive: true })
  await t.rejects(back(), { message: /is damaged: it cannot be read: .*ENOENT/ })
  const confirmFiles = (files: ReadonlyMap<string, Uint8Array>): void => {
    throw failure([...files.keys()].join(), 'check')
  }
  await t.rejects(back({ to: 1, confirmFiles }), { code: 'sub/tls.key,tls.crt' })
  await replace('4', { objects: objectOf('4', 'another') })
  await t.rejects(back({ to: 1 }), {
    message: /was made from another Secret demo\/web, which was deleted since.*--force/,
  })
  t.equal(holds(), '4')
  t.match(await back({ to: 1, force: true }), { outcome: 'replaced' })
  t.equal(holds(), '1')
  const file = join(root, 'links')
  await publish([directoryPublication(fs, { target: file, files: { a: '1' }, publish: 'symlink' })])
  await t.rejects(rollBack(fs, file, { pin }), { message: /no earlier content/ })
  t.equal((await readPublication(fs, target))?.differences.length, 0)
})

await t.test(
  'a repeated rollback publishes the same content where the first may not be durable, also with few generations',
  async (t) => {
    for (const keep of [3, 1]) {
      for (const to of [undefined, 1, 3]) {
        const { fs, target, replace, back, holds, past } = scene(t)
        const history = { keep, maxAge: null }
        await replace('1', { history })
        await replace('2', { history })
        const asked = { to: to === 3 ? undefined : to }
        const doubtful = async (options: Partial<RollbackOptions>): Promise<void> => {
          let visible = false
          const by = intercepted((call) => {
            visible ||= call === 'rename'
            if (visible && call === 'sync') throw failure('EIO', call)
          }, fs).fs
          await t.rejects(back(options, by), { published: true, message: /repeat the call/ })
        }
        await doubtful(asked)
        t.equal(holds(), '1')
        await t.rejects(
          replace('2', { ...byItself('2'), history }),
          { message: /is rolled back since/ },
          'which trims nothing yet',
        )
        await doubtful({ to })
        t.match(await back({ to: to === 3 ? 4 : to }), { sequence: 1 }, `keep ${keep}, to ${to}`)
        t.equal(holds(), '1')
        t.match(await readPublication(fs, target), { settled: true, pin: { from: objectOf('2') } })
        t.match(await replace('1', { ...byItself('1'), history }), { outcome: 'unchanged' })
        t.equal((await past()).length, keep === 1 ? 2 : 3)
        t.match(await back(), { sequence: 2 }, 'now it is another one that differs')
      }
    }
  },
)

await t.test('from a content without objects: newer than those before it, or not pinned by them', async (t) => {
  const { fs, target, replace, back, holds } = scene(t)
  await replace('1')
  await replace('2')
  await replace('by hand', { objects: [] })
  await back()
  t.equal(holds(), '2')
  t.match(await readPublication(fs, target), { pin: { from: objectOf('2') } })
  await replace('3', { objects: [], history: { keep: 1, maxAge: null } })
  await replace('4', { objects: [], history: { keep: 1, maxAge: null } })
  await t.rejects(back(), { code: 'ENODATA', published: false, message: /made from no object.*--pin released/ })
  t.equal(holds(), '4')
  t.match(await back({ pin: { reason: '', until: 'released' } }), { outcome: 'replaced' })
})

await t.test('a copy that is gone is no earlier content, as history has it', async (t) => {
  const { fs, target, replace, back, holds, past, generation } = scene(t)
  for (const text of ['1', '2', '3']) await replace(text)
  rmSync(generation(2), { recursive: true })
  t.strictSame(await past(), ['3 published present', '1 published whole'])
  await t.rejects(back({ to: 2 }), { code: 'ENOENT', message: /has no earlier content 2; there are 1;/ })
  await t.rejects(readContent(fs, target, 2), { code: 'ENOENT', message: /has no content 2; there are 3, 1;/ })
  t.match(await back(), { sequence: 1 })
  t.equal(holds(), '1')
  rmSync(generation(1), { recursive: true })
  rmSync(generation(3), { recursive: true })
  await t.rejects(back({ pin: { reason: '', until: 'released' } }), { message: /no earlier content of .* is kept/ })
})

await t.test('published, changed or removed meanwhile: refused, to be repeated', async (t) => {
  const one = scene(t)
  const prepared = async (text: string, again: () => Promise<unknown>) => {
    await one.replace(`${text}1`)
    await one.replace(`${text}2`)
    const refused = { code: 'ESTALE', published: false, message: /meanwhile.*repeat/ }
    await t.rejects(one.back({}, meanwhile(one.fs, again)), refused)
  }
  await prepared('a', () => one.replace('a1'))
  t.equal(one.holds(), 'a1')
  await prepared('b', () => pruneHistory(one.fs, one.target, { keep: 0, maxAge: null }, {}))
  t.equal(one.holds(), 'b2')
  await one.replace('c1')
  await one.replace('c2')
  const digest = (await readPublication(one.fs, one.target))?.digest ?? ''
  const recreated = objectOf('c2', 'another')
  const by = meanwhile(one.fs, () => recordObjects(one.fs, one.target, digest, recreated))
  await t.rejects(one.back({}, by), { message: /was made from another Secret demo\/web/ })
  t.equal(one.holds(), 'c2')
})

await t.test('a rollback that meets a publication at each of its four looks is to be repeated', async (t) => {
  const { fs, replace, back, holds } = scene(t)
  for (const text of ['1', '2']) await replace(text)
  let publications = 2
  // The old content goes while it is read.
  const { fs: met } = intercepted(
    (call, [, name]) => (call === 'openDirectory' && name === 'sub' ? replace(`${++publications}`) : undefined),
    fs,
  )
  await t.rejects(back({}, met), { code: 'ESTALE', published: false, message: /meanwhile.*repeat/ })
  t.strictSame([publications, holds()], [6, '6'])
})

await t.test(
  'a rollback pins the target, even where another program puts the very content back meanwhile',
  async (t) => {
    const { fs, target, replace, back } = scene(t)
    for (const text of ['1', '2', '1']) await replace(text)
    writeFileSync(join(target, 'tls.crt'), 'edited')
    const restored = meanwhile(fs, () => writeFile(join(target, 'tls.crt'), '1'))
    t.match(await back({ to: 1 }, restored), { outcome: 'replaced', sequence: 1 })
    t.match((await readPublication(fs, target))?.pin, pin)
  },
)
