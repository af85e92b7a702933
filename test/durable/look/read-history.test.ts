/** Looking at the earlier contents of a target, and removing those that are to stay no longer; history.test.ts has how they come. */
import { hash } from 'node:crypto'
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { tryLock } from '../../../native/index.js'
import type { FileSystem } from '../../../src/durable/file-system.js'
import { setHold } from '../../../src/durable/operator/hold.js'
import { namesFor } from '../../../src/durable/path/names.js'
import { pruneHistory, readHistory } from '../../../src/durable/look/read-history.js'
import { NodeFileSystem } from '../../../src/durable/posix/file-system.js'
import { replaceDirectory } from '../../../src/durable/publish/replace.js'
import { forever, objectOf, scene } from '../history-scene.js'
import { failure, intercepted, Killed, Unproven } from '../intercepted.js'
import { kept } from '../scratch.js'

const names = namesFor('certs')
const codeOr = <T>(work: Promise<T>): Promise<unknown> =>
  work.catch((error: unknown) => (error as { code?: unknown }).code ?? 'fails')

await t.test(
  'a target without a publication has no history, and readHistory and pruneHistory make nothing there',
  async (t) => {
    const { root, target, fs } = scene(t)
    const missing = join(root, 'missing/certs')
    t.strictSame(await Promise.all([readHistory(fs, target), readHistory(fs, missing)]), [undefined, undefined])
    t.equal(await codeOr(pruneHistory(fs, missing, forever(0), {})), 0)
    t.equal(await pruneHistory(fs, target, forever(0), {}), 0)
    mkdirSync(target)
    t.equal(await readHistory(fs, target), undefined, "somebody else's directory")
    t.strictSame(readdirSync(root), ['certs'])
  },
)

await t.test('readHistory answers the digest, the objects and the time of each content', async (t) => {
  const { target, fs, replace, replaceBy, generations } = scene(t)
  const at = fs.clock
  const first = await replace('1', { objects: [objectOf('a')] })
  fs.clock += 60_000
  const second = await replace('2', { objects: [objectOf('b')] })
  const { digest } = second
  const published = { sequence: 2, digest, publishedAt: new Date(fs.clock), why: 'published', objects: [objectOf('b')] }
  const earlier = {
    sequence: 1,
    digest: first.digest,
    publishedAt: new Date(at),
    why: 'published',
    objects: [objectOf('a')],
    replacedAt: new Date(fs.clock),
    state: 'whole',
  }
  const present = { ...published, replacedAt: null, state: 'present' }
  t.strictSame(await readHistory(fs, target), [present, earlier])
  let dead = false
  const calls: string[] = []
  const { fs: watched } = intercepted((call, [, name]) => calls.push(`${call} ${String(name)}`), fs)
  await readHistory(watched, target)
  t.strictSame(
    calls.filter((call) => call.startsWith('label')),
    [],
  )
  const looks = () => calls.splice(0).filter((call) => call === `openFile ${names.record(2)}`).length
  t.equal(looks(), 1)
  writeFileSync(join(target, 'sub/more'), 'drift')
  t.match(await codeOr(readHistory(watched, target)), [{ state: 'damaged', problem: /changed it since/ }, earlier])
  t.equal(looks(), 2, 'drift is looked at once more: a publication may be under way')
  rmSync(join(target, 'sub/more'))
  let misses = 1
  const { fs: replaced } = intercepted((call, [, name]) => {
    if (call === 'openFile' && name === names.record(2) && misses-- > 0) throw failure('ENOENT', 'open')
  }, fs)
  t.strictSame(await codeOr(readHistory(replaced, target)), [present, earlier], 'a record that goes while it is read')
  const { fs: killed } = intercepted((call) => {
    dead ||= call === 'rename'
    if (dead) throw new Killed()
  }, fs)
  await replaceBy(killed, '3').catch(() => undefined)
  t.strictSame(await readHistory(fs, target), [present, earlier], 'whatever a publication that was killed has recorded')
  const unreadable = (error: Error) =>
    intercepted((call, args) => {
      if (call === 'openDirectory' && names.isGeneration(String(args[1]))) throw error
    }, fs).fs
  const problem = /^it cannot be read: .*EIO/
  t.match((await readHistory(unreadable(failure('EIO', 'open')), target))?.[1], { state: 'damaged', problem })
  t.equal(await codeOr(readHistory(unreadable(new Error('a defect')), target)), 'fails', 'a defect is no damage')
  const [copy = ''] = generations()
  renameSync(copy, `${copy}.away`)
  t.strictSame(await codeOr(readHistory(fs, target)), [present], 'what has gone as a whole')
  rmSync(target, { recursive: true })
  const gone = { sequence: 3, replacedAt: null, state: 'damaged', problem: 'it is not there any more' }
  t.match(await codeOr(readHistory(fs, target).then((past) => past?.[0])), gone, 'of what the newest record tells')
})

