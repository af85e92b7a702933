/** A directory that a person moves: what each call answers, and what others do to either path meanwhile. */
import { existsSync, mkdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import type { Descriptor, FileSystem, Mount } from '../../src/durable/file-system.js'
import { DurableWriteError } from '../../src/durable/errors.js'
import { replaceDirectory, replaceFile, setHold } from '../../src/durable/index.js'
import { recordOf } from '../../src/durable/old-path.js'
import { relocateByHand, type HandRelocationOptions } from '../../src/durable/relocate-by-hand.js'
import { removePublished } from '../../src/durable/removal.js'
import { failure, intercepted } from './intercepted.js'
import { Observed, story } from './relocation-story.js'
import { silent } from '../../src/log.js'
import { contents } from './scratch.js'

/** Somebody acts before one of the looks for the parent of the new path; both paths are on disks of their own. */
class Disks extends Observed {
  unproven: RegExp | undefined
  act: ((look: number) => Promise<unknown>) | undefined
  looks = 0
  reads = 0
  onRead: ((reads: number) => void) | undefined

  constructor(readonly parent: string) {
    super()
  }

  override async openPath(path: string): Promise<number> {
    if (path === this.parent) await this.act?.(++this.looks)
    return super.openPath(path)
  }

  override async mount(directory: Descriptor): Promise<Mount> {
    const proven = this.unproven?.test(readlinkSync(`/proc/self/fd/${directory}`)) !== true
    return { ...(await super.mount(directory)), proven }
  }

  override openFile(...[parent, name]: Parameters<Observed['openFile']>): Promise<number> {
    if (name === 'a') this.reads += 1
    if (name === 'a') this.onRead?.(this.reads)
    return super.openFile(parent, name)
  }
}

async function scene(...args: Parameters<typeof story>) {
  const { root, from, to } = await story(...args)
  const fs = new Disks(dirname(to))
  const put = (target: string, text: string, more: Partial<Parameters<typeof replaceDirectory>[1]> = {}) =>
    replaceDirectory(target, { files: { a: text }, ...more }, fs)
  /** What it says; of an error, what it says without what nobody has changed. */
  const move = async (options: Partial<HandRelocationOptions> = {}, by: FileSystem = fs) => {
    try {
      return await relocateByHand(by, from, to, { as: 'removed', ...options })
    } catch (error) {
      if (!(error instanceof DurableWriteError)) return { fails: 'by a defect' }
      const { code, published, problem, state, advice } = error
      return { code, published, problem, state, advice }
    }
  }
  const held = () => [from, to].map((path) => (existsSync(path) ? contents(path)['a'] : undefined))
  /** Begins to remove it, and is killed once it has left its place. */
  const leave = async (path: string) => {
    const { fs: failing } = intercepted((call) => {
      if (call === 'removeDirectory') throw failure('EIO', 'unlinkat')
    }, fs)
    const error: unknown = await removePublished(failing, path, { force: true }).catch((one: unknown) => one)
    t.match(error, { published: true })
  }
  return { root, from, to, fs, put, move, held, leave }
}

await t.test('each call says how far it has come, for what it waits, and what to do about that', async (t) => {
  const { from, to, fs, move, held } = await scene(t)
  t.strictSame(await move({ dryRun: true }), {})
  t.strictSame(held(), ['1', undefined])
  fs.user1 = 'process 7'
  const waits = `${from} is in use: process 7`
  const { result, ...first } = { result: undefined, ...(await move()) }
  t.strictSame(first, {
    ...{ state: 'both', as: 'removed', entered: 'both' },
    waits,
    advice: `have its users open ${to}`,
  })
  t.match(result, { outcome: 'unchanged' })
  t.strictSame(await move({ dryRun: true, as: 'link' }), { state: 'both', as: 'removed' }, 'as it has begun')
  await setHold(from, { reason: 'INC-1', since: 1, until: null })
  const kept = `${from} is held since 1970-01-01T00:00:00.001Z (INC-1)`
  const release = `run "holdfast release ${from}"`
  t.strictSame(await move({ dryRun: true }), { state: 'both', as: 'removed', waits: kept, advice: release })
  await setHold(from, undefined)
  fs.user1 = undefined
  t.match(await move(), { state: 'done', as: 'removed', entered: 'done' })
  t.strictSame(await move(), { state: 'done', as: 'removed' })
  t.strictSame(held(), [undefined, '1'])
})

await t.test('to a disk where durability is not proven it moves by force alone, and says so', async (t) => {
  const { from, to, fs, move, held } = await scene(t)
  fs.unproven = /\/is$/
  t.match(await move(), { code: 'ENOTSUP', published: false, problem: new RegExp(`^${from} is on `) })
  t.match(await move({ force: true, requireProven: true }), { problem: new RegExp(`^${to} is on .*not proven`) })
  t.strictSame(await move({ force: true, dryRun: true }), { unproven: true })
  t.strictSame(held(), ['1', undefined])
  t.match(await move({ force: true }), { state: 'done', unproven: true })
  t.strictSame(await move({ force: true }), { state: 'done', as: 'removed', unproven: true })
})

await t.test('a dry run finds what would refuse it, and leaves nothing open', async (t) => {
  const { to, fs, move, held } = await scene(t)
  mkdirSync(to)
  writeFileSync(join(to, 'theirs'), '')
  t.match(await move({ dryRun: true }), {
    published: false,
    problem: /tls was not published by holdfast, and holds files/,
  })
  rmSync(to, { recursive: true })
  const { fs: watched, open } = intercepted(() => undefined, fs)
  t.strictSame(await move({ dryRun: true, force: true }, watched), {})
  t.equal(open.size, 0)
  t.strictSame(held(), ['1', undefined])
})

await t.test('a failure of the system leaves both as they were, and says so', async (t) => {
  const { from, to, fs, move } = await scene(t)
  fs.act = () => Promise.reject(failure('EIO', 'openat2'))
  t.match(await move(), {
    ...{ code: 'EIO', published: false, state: `holdfast left ${from} as it was` },
    problem: `could not move ${from} to ${to}: openat2 ${from}: EIO`,
  })
})

await t.test('what somebody else publishes at the new path meanwhile stays there', async (t) => {
  const meanwhile = async (act: (it: Awaited<ReturnType<typeof scene>>) => Promise<unknown>, there?: string) => {
    const it = await scene(t)
    const { fs, put, to, move, held } = it
    if (there !== undefined) await put(to, there)
    // By then the record of the new path has been read.
    fs.act = async (look) => {
      if (look !== 3) return
      fs.act = undefined
      await act(it)
    }
    const said = await move({ force: true })
    return ['problem' in said ? said.problem.replace(to, 'it') : said, ...held()]
  }
  const refused = 'it was published by another call meanwhile'
  t.strictSame(await meanwhile(({ put, to }) => put(to, '2')), [refused, '1', '2'])
  t.strictSame(await meanwhile(({ put, to }) => put(to, '1', { publisher: 'agent' })), [refused, '1', '1'])
  const drifts = async ({ put, to }: Awaited<ReturnType<typeof scene>>) => {
    await put(to, '2')
    writeFileSync(join(to, 'a'), 'edited')
  }
  t.strictSame(await meanwhile(drifts), [refused, '1', 'edited'])
  t.match(await meanwhile(({ put, to }) => put(to, '1')), [{ state: 'done' }, undefined, '1'], 'the same')
  const leaves = async ({ put, to, leave }: Awaited<ReturnType<typeof scene>>) => {
    await put(to, '2')
    await leave(to)
  }
  t.match(await meanwhile(leaves), [{ state: 'done' }, undefined, '1'], 'and was taken away again')
})

await t.test('other content at the new path stays, unless it came from the old one and is not newer', async (t) => {
  const { from, put, move, held } = await scene(t)
  t.match(await move(), { state: 'done' })
  await put(from, '2')
  t.match(await move(), { state: 'done' }, 'both were published in one millisecond')
  t.strictSame(held(), [undefined, '2'])

  const copied = await scene(t)
  copied.fs.time += 1
  await copied.put(copied.to, 'x', { movedFrom: { from: copied.from, as: 'removed' } })
  t.match(await copied.move({ dryRun: true, force: true }), {}, 'the first copy, which was never followed')
  copied.fs.time += 1
  await copied.put(copied.to, 'y')
  t.match(await copied.move(), {
    ...{ code: 'EBUSY', problem: `${copied.to} holds other content, which holdfast has published there` },
    advice: `see which of the two is wanted, and run "holdfast remove ${copied.to}" before this, or "holdfast remove ${copied.from}" instead`,
  })
  t.strictSame(copied.held(), ['1', 'y'])
})

await t.test('an old path that is back after its move leads again, and one that goes again does not', async (t) => {
  const { from, to, put, move, held, leave } = await scene(t)
  t.match(await move(), { state: 'done' })
  await put(from, '2', { movedTo: to })
  t.match(await move(), { state: 'done' }, 'as from a backup')
  t.strictSame(held(), [undefined, '2'])
  await put(from, '3', { movedTo: to })
  await leave(from)
  t.strictSame(await move(), { state: 'done', as: 'removed' })
  t.strictSame(held(), [undefined, '2'])
})

await t.test('a new path whose removal has begun is published again', async (t) => {
  const { to, fs, move, held, leave } = await scene(t)
  fs.user1 = 'process 7'
  t.match(await move(), { state: 'both' })
  fs.user1 = undefined
  await leave(to)
  t.match(await move(), { state: 'done' })
  t.strictSame(held(), [undefined, '1'])
})

await t.test('of several reasons to stay, the first is said, before anything is made', async (t) => {
  const { root, from, to, put, move, held } = await scene(t)
  writeFileSync(join(from, 'a'), 'edited')
  t.match(await move(), { problem: `${from} is not what holdfast published: a (content)` })
  rmSync(from, { recursive: true })
  await put(from, '0', { movedTo: to })
  rmSync(from, { recursive: true })
  t.match(await move(), {
    ...{ code: 'ENOENT', problem: `${from} is not there any more`, state: 'nothing was changed' },
    advice: `it has moved to ${to}: move that`,
  })
  await put(from, '2', { movedTo: null, movedFrom: { from: to, as: 'removed' } })
  t.match(await move(), { problem: `${from} itself comes from ${to}, and that move has not ended` })
  t.strictSame(held(), ['2', undefined])
  await put(to, '2', { movedTo: from })
  t.match(await move(), {
    problem: `${to} itself moves to ${from}`,
    advice: `run "holdfast relocate ${to} ${from}" to its end`,
  })
  const file = join(root, 'was/file')
  await replaceFile(file, 'text')
  await setHold(file, { reason: '', since: 1, until: null })
  const ofFile = relocateByHand(new Observed(), file, join(root, 'is/file'), { as: 'removed' })
  await t.rejects(ofFile, { code: 'ENOTDIR', advice: 'write it at the new path, and remove it here' })
  t.notOk(existsSync(join(root, 'is/file')))
})

await t.test('what goes or changes while it is read is not moved', async (t) => {
  const { from, fs, move, held } = await scene(t)
  t.strictSame(await move({ dryRun: true }), {})
  const { reads } = fs
  for (const change of [() => rmSync(join(from, 'a')), () => writeFileSync(join(from, 'a'), '2')]) {
    fs.reads = 0
    fs.onRead = (read) => {
      if (read === reads) change()
    }
    t.match(await move({ dryRun: true, force: true }), {
      code: 'EAGAIN',
      problem: `${from}/a changed while it was read`,
    })
    writeFileSync(join(from, 'a'), '1')
  }
  t.strictSame(held(), ['1', undefined])
  t.equal((await recordOf(fs, from))?.sequence, 1)
})

await t.test('what the publication of the new path could not clear up is told to whoever moves it', async (t) => {
  const { from, to, fs, put, move, held } = await scene(t)
  t.match(await move(), { state: 'done' })
  await put(from, '2')
  const { fs: failing } = intercepted((call, [parent]) => {
    if (call === 'removeDirectory' && readlinkSync(`/proc/self/fd/${String(parent)}`) === dirname(to))
      throw failure('EIO', 'unlinkat')
  }, fs)
  const told: string[] = []
  const log = { ...silent, warn: (_: object, message: string) => void told.push(message) }
  t.match(await move({ log }, failing), { state: 'done' })
  t.strictSame(told, ['could not remove the old content; the next run retries'])
  t.strictSame(held(), [undefined, '2'])
})
