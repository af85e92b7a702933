/** `history`: earlier contents stay beside a target, for no flush more; whole by their digest, or reported as damaged. */
import { closeSync, fstatSync, openSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { setHold } from '../../../src/durable/operator/hold.js'
import { pruneHistory, readHistory } from '../../../src/durable/look/read-history.js'
import { publish } from '../../../src/durable/publish/publish.js'
import { directoryPublication } from '../../../src/durable/publish/replace.js'
import { rollBack } from '../../../src/durable/operator/rollback.js'
import { knownContent, removeTarget } from '../../../src/durable/single-calls/swap-places.js'
import type { HistoryLimits } from '../../../src/durable/types.js'
import { forever, objectOf, scene, secret, textAt, without } from '../history-scene.js'
import { beside, failure, intercepted } from '../intercepted.js'
import { contents, kept, modeOf } from '../scratch.js'

// Under load, the disk is slow.

await t.test('the last contents stay, as they were, for their owner alone; those before them go', async (t) => {
  const { root, target, fs, replace, generations, past } = scene(t)
  for (const text of ['1', '2', '3', '4']) {
    fs.clock += 60_000
    await replace(text, { objects: [objectOf(text)] })
  }
  t.strictSame(await past(), ['4 present', '3 whole', '2 whole'])
  t.strictSame(kept(root), ['generation', 'generation', 'lock', 'record'])
  const [second = '', third = ''] = generations()
  t.strictSame(contents(second), { 'certs/tls.crt': '2', 'certs/sub/tls.key': '2' })
  t.strictSame(contents(third), { 'certs/tls.crt': '3', 'certs/sub/tls.key': '3' })
  t.equal(modeOf(second), '700')
  t.equal(modeOf(join(second, 'certs')), '750')
  t.equal(modeOf(join(second, 'certs/sub/tls.key')), '440')
  const [, newest] = (await readHistory(fs, target)) ?? []
  t.match(newest, { why: 'published', objects: [secret('3')], publishedAt: new Date(fs.clock - 60_000) })
  t.strictSame(newest?.replacedAt, new Date(fs.clock))
})

await t.test('a generation has new inodes: a publication unlinks the old ones, as without history', async (t) => {
  const { target, replace, generations } = scene(t)
  await replace('1')
  const open = openSync(join(target, 'tls.crt'), 'r')
  t.teardown(() => closeSync(open))
  await replace('2')
  t.equal(fstatSync(open).nlink, 0)
  const [first = ''] = generations()
  t.equal(statSync(join(first, 'certs/tls.crt')).nlink, 1)
})

await t.test('a publication with history takes no sync and no write-out more than without', async (t) => {
  const counted = async (history: HistoryLimits): Promise<string[]> => {
    const { fs, replace, replaceBy } = scene(t)
    await replace('1', { history })
    await replace('2', { history })
    const calls: string[] = []
    const { fs: watched } = intercepted((call) => calls.push(call), fs)
    await replaceBy(watched, '3', { history })
    return calls.filter((call) => call === 'sync' || call === 'startWriteOut')
  }
  const without = await counted(forever(0))
  t.strictSame(without, ['startWriteOut', 'sync', 'sync'])
  t.strictSame(await counted(forever(5)), without)
})

await t.test('an unchanged publication removes the generations beyond its new limits at once', async (t) => {
  const { root, fs, replace, replaceBy, past } = scene(t)
  const history = forever(4)
  for (const text of ['1', '2', '3', '4', '5']) {
    fs.clock += 60_000
    await replace(text, { history })
  }
  t.match(await replace('5', { history: forever(3) }), { outcome: 'unchanged' })
  t.strictSame(await past(), ['5 present', '4 whole', '3 whole', '2 whole'])
  t.match(await replace('5', { history: { keep: 3, maxAge: 120_000 } }), { outcome: 'unchanged' })
  t.strictSame(await past(), ['5 present', '4 whole', '3 whole'], 'by when they were replaced')
  fs.clock -= 3_600_000
  await replace('5', { history: { keep: 3, maxAge: 120_000 } })
  t.strictSame(await past(), ['5 present', '4 whole', '3 whole'], 'a clock that is set back makes nothing older')
  const calls: string[] = []
  await replaceBy(intercepted((call) => calls.push(call), fs).fs, '5', { history: forever(0) })
  t.strictSame(kept(root), ['lock', 'record'])
  t.ok(calls.lastIndexOf('sync') > calls.lastIndexOf('removeDirectory'), 'durably')
})

await t.test(
  'historyMaxAge counts from the newest known time where a clock in the past replaced a content',
  async (t) => {
    const { fs, replace, past } = scene(t)
    const [minute, hour, month] = [60_000, 3_600_000, 30 * 24 * 3_600_000]
    const history = { keep: 3, maxAge: hour }
    await replace('1', { history })
    fs.set(-month)
    await replace('2', { history })
    await replace('3', { history })
    fs.boot = 'second'
    fs.set(month)
    fs.clock += minute
    t.match(await replace('3', { history }), { outcome: 'unchanged' })
    t.strictSame(await past(), ['3 present', '2 whole', '1 whole'])
    fs.clock += hour
    await replace('3', { history })
    t.strictSame(await past(), ['3 present'])
  },
)

await t.test('historyMaxAge counts the time since the replacement, however the clock was set meanwhile', async (t) => {
  const { fs, replace, past } = scene(t)
  const [minute, hour, month] = [60_000, 3_600_000, 30 * 24 * 3_600_000]
  const history = { keep: 3, maxAge: hour }
  await replace('1', { history })
  fs.clock += 2 * month
  fs.set(-month)
  await replace('2', { history })
  fs.set(month)
  fs.clock += minute
  t.match(await replace('2', { history }), { outcome: 'unchanged' })
  t.strictSame(await past(), ['2 present', '1 whole'], 'the clock stood back at the replacement alone')
  fs.set(-2 * month)
  fs.clock += hour
  await replace('2', { history })
  t.strictSame(await past(), ['2 present', '1 whole'], 'a clock that is set back makes nothing older')
  fs.set(2 * month)
  await replace('3', { history })
  fs.boot = 'second'
  fs.clock += minute
  await replace('3', { history })
  t.strictSame(await past(), ['3 present', '2 whole'])
  fs.clock += hour
  await replace('3', { history })
  t.strictSame(await past(), ['3 present'], 'after another boot, the clock on the wall counts')
})

await t.test('a publication removes content from an object that is gone, and keeps none of it', async (t) => {
  const { target, fs, replace, past } = scene(t)
  await replace('1', { objects: [objectOf('a'), objectOf('b')] })
  await replace('2', { objects: [objectOf('b')] })
  await replace('3', { objects: [objectOf('b')] })
  t.strictSame(await past(), ['3 present', '2 whole', '1 whole'])
  await replace('3', { history: without('a', forever(2)) })
  t.strictSame(await past(), ['3 present', '2 whole'])
  await replace('4', { objects: [objectOf('c')] })
  t.strictSame(await past(), ['4 present', '3 whole', '2 whole'])
  t.equal(await pruneHistory(fs, target, without('other', forever(2)), {}), 0)
  const synced: string[] = []
  const { fs: watched } = intercepted((call) => synced.push(call), fs)
  t.equal(await pruneHistory(watched, target, without('b', forever(2)), {}), 2)
  t.ok(synced.lastIndexOf('sync') > synced.lastIndexOf('removeDirectory'), 'durably')
  t.strictSame(await past(), ['4 present'])
  t.equal(await pruneHistory(fs, target, without('b', forever(2)), {}), 0)
  await replace('5', { history: without('c', forever(2)) })
  t.strictSame(await past(), ['5 present'])
})

await t.test('readHistory beside a publication at any instant does not call present content damaged', async (t) => {
  const wrong: string[] = []
  const look = async (at: number): Promise<boolean> => {
    const { target, fs, replace } = scene(t)
    for (const text of ['1', '2', '3']) await replace(text)
    let calls = 0
    const past = await readHistory(
      beside(
        fs,
        () => ++calls === at,
        () => replace('4'),
      ),
      target,
    )
    if (past?.every(({ state }) => state !== 'damaged') !== true) {
      wrong.push(`${at}: ${past?.map(({ sequence, state }) => `${sequence} ${state}`).join() ?? 'nothing'}`)
    }
    return calls >= at
  }
  let at = 1
  while (await look(at)) at++
  t.ok(at > 10, `${at} instants`)
  t.strictSame(wrong, [])
})

await t.test('a target that is removed takes its earlier contents with it', async (t) => {
  const { root, target, fs, replace } = scene(t)
  await replace('1')
  await replace('2')
  const opened = await fs.openPath(target)
  const known = await knownContent(fs, opened).finally(() => fs.close(opened))
  t.equal(await removeTarget(fs, target, known), undefined)
  t.strictSame(kept(root), ['lock'])
})

await t.test('a caller without history options leaves the history as it is', async (t) => {
  const { target, fs, replace, past } = scene(t)
  await replace('1')
  await replace('2')
  const files = { other: '3' }
  await publish([directoryPublication(fs, { target, files })])
  await publish([directoryPublication(fs, { target, files: { other: '4' } })])
  t.strictSame(await past(), ['4 present', '3 whole', '2 whole'])
})

await t.test('readHistory reports a damaged generation, and leaves a missing one out', async (t) => {
  const { target, fs, replace, generations } = scene(t)
  await replace('1')
  await replace('2')
  await replace('3')
  const [first = '', second = ''] = generations()
  writeFileSync(join(first, 'certs/tls.crt'), 'edited')
  rmSync(join(second, 'certs'), { recursive: true })
  const states = (await readHistory(fs, target))?.map(({ state, problem }) => [state, problem])
  t.match(states, [
    ['present', undefined],
    ['damaged', /^it cannot be read: .*ENOENT/],
    ['damaged', 'it is not what was published'],
  ])
  rmSync(second, { recursive: true })
  t.equal((await readHistory(fs, target))?.length, 2)
  await replace('4')
  t.match(await readHistory(fs, target), [{ state: 'present' }, { state: 'whole' }, { state: 'damaged' }])
})

await t.test('a repair keeps no copy of drift, and its record says driftRepaired', async (t) => {
  const { target, fs, replace } = scene(t)
  await replace('1')
  writeFileSync(join(target, 'tls.crt'), 'edited')
  t.match(await readHistory(fs, target), [{ state: 'damaged', problem: 'somebody has changed it since' }])
  await replace('1')
  t.match(await readHistory(fs, target), [{ state: 'present', why: 'driftRepaired' }])
  await replace('2')
  t.match(await readHistory(fs, target), [
    { state: 'present', why: 'published' },
    { state: 'whole', why: 'driftRepaired' },
  ])
})

await t.test('beside a held target nothing goes; a hold carries the history on', async (t) => {
  const { target, fs, replace, past } = scene(t)
  await replace('1')
  await replace('2')
  await setHold(fs, target, { reason: '', since: 0, until: null }, {})
  await replace('2', { history: forever(0) })
  t.equal(await pruneHistory(fs, target, forever(0), {}), 0)
  t.strictSame(await past(), ['3 present', '1 whole'])
  await setHold(fs, target, undefined, {})
  await replace('2', { history: forever(0) })
  t.strictSame(await past(), ['4 present'])
})

await t.test('a failed publication leaves no copy of the present content', async (t) => {
  const { root, fs, replace, replaceBy } = scene(t)
  await replace('1')
  const { fs: failing } = intercepted((call) => {
    if (call === 'rename') throw failure('EIO', 'renameat2')
  }, fs)
  const outcome = await replaceBy(failing, '2').catch((error: unknown) => error)
  t.match(outcome, { code: 'EIO', published: false })
  t.strictSame(kept(root), ['lock', 'record'])
})

await t.test(
  'the symlink form keeps generations beside the target, outside of the directory that consumers mount',
  async (t) => {
    const { root, target, fs, replace, generations, past } = scene(t, 'symlink')
    for (const text of ['1', '2', '3', '4']) {
      fs.clock += 60_000
      await replace(text)
    }
    t.strictSame(await past(), ['4 present', '3 whole', '2 whole'])
    t.strictSame(kept(root), ['generation', 'generation', 'lock', 'record'])
    t.strictSame(contents(generations()[1] ?? ''), { 'certs/tls.crt': '3', 'certs/sub/tls.key': '3' })
    t.matchOnly(readdirSync(target).sort(), [/^\.\.4-/, '..data', 'sub', 'tls.crt'])
    const pin = { reason: '', until: 'released' } as const
    t.match(await rollBack(fs, target, { pin }), { outcome: 'replaced', sequence: 3 })
    t.equal(textAt(join(target, 'sub/tls.key')), '3')
    t.equal(modeOf(join(target, 'sub/tls.key')), '440')
    t.strictSame(await past(), ['5 present', '4 whole', '3 whole', '2 whole'], 'one more until the next look')
    writeFileSync(join(generations()[0] ?? '', 'certs/tls.crt'), 'another')
    t.strictSame((await past()).at(-1), '2 damaged')
    await replace('3', { history: forever(0) })
    t.strictSame(kept(root), ['lock', 'record'])
  },
)
