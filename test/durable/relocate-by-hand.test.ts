/** A directory that a person moves: what goes with it, and what keeps it where it is. */
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { recordOf } from '../../src/durable/old-path.js'
import { readHistory } from '../../src/durable/past.js'
import { readPublication, replaceDirectory, replaceFile, rollBack, setHold } from '../../src/durable/index.js'
import { publish, resultsOf } from '../../src/durable/publish.js'
import { relocateByHand, type HandRelocationOptions } from '../../src/durable/relocate-by-hand.js'
import { directoryPublication } from '../../src/durable/replace.js'
import type { DirectoryRequest, PublicationOptions } from '../../src/durable/types.js'
import { Observed } from './relocation-story.js'
import { contents, modeOf, scratch } from './scratch.js'

function scene(t: Test) {
  const root = scratch(t)
  for (const name of ['was', 'is']) mkdirSync(join(root, name))
  const [from, to] = [join(root, 'was/certs'), join(root, 'is/tls')]
  const fs = new Observed()
  const put = async (target: string, text: string, more: PublicationOptions & Partial<DirectoryRequest> = {}) =>
    resultsOf(await publish([directoryPublication(fs, { target, files: { a: text }, ...more })]))[0]
  const move = (options: Partial<HandRelocationOptions> = {}, goal = to) =>
    relocateByHand(fs, from, goal, { as: 'removed', force: true, ...options })
  /** Refused, and nothing is made at the new path. */
  const refused = async (t: Test, expected: object, options: Partial<HandRelocationOptions> = {}): Promise<void> => {
    await t.rejects(move(options), { name: 'DurableWriteError', published: false, ...expected })
    t.notOk(existsSync(to))
  }
  return { root, from, to, fs, put, move, refused }
}

await t.test('content, modes, limits of the history and what it is kept by go with it', async (t) => {
  const { from, to, fs, put, move } = scene(t)
  const options = { history: { keep: 2, maxAge: null }, attributes: 'keep' as const, emptyDirectories: ['empty'] }
  await put(from, '1', options)
  await put(from, '2', options)
  chmodSync(from, 0o711)
  chmodSync(join(from, 'a'), 0o640)
  t.match(await move(), { state: 'done', as: 'removed' })
  t.notOk(existsSync(from))
  t.strictSame(contents(to), { a: '2' })
  t.ok(statSync(join(to, 'empty')).isDirectory())
  t.equal(modeOf(to), '711')
  t.equal(modeOf(join(to, 'a')), '640')
  await put(to, '3', { attributes: 'keep', history: { keep: 2, maxAge: null } })
  t.equal(modeOf(join(to, 'a')), '640', 'an administrator’s mode stays')
  t.equal((await readHistory(fs, to))?.length, 2, 'what it replaced is kept')
  t.match(await relocateByHand(fs, from, to, { as: 'removed', force: true }), { state: 'done', as: 'removed' })
})

await t.test('a move that is done says so only as long as its content is at the new path', async (t) => {
  const { root, to, from, put, move, refused } = scene(t)
  await put(from, '1')
  t.match(await move(), { state: 'done' })
  renameSync(to, join(root, 'elsewhere'))
  const gone = {
    code: 'ENOENT',
    message: /to .*tls, and is not there any more/,
    advice: /put it back, or publish it again/,
  }
  for (const dryRun of [true, false]) await refused(t, gone, { dryRun })
  renameSync(join(root, 'elsewhere'), to)
  t.match(await move(), { state: 'done' })
})

await t.test('what is not what holdfast published moves only by force', async (t) => {
  const { from, to, put, move, refused } = scene(t)
  await refused(t, { code: 'ENOENT', message: /has published nothing/ })
  await put(from, '1')
  writeFileSync(join(from, 'a'), 'edited')
  writeFileSync(join(from, 'more'), '')
  await refused(
    t,
    { message: /is not what holdfast published: a \(content\).*more \(unexpected\).*--force/ },
    { force: false },
  )
  t.match(await move(), { state: 'done' })
  t.strictSame(contents(to), { a: 'edited', more: '' })
})

await t.test('what is held, rolled back, a file, or an agent’s stays where it is', async (t) => {
  const held = scene(t)
  await held.put(held.from, '1')
  await setHold(held.from, { reason: 'r', since: 1, until: null })
  await held.refused(t, { message: /is held since/ })
  const back = scene(t)
  const history = { keep: 1, maxAge: null }
  await back.put(back.from, '1', { history })
  await back.put(back.from, '2', { history })
  await rollBack(back.from, { pin: { reason: '', until: 'released' } })
  await back.refused(t, { message: /is rolled back since .*holdfast release/ })
  const file = scene(t)
  await replaceFile(file.from, 'text')
  await file.refused(t, {})
  const agents = scene(t)
  await agents.put(agents.from, '1', { publisher: 'agent' })
  await agents.refused(t, { code: 'EBUSY', message: /holdfast agent publishes .*movedFrom/ })
  const installed = scene(t)
  await installed.put(installed.from, '1', { publisher: 'install' })
  await installed.refused(t, { code: 'EBUSY', message: /move only what "replace" has published/ })
})

