import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import * as library from '../../../src/index.js'
import { readPublication, replaceDirectory, setHold } from '../../../src/durable/index.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { endRelocation, relocate } from '../../../src/durable/move/relocation.js'
import { removePublished } from '../../../src/durable/remove/removal.js'
import { failure, intercepted } from '../intercepted.js'
import { keep, Observed, story } from '../relocation-story.js'
import { contents, kept, modeOf } from '../scratch.js'
import { isKind } from '../../crash/judge/names.js'

await t.test('the old path follows the new one, until its time is over and no process uses it', async (t) => {
  const { root, from, to, fs, publishNew, move, state } = await story(t, {
    files: { a: 'old', 'sub/b': { content: 'old', mode: 0o640 } },
    mode: 0o750,
    publish: 'exchange',
  })
  t.match(await move(), { waits: `${to} is not published yet` }, 'the new path comes first')
  t.equal((await readPublication(from))?.movedTo, undefined)

  await publishNew({ a: 'new', 'sub/b': 'new', c: 'new' }, { publish: 'symlink' })
  t.equal(await state(), 'staged', 'recorded with the first publication')
  t.equal(contents(from)['a'], 'old')
  t.match(await move(), {
    state: 'both',
    entered: 'both',
    result: { outcome: 'replaced' },
    waits: /stays until .* at least/,
  })
  t.same(contents(from), { a: 'new', 'sub/b': 'new', c: 'new' })
  t.same(
    [modeOf(from), modeOf(join(from, 'sub/b')), modeOf(join(from, 'c'))],
    ['750', '640', '600'],
    'its own modes stay',
  )
  t.notOk(existsSync(join(from, '..data')), 'and its form')

  fs.time += keep
  fs.user1 = 'process 7 works in it'
  await publishNew({ a: 'newer' }, { publish: 'symlink' })
  t.match(await move(), { state: 'both', entered: undefined, waits: `${from} is in use: process 7 works in it` })
  t.same(contents(from), { a: 'newer' })
  t.match(await move(), { state: 'both', result: { outcome: 'unchanged' } })

  fs.user1 = undefined
  const done = await move()
  t.match(done, { state: 'done', entered: 'done' })
  t.equal(done.waits, undefined)
  t.notOk(existsSync(from))
  t.same(kept(join(root, 'was')), ['lock'], 'nothing of it is left')
  t.equal(await state(), 'done')

  await replaceDirectory(from, { files: { mine: 'later' } })
  t.match(await move(), { state: 'done' })
  t.same(contents(from), { mine: 'later' }, 'what comes there later is left alone')
})

await t.test('a new path that was there before begins to move; a request without a move forgets it', async (t) => {
  const { from, to, publishNew, move, state } = await story(t)
  await replaceDirectory(to, { files: { a: '2' } })
  t.match(await move(), { state: 'both' })
  t.match(await publishNew({ a: '2' }), { outcome: 'unchanged' })
  t.equal(await state(), 'both', 'an operator or the same content change nothing of it')
  await setHold(to, { reason: '', since: Date.now(), until: null })
  await setHold(to, undefined)
  t.equal(await state(), 'both')
  await endRelocation(new NodeFileSystem(), to, {})
  await endRelocation(new NodeFileSystem(), to, {})
  t.equal(await state(), undefined)
  t.same(contents(from), { a: '2' })
})

await t.test('another publication of the old path revokes the move, without a gap', async (t) => {
  const { from, to, fs, publishNew, move, state } = await story(t)
  await publishNew({ a: '2' })
  await move()
  // As a program does that publishes it by the library.
  for (const a of ['2', '3']) {
    await move()
    t.equal((await readPublication(from))?.movedTo, to)
    const inode = statSync(from).ino
    t.match(await library.replaceDirectory(from, { files: { a } }), { outcome: 'replaced' }, 'the same content, too')
    t.not(statSync(from).ino, inode)
    t.equal((await readPublication(from))?.movedTo, undefined)
  }
  fs.time += 10 * keep
  // Asked for once more, it begins anew: both stay for their time.
  t.match(await move(), { state: 'both', entered: 'both', result: { outcome: 'replaced' }, waits: /stays until/ })
  t.equal(await state(), 'both')
})

await t.test('relocate moves no file, no held target, and none of another program', async (t) => {
  const { root, from, to, publishNew, move, state } = await story(t)
  await publishNew({ a: '2' })
  await setHold(from, { reason: 'INC-1', since: Date.now(), until: null })
  await t.rejects(move(), { reason: 'Held', message: /INC-1/ })
  await setHold(from, undefined)
  await removePublished(new Observed(), from, {})
  mkdirSync(from)
  writeFileSync(join(from, 'theirs'), '')
  await t.rejects(move(), {
    reason: 'TargetForeign',
    message: /published nothing at .*was\/certs.*leave out movedFrom/,
  })
  t.same(contents(from), { theirs: '' })
  rmSync(from, { recursive: true })
  await replaceDirectory(from, { files: { a: '' }, publisher: 'install' })
  await t.rejects(relocate(new Observed(), to, { from, keep, publication: { publisher: 'agent' } }), {
    reason: 'TargetForeign',
    message: /holdfast install published/,
  })
  t.equal(await state(), 'staged')
  t.equal((await readPublication(from))?.movedTo, undefined, 'and nothing is recorded there')
  const { replaceFile } = await import('../../../src/durable/index.js')
  const file = join(root, 'was/file')
  await replaceFile(file, 'x')
  await t.rejects(relocate(new Observed(), to, { from: file, keep }), {
    reason: 'TargetUnfit',
    message:
      /is a file, and only directories can move; holdfast left \S+was\/file as it was, and \S+ is published already/,
  })
})

