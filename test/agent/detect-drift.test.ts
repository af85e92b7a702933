/** What a directory is found to be when the agent takes it on, and what differs on its disk later. */
import { appendFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { compareWithRecord, detectDrift, startDirectory } from '../../src/agent/detect-drift.js'
import { DirectoryState, isAhead } from '../../src/agent/directory-state.js'
import { replaceDirectory } from '../../src/durable/index.js'
import { silent } from '../../src/log.js'
import { directoryOf } from '../directories/objects.js'
import { scratch } from '../durable/scratch.js'
import { published } from './outcome-scene.js'

const earlier = '2026-01-01T00:00:00.000Z'

function scene(t: Test) {
  const root = scratch(t)
  const state = new DirectoryState(directoryOf([], { path: join(root, 'target') }))
  const drifts: string[] = []
  const lines: string[] = []
  const line = (_: object, message: string) => void lines.push(message)
  const metrics = { drift: (path: string) => void drifts.push(path) }
  return { state, drifts, lines, reports: { log: { ...silent, warn: line, error: line }, metrics } }
}

await t.test('nothing is published yet', async (t) => {
  const { state, drifts, lines, reports } = scene(t)
  await startDirectory(state, reports)
  t.match(state.facts.published, { status: 'False', reason: 'SourceUnavailable', message: 'nothing is published yet' })
  t.match(state.facts.fresh, { status: 'False', reason: 'NotConfirmed' })
  t.equal(state.facts.intact, false)
  t.strictSame(drifts, [])
  t.strictSame(lines, [])
})

await t.test('an unchanged publication is intact, and keeps its transition time', async (t) => {
  const { state, drifts, reports } = scene(t)
  await replaceDirectory(state.path, { files: { a: '1' } })
  const conditions = [
    { type: 'Published', status: 'True', reason: 'Published', message: 'before', lastTransitionTime: earlier },
    { type: 'Fresh', status: 'True', reason: 'Published', message: 'before', lastTransitionTime: earlier },
  ] as const
  state.happened({ kind: 'restored', status: { conditions, confirmedAt: earlier } })
  await startDirectory(state, reports)
  t.strictSame([state.facts.published, state.facts.fresh], conditions)
  t.equal(state.facts.intact, true)
  t.strictSame(drifts, [])
})

await t.test('a drifted directory is False with the difference, after any earlier run', async (t) => {
  const { state, reports } = scene(t)
  await replaceDirectory(state.path, { files: { a: '1' } })
  appendFileSync(join(state.path, 'a'), '2')
  const published = { type: 'Published', status: 'True', reason: 'Published', message: '' } as const
  state.happened({
    kind: 'restored',
    status: { conditions: [{ ...published, lastTransitionTime: earlier }], confirmedAt: null },
  })
  await startDirectory(state, reports)
  t.match(state.facts.published, { status: 'False', message: /^the disk differs from what was published: a / })
  t.not(state.facts.published?.lastTransitionTime, earlier)
})

await t.test('drift is counted and logged once, until it is repaired', async (t) => {
  const { state, drifts, lines, reports } = scene(t)
  await replaceDirectory(state.path, { files: { a: '1' } })
  await detectDrift(state, reports)
  t.equal(drifts.length, 0)
  writeFileSync(join(state.path, 'foreign'), '')
  await detectDrift(state, reports)
  await detectDrift(state, reports)
  t.equal(drifts.length, 1)
  t.matchOnly(lines, [/target differs from what was published: foreign was not published/])
  t.equal(state.facts.intact, false)
  rmSync(join(state.path, 'foreign'))
  await detectDrift(state, reports)
  t.equal(state.facts.intact, true)
  writeFileSync(join(state.path, 'foreign'), '')
  await detectDrift(state, reports)
  t.equal(drifts.length, 2)
})

await t.test(
  'of many differences, five are named and the others counted; a record that is gone is one, too',
  async (t) => {
    const { state } = scene(t)
    await replaceDirectory(state.path, { files: { a: '1' } })
    for (let count = 0; count < 8; count++) writeFileSync(join(state.path, `foreign-${count}`), '')
    t.match(await compareWithRecord(state), /^(foreign-\d was not published(, )?){5} and 3 more$/)
    rmSync(join(state.path, '..'), { recursive: true })
    mkdirSync(state.path, { recursive: true })
    t.equal(await compareWithRecord(state), 'its publication record is missing')
  },
)

await t.test('the record of other content is drift as soon as the source reports the desired content', async (t) => {
  const object = { kind: 'Secret', namespace: 'n', name: 'a', uid: 'u', resourceVersion: '7', paths: ['a'] }
  const recorded = async (version: string, more = {}) => {
    const found = scene(t)
    const objects = [{ ...object, resourceVersion: version, ...more }]
    const { digest } = await replaceDirectory(found.state.path, { files: { a: version }, objects })
    return { ...found, digest }
  }
  const older = await recorded('7')
  t.equal(await compareWithRecord(older.state), undefined, 'no source has said anything')
  t.equal(older.state.facts.intact, true)
  const passed = (state: DirectoryState, digest = 'sha256:0') => {
    const outcome = { ...published, digest, objects: [{ ...object, resourceVersion: '10' }] }
    state.happened({ kind: 'passed', outcome })
  }
  passed(older.state)
  t.match(await compareWithRecord(older.state), /^its content was published at \S+Z, from Secret n\/a 7 instead of 10$/)
  t.strictSame([older.state.facts.intact, isAhead(older.state.facts)], [false, false])
  passed(older.state, older.digest)
  t.equal(await compareWithRecord(older.state), undefined, 'the same content of older versions')
  t.equal(older.state.facts.intact, true)

  const newer = await recorded('11')
  passed(newer.state)
  t.equal(await compareWithRecord(newer.state), undefined, 'nothing older takes its place')
  t.strictSame([newer.state.facts.intact, isAhead(newer.state.facts)], [true, true])

  const another = await recorded('11', { uid: 'another' })
  passed(another.state)
  t.match(await compareWithRecord(another.state), /from Secret n\/a 11 \(uid another\) instead of 10 \(uid u\)$/)
  appendFileSync(join(another.state.path, 'a'), 'x')
  t.match(await compareWithRecord(another.state), /instead of 10 \(uid u\); a /, 'and what else differs')

  const same = await recorded('10')
  passed(same.state)
  t.match(await compareWithRecord(same.state), /, from the same objects$/)
  same.state.happened({ kind: 'configured', configuration: { ...same.state.configuration, follows: '/srv/new' } })
  t.equal(await compareWithRecord(same.state), undefined, 'an old path gets its content from the new one')
})

await t.test('an unreadable record makes the state neither intact nor published, and forgets nothing', async (t) => {
  const { state, lines, reports } = scene(t)
  const { digest } = await replaceDirectory(state.path, { files: { a: '1' } })
  const parent = join(state.path, '..')
  const away = `${parent}-away`
  t.teardown(() => rmSync(away, { recursive: true, force: true }))
  const unreadable = () => {
    renameSync(parent, away)
    writeFileSync(parent, '')
  }
  await startDirectory(state, reports)
  unreadable()
  await detectDrift(state, reports)
  t.matchOnly(lines, [/could not compare .*target with its record/])
  t.match(state.facts, {
    intact: false,
    record: { digest },
    uncompared: { message: /not a directory/ },
    drift: undefined,
  })
  rmSync(parent)
  renameSync(away, parent)
  await detectDrift(state, reports)
  t.match(state.facts, { intact: true, uncompared: undefined })
  unreadable()
  const published = { type: 'Published', status: 'True', reason: 'Published', message: '' } as const
  const started = new DirectoryState(state.configuration)
  started.happened({
    kind: 'restored',
    status: { conditions: [{ ...published, lastTransitionTime: earlier }], confirmedAt: null },
  })
  await startDirectory(started, reports)
  t.match(started.facts, {
    record: undefined,
    published: { status: 'Unknown', reason: 'TargetUnfit', message: /could not be compared .*not a directory/ },
  })
})