await t.test('the new path is nobody else’s: other content there, published or not, stays', async (t) => {
  const { root, from, to, put, move } = scene(t)
  await put(from, '1')
  await put(to, 'other')
  await t.rejects(move(), { code: 'EBUSY', message: /holds other content, which holdfast has published there/ })
  await put(to, 'agent’s', { publisher: 'agent' })
  await t.rejects(move(), { code: 'EBUSY', message: /holdfast agent publishes .*is\/tls/ })
  t.strictSame([contents(from), contents(to)], [{ a: '1' }, { a: 'agent’s' }])
  const foreign = join(root, 'is/foreign')
  mkdirSync(foreign)
  writeFileSync(join(foreign, 'theirs'), '')
  await t.rejects(move({}, foreign), { name: 'DurableWriteError', message: /theirs/ })
  t.strictSame(contents(foreign), { theirs: '' })
  const equal = join(root, 'is/equal')
  await put(equal, '1')
  t.match(await move({}, equal), { state: 'done' }, 'equal content is no other')
})

await t.test('what moves to one path does not move to another, and nothing moves to what moves on', async (t) => {
  const { root, from, to, fs, put, move } = scene(t)
  await put(from, '1')
  fs.user1 = 'process 7'
  t.match(await move({ force: false }), { waits: /is in use: process 7/, advice: `have its users open ${to}` })
  const elsewhere = join(root, 'is/elsewhere')
  await t.rejects(move({}, elsewhere), { code: 'EBUSY', message: /moves to .*is\/tls already/ })
  t.notOk(existsSync(elsewhere))
  await t.rejects(relocateByHand(fs, elsewhere, from, { as: 'removed' }), { message: /itself moves to/ })
  t.ok((await readPublication(from))?.movedTo)
  fs.user1 = undefined
  t.match(await move({ force: false }), { state: 'done' })
})

await t.test('a dry run says what would keep it, and makes nothing', async (t) => {
  const { from, to, put, move } = scene(t)
  await put(from, '1')
  await move({ dryRun: true })
  t.notOk(existsSync(to))
  t.strictSame(contents(from), { a: '1' })
  await replaceDirectory(to, { files: { b: '1' } })
  await t.rejects(move({ dryRun: true }), { code: 'EBUSY' })
  t.strictSame(contents(to), { b: '1' })
})

await t.test('of several reasons to stay, the one is said that must go first', async (t) => {
  const { from, put, refused } = scene(t)
  const history = { keep: 1, maxAge: null }
  await put(from, '1', { history })
  await put(from, '2', { history })
  await rollBack(from, { pin: { reason: '', until: 'released' } })
  rmSync(from, { recursive: true })
  await refused(t, { message: /is rolled back since/ })
  await setHold(from, { reason: 'r', since: 1, until: null })
  await refused(t, { message: /is held since/ })
  await setHold(from, undefined)
  await refused(t, { code: 'ENOENT', message: /is not there any more/, advice: 'publish it again first' })
})

await t.test('drift is named, three of it; a copy, and what is no file, are named too', async (t) => {
  const { root, from, put, move, refused } = scene(t)
  await put(from, '1')
  for (const name of ['b', 'c', 'd']) writeFileSync(join(from, name), '')
  await refused(t, { message: /: b \(unexpected\), c \(unexpected\) and d \(unexpected\);/ }, { force: false })
  writeFileSync(join(from, 'e'), '')
  await refused(t, { message: /d \(unexpected\) and 1 more/ }, { force: false })
  for (const name of ['b', 'c', 'd', 'e']) rmSync(join(from, name))
  const copy = join(root, 'copy')
  cpSync(from, copy, { recursive: true, preserveTimestamps: true })
  rmSync(from, { recursive: true })
  renameSync(copy, from)
  await refused(t, { message: /its record is of another one, as after a copy/ }, { force: false })
  symlinkSync('a', join(from, 'link'))
  await refused(t, { code: 'EINVAL', message: /certs\/link is no file/ })
  rmSync(join(from, 'link'))
  t.match(await move(), { state: 'done' })
})

await t.test('what came from the old path is replaced by what is newer there, and by nothing older', async (t) => {
  const { from, to, fs, put, move } = scene(t)
  await put(from, '1')
  t.match(await move(), { state: 'done' })
  fs.time += 1
  await put(from, '2')
  t.match(await move(), { state: 'done' }, 'newer')
  t.strictSame([contents(to), existsSync(from)], [{ a: '2' }, false])
  await put(from, '3')
  fs.time += 1
  await put(to, '4')
  await t.rejects(move(), { code: 'EBUSY', message: /holds other content/ })
  t.strictSame([contents(from), contents(to)], [{ a: '3' }, { a: '4' }])
})

await t.test('it stops when it is told to, and a dry run leaves nothing open', async (t) => {
  const { from, to, put, move } = scene(t)
  await put(from, '1')
  const signal = AbortSignal.abort()
  const stopped = await move({ signal }).then(
    () => 'moved',
    () => 'stopped',
  )
  t.equal(stopped, 'stopped')
  t.strictSame([existsSync(from), existsSync(to)], [true, false])
  t.match(await move({ dryRun: true }), {})
  t.strictSame(contents(from), { a: '1' })
  t.match(await move(), { state: 'done' })
})

await t.test('what does not keep its attributes does not keep them after the move', async (t) => {
  const { from, to, fs, put, move } = scene(t)
  await put(from, '1')
  t.match(await move(), { state: 'done' })
  t.notOk((await recordOf(fs, to))?.keepsAttributes)
  await put(from, '1', { attributes: 'keep' })
  t.match(await move(), { state: 'done' })
  t.ok((await recordOf(fs, to))?.keepsAttributes)
})
