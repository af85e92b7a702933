/** The lines that a record gets where only versions have changed. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { applyOutcome } from '../../src/agent/reconcile.js'
import { compareWithRecord } from '../../src/agent/detect-drift.js'
import { DirectoryState, nextEnd } from '../../src/agent/directory-state.js'
import type { PassOutcome } from '../../src/agent/outcome.js'
import { recordHeldBack } from '../../src/agent/record-versions.js'
import { directoryStatus } from '../../src/agent/report/status-file.js'
import { readPublication, replaceDirectory } from '../../src/durable/index.js'
import type { RecordedObject } from '../../src/durable/types.js'
import { silent } from '../../src/log.js'
import { directoryOf } from '../directories/objects.js'
import { scratch } from '../durable/scratch.js'
import { isKind } from '../crash/judge/names.js'

const objects = (...versions: number[]): RecordedObject[] =>
  versions.map((version, index) => ({
    kind: 'Secret',
    namespace: 'ns',
    name: `secret-${index}`,
    uid: 'u',
    resourceVersion: String(version),
    paths: [`secret-${index}`],
  }))

function recordIn(root: string): string {
  const [name, ...others] = readdirSync(root).filter(isKind('record'))
  if (name === undefined || others.length > 0) throw new Error('not one record')
  return readFileSync(join(root, name), 'utf8')
}

const versionsOf = async (path: string) =>
  (await readPublication(path))?.objects.map(({ resourceVersion }) => Number(resourceVersion))

/** A directory of the agent, and what publishes the same content of other versions there. */
function published(path: string) {
  const state = new DirectoryState(directoryOf([], { path }))
  const publish = async (given: RecordedObject[]) => {
    const { outcome: change, digest, sequence } = await replaceDirectory(path, { files: { a: '1' }, objects: given })
    const rest = { warnings: [], certificates: [], hooks: [], unproven: false }
    const outcome: PassOutcome = { kind: 'published', change, digest, sequence, objects: given, ...rest }
    await applyOutcome(state, outcome, silent)
  }
  return { state, publish }
}

await t.test('only what changed is appended, and not again for ten minutes', async (t) => {
  const root = scratch(t)
  const path = join(root, 'target')
  const { state, publish } = published(path)
  await publish(objects(1, 1, 1))
  await publish(objects(1, 2, 1))
  const [, committed, appended, ...more] = recordIn(root).trim().split('\n')
  t.match(committed, '{"settled":true}')
  t.match(appended, /"secret-1".*"resourceVersion":"2"/)
  t.notMatch(appended, 'secret-0')
  t.strictSame(more, [])
  const size = recordIn(root).length
  for (let version = 3; version < 100; version++) await publish(objects(version, version, 1))
  t.equal(recordIn(root).length, size, 'nothing is appended so soon')
  t.strictSame(await versionsOf(path), [1, 2, 1])
  await compareWithRecord(state)
  const known = () => state.facts.objects.map(({ resourceVersion }) => Number(resourceVersion))
  t.strictSame(known(), [99, 99, 1], 'a comparison does not forget what is known')
  await recordHeldBack(state, silent)
  t.equal(recordIn(root).length, size)
  await recordHeldBack(state, silent, { urgent: true })
  t.strictSame(await versionsOf(path), [99, 99, 1], 'at the end, all is recorded')
  t.same(
    (await readPublication(path))?.objects.map(({ paths }) => paths),
    [['secret-0'], ['secret-1'], ['secret-2']],
  )
  const last = recordIn(root)
  await recordHeldBack(state, silent, { urgent: true })
  t.equal(recordIn(root), last)
})

await t.test('the agent records held-back versions as soon as ten minutes are over', async (t) => {
  const { state, publish } = published(join(scratch(t), 'target'))
  await publish(objects(1))
  t.equal(nextEnd(state.facts), undefined)
  await publish(objects(2))
  t.equal(nextEnd(state.facts), undefined, 'it is recorded at once')
  await publish(objects(3))
  const wait = (nextEnd(state.facts) ?? NaN) - Date.now()
  t.ok(wait > 590_000 && wait <= 600_000, String(wait))
  const { record, recordedAt } = state.facts
  state.happened({ kind: 'recorded', objects: record?.objects ?? [], at: recordedAt - 600_000 })
  await recordHeldBack(state, silent)
  t.strictSame(await versionsOf(state.path), [3])
  t.equal(nextEnd(state.facts), undefined)
})

await t.test('a restart reports no older versions than before, also after SIGKILL', async (t) => {
  const path = join(scratch(t), 'target')
  const { state, publish } = published(path)
  for (const version of [7, 8, 10]) await publish(objects(version, 1))
  const restarted = async (more: object = {}) => {
    const next = new DirectoryState(directoryOf([], { path }))
    next.happened({ kind: 'restored', status: { ...directoryStatus(state), ...more } })
    await compareWithRecord(next)
    return next
  }
  const versions = ({ facts }: DirectoryState) => facts.objects.map(({ resourceVersion }) => Number(resourceVersion))
  t.strictSame(await versionsOf(path), [8, 1], 'the last one is held back')
  const next = await restarted()
  t.strictSame(versions(next), [10, 1])
  await recordHeldBack(next, silent)
  t.strictSame(await versionsOf(path), [10, 1], 'and it is recorded')
  t.strictSame(versions(await restarted({ digest: 'sha256:0' })), [10, 1], 'of other content the record says it')
  t.strictSame(versions(await restarted({ objects: objects(9, 1) })), [10, 1], 'the newer of the two')
  const another = objects(11, 1).map((object) => ({ ...object, uid: 'another' }))
  t.strictSame(versions(await restarted({ objects: another })), [10, 1], 'another object says nothing of this one')
})

await t.test('that the content is another object’s is recorded at once', async (t) => {
  const path = join(scratch(t), 'target')
  const { publish } = published(path)
  await publish(objects(1, 1))
  await publish(objects(2, 1))
  await publish(objects(3, 1))
  t.strictSame(await versionsOf(path), [2, 1], 'a newer version has time')
  await publish(objects(4, 1).map((object, index) => (index === 0 ? { ...object, uid: 'another' } : object)))
  t.strictSame(await versionsOf(path), [4, 1])
  t.match(await readPublication(path), { objects: [{ uid: 'another' }, { uid: 'u' }] })
})

await t.test('a record that cannot be appended to is reported, and no more', async (t) => {
  const root = scratch(t)
  const parent = join(root, 'parent')
  const path = join(parent, 'target')
  const { digest, sequence } = await replaceDirectory(path, { files: { a: '1' }, objects: objects(1) })
  const state = new DirectoryState(directoryOf([], { path }))
  await compareWithRecord(state)
  rmSync(parent, { recursive: true })
  writeFileSync(parent, '')
  const warnings: string[] = []
  const log = { ...silent, warn: (_: object, message: string) => void warnings.push(message) }
  const outcome = { kind: 'published' as const, change: 'unchanged' as const, digest, sequence, objects: objects(2) }
  await applyOutcome(state, { ...outcome, warnings: [], certificates: [], hooks: [], unproven: false }, log)
  t.matchOnly(warnings, [/target: could not record the newest versions of its objects: .*is not a directory/])
  t.equal(warnings.length, 1)
  t.equal(state.facts.intact, true)
})