await t.test('pruneHistory answers how many contents went, and the hold that keeps them', async (t) => {
  const { root, target, fs, replace, generations, past } = scene(t)
  await replace('1')
  const lock = openSync(join(root, names.lock), 'r')
  t.ok(tryLock(lock))
  t.equal(await codeOr(pruneHistory(fs, target, forever(0), {})), 0, 'nobody waits where there is none')
  closeSync(lock)
  for (const text of ['2', '3']) await replace(text)
  const again = openSync(join(root, names.lock), 'r')
  t.ok(tryLock(again))
  t.equal(await codeOr(pruneHistory(fs, target, forever(0), {})), 'EAGAIN', 'another process publishes')
  closeSync(again)

  t.equal(await codeOr(pruneHistory(new Unproven(), target, forever(0), { requireProven: true })), 'ENOTSUP')
  t.strictSame(await past(), ['3 present', '2 whole', '1 whole'])
  t.equal(await codeOr(pruneHistory(new Unproven(), target, forever(2), {})), 0)

  const failing = (failed: string, name?: string): FileSystem =>
    intercepted((call, args) => {
      if (call === failed && (name === undefined || args[1] === name)) throw failure('EIO', failed)
    }, fs).fs
  const [first = '', second = ''] = generations()
  const log: string[] = []
  const hear = (_: object, message: string): void => void log.push(message)
  const options = { log: { debug() {}, info: hear, warn: hear, error: hear } }
  const name = first.slice(root.length + 1)
  t.equal(await pruneHistory(failing('openDirectory', name), target, forever(0), options), 1, 'one of two')
  t.matchOnly(log, [/^could not remove a leftover/])
  t.strictSame(generations(), [first])
  t.notSame(first, second)
  const failed = await pruneHistory(failing('sync'), target, forever(0), {}).catch((error: unknown) => error)
  const message = new RegExp(`^could not remove earlier contents of ${target}: sync .*EIO`)
  t.match(failed, { name: 'DurableWriteError', code: 'EIO', published: true, message })
  t.equal(await pruneHistory(fs, target, forever(0), {}), 0, 'what is gone is not counted')
})

await t.test('nothing is removed beside the record of a newer version, nor under a hold in force', async (t) => {
  const { root, target, fs, replace, generations } = scene(t)
  for (const text of ['1', '2', '3']) await replace(text)
  await setHold(fs, target, { reason: '', since: 0, until: fs.clock + 1 }, {})
  t.equal(await pruneHistory(fs, target, forever(0), {}), 0)
  const record = readdirSync(root).find((name) => names.sequenceOf(name) !== undefined) ?? ''
  const [line = ''] = readFileSync(join(root, record), 'utf8').split('\n')
  const newer = JSON.stringify({ ...(JSON.parse(line.slice(65)) as object), version: 2 })
  writeFileSync(join(root, names.record(9)), `${hash('sha256', newer)} ${newer}\n`, { mode: 0o600 })
  t.equal(await codeOr(pruneHistory(fs, target, forever(0), {})), 'ENOTSUP')
  rmSync(join(root, names.record(9)))
  fs.clock += 1
  t.strictSame(kept(root), ['generation', 'generation', 'lock', 'record'])
  const [first = ''] = generations()
  rmSync(first, { recursive: true })
  const order: string[] = []
  class Watched extends NodeFileSystem {
    override tryLock(...args: Parameters<NodeFileSystem['tryLock']>): ReturnType<NodeFileSystem['tryLock']> {
      order.push('lock')
      return super.tryLock(...args)
    }
    override async openFile(parent: number, name: string): Promise<number> {
      if (names.sequenceOf(name) !== undefined) order.push('read')
      return super.openFile(parent, name)
    }
  }
  t.equal(await pruneHistory(new Watched(), target, forever(0), {}), 1, 'what is gone already is not counted')
  t.strictSame(order, ['lock', 'read'], 'what a record says is believed under the lock only')
})

await t.test('a record that says nothing of the past tells of none', async (t) => {
  const { root, target, fs, replace } = scene(t)
  await replace('1', { history: forever(0) })
  mkdirSync(join(root, names.generation(1, '0123456789abcdef')))
  t.match(await codeOr(readHistory(fs, target).then((past) => past?.length)), 1)
  t.equal(await codeOr(pruneHistory(fs, target, forever(0), {})), 0)
})

await t.test('an aborted publication takes nothing from what the record in force keeps', async (t) => {
  const { target, fs, replace } = scene(t)
  for (const text of ['1', '2', '3']) await replace(text)
  const killed = intercepted((call) => {
    if (call === 'rename') throw new Killed()
  }).fs
  killed.removeFile = killed.removeDirectory = () => Promise.reject(new Killed())
  const history = forever(2)
  await replaceDirectory(target, { files: { a: '4' }, history }, killed).catch(() => undefined)
  await pruneHistory(fs, target, forever(1), {})
  const past = await readHistory(fs, target)
  t.strictSame(
    past?.map(({ sequence, state }) => `${sequence} ${state}`),
    ['3 present', '2 whole'],
  )
})

await t.test(
  'beside a damaged record the copies of earlier contents stay where the new content is refused',
  async (t) => {
    const { root, target, fs, replace, generations } = scene(t)
    for (const text of ['1', '2', '3']) await replace(text)
    const before = generations()
    t.equal(before.length, 2)
    const [record = ''] = readdirSync(root).filter((name) => /\.\d+$/.test(name))
    writeFileSync(join(root, record), readFileSync(join(root, record), 'utf8').replace('"version"', '"Version"'))
    writeFileSync(join(target, 'theirs'), '')
    const refused = replaceDirectory(target, { files: { a: '4' }, foreign: 'same-names' }, fs)
    t.match(await refused.catch((error: unknown) => error), { reason: 'TargetForeign' })
    t.strictSame(generations(), before)
  },
)