await t.test('an old path that is not there is waited for, since its disk may come later', async (t) => {
  const { root, from, fs, publishNew, move, state } = await story(t)
  await publishNew({ a: '2' })
  t.match(await move(), { state: 'both' })
  const { renameSync } = await import('node:fs')
  renameSync(join(root, 'was'), join(root, 'unmounted'))
  mkdirSync(join(root, 'was'))
  fs.time += 10 * keep
  t.match(await move(), { state: 'both', waits: /its disk may not be mounted/ })
  t.same(kept(join(root, 'was')), [], 'nothing is made there')
  rmSync(join(root, 'was'), { recursive: true })
  t.match(await move(), { state: 'both', waits: /may not be mounted/ })
  renameSync(join(root, 'unmounted'), join(root, 'was'))
  t.match(await move(), { state: 'done' })
  t.notOk(existsSync(from))
  t.equal(await state(), 'done')

  const other = await story(t)
  await removePublished(other.fs, other.from, {})
  rmSync(join(other.root, 'was'), { recursive: true })
  await other.publishNew({ a: '2' })
  t.match(await other.move(), { state: 'staged', waits: /is not there, which may change until/ })
  other.fs.time += keep
  t.match(await other.move(), { state: 'done', entered: 'done' }, 'a node that never had it')
})

await t.test('a move ends only while the new path holds its content, wherever the old one has gone', async (t) => {
  const gone = {
    staged: async () => {},
    both: async ({ move }: Awaited<ReturnType<typeof story>>) => t.match(await move(), { state: 'both' }),
  }
  for (const [state, goTo] of Object.entries(gone)) {
    const told = await story(t)
    const { from, to, fs, publishNew, move } = told
    await publishNew({ a: '2' })
    await goTo(told)
    await removePublished(fs, from, {})
    rmSync(to, { recursive: true })
    fs.time += keep
    t.match(await move(), { state, entered: undefined, waits: `${to} is not what was published there last` })
    await publishNew({ a: '2' })
    t.match(await move(), { state: 'done', entered: 'done', waits: undefined })
  }
})

await t.test(
  'relocate publishes no content that may not be durable at the new path, or that changes during its read',
  async (t) => {
    const { root, from, to, publishNew, move } = await story(t)
    await publishNew({ a: '2' })
    await move()
    await publishNew({ a: '3' })
    const [name = ''] = readdirSync(join(root, 'is')).filter(isKind('record'))
    const record = join(root, 'is', name)
    const [body = ''] = readFileSync(record, 'utf8').split('\n')
    writeFileSync(record, `${body}\n`)
    t.match(await move(), { waits: `what ${to} holds is not known to be durable yet` })
    t.same(contents(from), { a: '2' })

    await publishNew({ a: '3' })
    let opened = 0
    class Meanwhile extends Observed {
      override async openFile(...args: Parameters<NodeFileSystem['openFile']>): Promise<number> {
        if (args[1] === 'a' && ++opened === looks) writeFileSync(join(to, 'a'), '4')
        return super.openFile(...args)
      }
    }
    // The content for its digest, and once more for itself.
    const looks = 2
    const waits = await relocate(new Meanwhile(), to, { from, keep })
    t.match(waits, { state: 'both', waits: /is not what was published there last/ })
    t.same(contents(from), { a: '2' })
  },
)

await t.test('relocate continues an interrupted removal, and records each state before its step', async (t) => {
  const { from, to, fs, publishNew, move, state } = await story(t)
  await publishNew({ a: '2' })
  await move()
  fs.time += keep
  const { fs: failing } = intercepted((call) => {
    if (call === 'removeDirectory') throw failure('EIO', 'unlinkat')
  }, fs)
  await t.rejects(relocate(failing, to, { from, keep }), {
    published: true,
    message: /has left its place/,
  })
  t.equal(await state(), 'draining')
  t.match(await move(), { state: 'done', result: undefined })
})

await t.test(
  'what fails once the old path has followed is waited for, and no error says that it is as it was',
  async (t) => {
    const { from, to, fs, publishNew, move } = await story(t)
    let version = 1
    let waited = 0
    // Its publication has ended with the removal of its older record.
    for (const after of [0, 1, 2, 5, 10, 20, 40]) {
      await publishNew({ a: `${++version}` })
      let left: number | undefined
      const { fs: failing } = intercepted((call) => {
        if (existsSync(from) && left === undefined && readFileSync(join(from, 'a'), 'utf8') === `${version}`)
          left = after
        if (left !== undefined && /^(open|look|list|attributes)/.test(call) && left-- === 0) throw failure('EIO', call)
      }, fs)
      const ended = await relocate(failing, to, { from, keep }).then(
        ({ waits = '' }) => waits,
        (error: unknown) => (error as Error).message,
      )
      t.notMatch(ended, /left .*was\/certs as it was/, `${after} calls later: ${ended}`)
      if (/could not go on: .*EIO/.test(ended)) waited += 1
      t.match(await move(), { state: 'both', waits: /stays until/ })
      t.same(contents(from), { a: `${version}` })
    }
    t.ok(waited > 0, `${waited} times`)
  },
)
