/** A directory that moves leaves a link (`as: 'link'`): the old path leads somewhere at each instant, and the link is known as ours later. */
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readPublication, replaceDirectory, setHold } from '../../../src/durable/index.js'
import type { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { relocate } from '../../../src/durable/move/relocation.js'
import { removePublished } from '../../../src/durable/remove/removal.js'
import type { PublicationOptions } from '../../../src/durable/types.js'
import { failure, intercepted, Killed } from '../intercepted.js'
import { keep, moved, Numbered, Observed, others, stagingIn, story, typeOf } from '../relocation-story.js'
import { contents, kept } from '../scratch.js'

const publishOld = { movedTo: null } satisfies PublicationOptions

await t.test('the old path becomes a link to the new one, in one step', async (t) => {
  const scene = await story(t, { files: { a: '1' }, history: { keep: 1, maxAge: null } }, 'link')
  const { root, from, to, fs, publishNew, state } = scene
  await publishNew({ a: '2' })
  await scene.move()
  fs.time += keep
  const seen: string[] = []
  const { fs: watched } = intercepted(() => seen.push(`${typeOf(from)} ${readFileSync(join(from, 'a'), 'utf8')}`), fs)
  t.match(await relocate(watched, to, { from, as: 'link', keep }), { state: 'done' })
  t.same([...new Set(seen)], ['directory 2', 'link 2'], 'at each instant, there is something')
  t.equal(readlinkSync(from), '../is/tls', 'wherever the disk is mounted')
  t.same(kept(join(root, 'was')), ['lock', 'record'], 'no old key is left, and its record tells whose the link is')
  await publishNew({ a: '3' })
  t.equal(readFileSync(join(from, 'a'), 'utf8'), '3')
  t.match(await scene.move(), { state: 'done', entered: undefined })
  t.equal(await state(), 'done')
  t.match(await readPublication(from), { removing: true, movedTo: to })
})

await t.test('whoever comes in the last instant has the directory back in its place', async (t) => {
  const { root, from, to, fs, publishNew, move } = await story(t, undefined, 'link')
  await publishNew({ a: '2' })
  await move()
  fs.time += keep
  class Late extends Observed {
    #looks = 0
    override userOf(): Promise<string | undefined> {
      // The first two come before it leaves its place.
      return Promise.resolve(++this.#looks < 3 ? undefined : 'process 7 works in it')
    }
  }
  const late = new Late()
  late.time = fs.time
  t.match(await relocate(late, to, { from, as: 'link', keep }), { state: 'both', waits: /process 7 works in it/ })
  t.equal(typeOf(from), 'directory')
  t.same(kept(join(root, 'was')), ['lock', 'record'])
  const { fs: failing } = intercepted((call, args) => {
    if (call === 'rename' && args[4] === 'exchange') throw failure('EINVAL', 'renameat2')
  }, fs)
  fs.time += keep
  await t.rejects(relocate(failing, to, { from, as: 'link', keep }), { message: /cannot exchange two names/ })
  t.same([typeOf(from), kept(join(root, 'was'))], ['directory', ['lock', 'record']])
  fs.time += keep
  t.match(await move(), { state: 'done' })
})

for (const [what, [put, look, theirs]] of Object.entries(others)) {
  await t.test(`whoever replaces the link by ${what} in the last instant keeps the place`, async (t) => {
    const { root, from, to, fs, publishNew, move } = await story(t, undefined, 'link')
    await publishNew({ a: '2' })
    await move()
    class Replaced extends Observed {
      override userOf(): Promise<string | undefined> {
        if (!lstatSync(from).isSymbolicLink()) return Promise.resolve(undefined)
        rmSync(from)
        put(from)
        return Promise.resolve('process 7 works in it')
      }
    }
    const other = new Replaced()
    other.time = fs.time + keep
    const message = /somebody made .*certs meanwhile; what was there before is .*\.holdfast-/
    await t.rejects(relocate(other, to, { from, as: 'link', keep }), {
      reason: 'TargetForeign',
      published: true,
      message,
    })
    t.equal(look(from), theirs)
    t.same(kept(join(root, 'was')), ['lock', 'record', 'record', 'staging'])
  })

  await t.test(
    `whoever replaces a left link by ${what} while it is removed keeps the place, also after a kill`,
    async (t) => {
      const { root, from, fs } = await moved(t)
      const { ino: number } = lstatSync(from, { bigint: true })
      class Replaced extends Observed {
        killed = false
        override async rename(...args: Parameters<NodeFileSystem['rename']>): Promise<void> {
          if (args[1] === 'certs') {
            rmSync(from)
            put(from)
          }
          await super.rename(...args)
          if (this.killed) throw new Killed()
        }
        override async removeFile(...args: Parameters<NodeFileSystem['removeFile']>): Promise<void> {
          if (args[1] === 'certs') {
            rmSync(from)
            put(from)
          }
          return super.removeFile(...args)
        }
      }
      const other = new Replaced()
      const message = /another program replaced .*certs meanwhile; holdfast put its content back; see what it holds/
      await t.rejects(removePublished(other, from, {}), { reason: 'TargetForeign', published: false, message })
      t.equal(look(from), theirs)
      t.same(kept(join(root, 'was')), ['lock', 'record'])
      rmSync(from, { recursive: true })
      symlinkSync('../is/tls', from)
      other.killed = true
      await t.rejects(removePublished(other, from, {}))
      await removePublished(new Numbered(stagingIn(join(root, 'was')), number, fs.time), from, {})
      const [kind, ...rest] = readdirSync(join(root, 'was')).filter((name) => !name.endsWith('.lock'))
      t.same([kind?.endsWith('.foreign'), rest], [true, []])
      t.equal(look(join(root, 'was', kind ?? '')), theirs)
    },
  )
}

await t.test('a link that is another one’s by now is given back, whatever its inode’s number', async (t) => {
  const { root, from, fs } = await moved(t)
  const { directoryPublication } = await import('../../../src/durable/publish/replace.js')
  const { publish: run } = await import('../../../src/durable/publish/publish.js')
  class Reused extends Observed {
    override async look(...args: Parameters<NodeFileSystem['look']>) {
      const found = await super.look(...args)
      return found?.type === 'symlink' ? { ...found, inode: 7n } : found
    }
    override async rename(...args: Parameters<NodeFileSystem['rename']>): Promise<void> {
      if (args[3] === 'certs' && typeOf(from) === 'link') {
        rmSync(from)
        symlinkSync('/theirs', from)
      }
      return super.rename(...args)
    }
  }
  const other = new Reused()
  other.time = fs.time
  const [outcome] = await run([directoryPublication(other, { target: from, files: { a: '4' } })])
  t.match(outcome, { error: { reason: 'TargetForeign', published: false, message: /put its content back/ } })
  t.equal(readlinkSync(from), '/theirs')
  t.same(kept(join(root, 'was')), ['lock', 'record'])
})

await t.test('killed in between, what is recorded decides, whatever is asked for now', async (t) => {
  const { from, to, fs, publishNew, move, state } = await story(t, undefined, 'link')
  await publishNew({ a: '2' })
  await move()
  fs.time += keep
  for (const call of ['rename', 'removeDirectory']) {
    const { fs: mortal } = intercepted((name, args) => {
      if (name === call && args[4] !== 'noreplace') throw new Killed()
    }, fs)
    await t.rejects(relocate(mortal, to, { from, as: 'link', keep }))
    t.equal(await state(), 'draining')
  }
  t.equal(typeOf(from), 'link')
  t.match(await relocate(fs, to, { from, as: 'removed', keep }), { state: 'done' })
  t.equal(typeOf(from), 'link')
})

for (const publish of ['exchange', 'symlink'] as const) {
  await t.test(`the way back takes the link's place without a gap (publish: ${publish})`, async (t) => {
    const { root, from, to, fs } = await moved(t, { files: { a: '1' }, publish })
    const seen = new Set<string>()
    const look = () => seen.add(`${typeOf(from)} ${readFileSync(join(from, 'a'), 'utf8')}`)
    const { directoryPublication } = await import('../../../src/durable/publish/replace.js')
    const { publish: run, resultsOf } = await import('../../../src/durable/publish/publish.js')
    const request = {
      target: from,
      files: { a: '2' },
      publish,
      movedFrom: { from: to, as: 'removed' },
      ...publishOld,
    } as const
    const { fs: watched } = intercepted(look, fs)
    t.match(resultsOf(await run([directoryPublication(watched, request)])), [{ outcome: 'replaced' }])
    t.same([...seen], ['link 2', 'directory 2'])
    t.match(await readPublication(from), { removing: undefined, movedTo: undefined })
    t.same((await readPublication(from))?.differences, [])
    t.same(kept(join(root, 'was')), ['lock', 'record'])
    const back = () => relocate(fs, from, { from: to, as: 'link', keep })
    t.match(await back(), { state: 'both' })
    fs.time += keep
    t.match(await back(), { state: 'done' })
    t.equal(readlinkSync(to), '../was/certs')
    t.match(resultsOf(await run([directoryPublication(fs, request)])), [{ outcome: 'unchanged' }])
    t.equal(readFileSync(join(to, 'a'), 'utf8'), '2')
  })

  await t.test(`what another program puts into the link's place stays (publish: ${publish})`, async (t) => {
    const { root, from, fs } = await moved(t, { files: { a: '1' }, publish })
    const { directoryPublication } = await import('../../../src/durable/publish/replace.js')
    const { publish: run } = await import('../../../src/durable/publish/publish.js')
    class Meanwhile extends Observed {
      override async rename(...args: Parameters<NodeFileSystem['rename']>): Promise<void> {
        if (args[3] === 'certs' && typeOf(from) === 'link') {
          renameSync(from, join(root, 'elsewhere'))
          mkdirSync(from)
          writeFileSync(join(from, 'theirs'), '')
        }
        return super.rename(...args)
      }
    }
    const other = new Meanwhile()
    other.time = fs.time
    const [outcome] = await run([directoryPublication(other, { target: from, files: { a: '4' }, publish })])
    t.match(outcome, { error: { reason: 'TargetForeign', published: false, message: /put its content back/ } })
    t.same(contents(from), { theirs: '' })
    t.same(kept(join(root, 'was')), ['lock', 'record'])
  })
}

await t.test('a link goes by hand; one that nobody here has left stays', async (t) => {
  const { root, from, to, fs } = await moved(t)
  const mounted = removePublished(fs, from, { usedBy: () => Promise.resolve('the static pod web mounts it') })
  await t.rejects(mounted, { reason: 'InUse', message: /static pod web/ })
  const record = await readPublication(from)
  await t.rejects(setHold(from, { reason: '', since: Date.now(), until: null }), { message: /was removed/ })
  t.same(await readPublication(from), record)
  const { fs: mortal } = intercepted((call) => {
    if (call === 'sync') throw new Killed()
  }, fs)
  await t.rejects(removePublished(mortal, from, {}))
  await removePublished(fs, from, {})
  t.same(kept(join(root, 'was')), ['lock'])
  t.same(contents(to), { a: '2' })

  // Killed when the link was in its place, and the directory still beside it.
  const stopped = await story(t, undefined, 'link')
  await stopped.publishNew({ a: '2' })
  await stopped.move()
  stopped.fs.time += keep
  const { fs: dying } = intercepted((call) => {
    if (call === 'removeDirectory') throw new Killed()
  }, stopped.fs)
  await t.rejects(relocate(dying, stopped.to, { from: stopped.from, as: 'link', keep }))
  t.same([typeOf(stopped.from), kept(join(stopped.root, 'was')).includes('staging')], ['link', true])
  await removePublished(fs, stopped.from, {})
  t.same(readdirSync(join(stopped.root, 'was')).length, 1, 'the lock')

  symlinkSync('../is/tls', from)
  await t.rejects(replaceDirectory(from, { files: { a: '5' } }), { code: 'ELOOP', message: /is a symbolic link/ })
  rmSync(from)
  const other = await moved(t)
  rmSync(other.from)
  symlinkSync('/etc', other.from)
  await t.rejects(replaceDirectory(other.from, { files: { a: '5' } }), { code: 'ELOOP' })
  await t.rejects(removePublished(fs, other.from, {}), { reason: 'TargetForeign', message: /another type/ })
  t.equal(readlinkSync(other.from), '/etc')
})

await t.test('the link of one move becomes that of another', async (t) => {
  const { root, from, to, fs } = await moved(t)
  const next = join(root, 'is/next')
  await replaceDirectory(next, { files: { a: '6' } })
  const move = () => relocate(fs, next, { from, as: 'link', keep })
  t.match(await move(), { state: 'both' })
  t.same([typeOf(from), contents(from)], ['directory', { a: '6' }], 'both are kept up to date')
  fs.time += keep
  t.match(await move(), { state: 'done' })
  t.equal(readlinkSync(from), '../is/next')
  t.same(contents(to), { a: '2' })
})
