/** The report says in few bytes what the agent knows, and nothing of the content. */
import t from 'tap'
import { isSameReport, largestReport, reportOf, type SnapshotDirectory } from '../../src/fleet/report-status.js'
import type { ReportedObject } from '../../src/fleet/types.js'

const identity = {
  nodeUID: '5f4e2f5c-6a7e-4b9e-9a52-7c1e1f3a9b11',
  bootID: '0d6a3f52-5d4b-4b7e-8d8a-0a6b9f1c2d3e',
  agentID: 'a'.repeat(32),
}
const now = new Date('2026-01-01T00:00:00.123Z')

const object = (index: number): ReportedObject => ({
  kind: 'Secret',
  namespace: 'kube-system',
  name: `serving-certificate-${index}`,
  uid: '3f0c7f0a-0c1f-4a69-8a1e-4a1f0e7f9d21',
  resourceVersion: '123456789',
})

function directory(index: number, change: Partial<SnapshotDirectory> = {}): SnapshotDirectory {
  return {
    path: `/etc/kubernetes/certificates-${index}`,
    state: 'Current',
    reason: 'Published',
    sequence: 12,
    publishedAt: now.toISOString(),
    notAfter: '2027-01-01T00:00:00.000Z',
    objects: [object(0), object(1)],
    confirmed: true,
    ...change,
  }
}

const report = (directories: readonly SnapshotDirectory[], at = now) =>
  reportOf({ agentVersion: '0.2.0', configuration: `sha256:${'c'.repeat(64)}`, directories }, identity, at)
const size = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))
const many = (count: number, change?: Partial<SnapshotDirectory>): SnapshotDirectory[] =>
  Array.from({ length: count }, (_, index) => directory(index, change))

await t.test('a report of ten directories is at most 6 KB, of fifty at most 25 KB', async (t) => {
  t.ok(size(report(many(10))) <= 6_144, `${size(report(many(10)))} bytes`)
  t.ok(size(report(many(50))) <= 25_600, `${size(report(many(50)))} bytes`)
})

await t.test('a report sums up its directories, and is Ready while all of them are current', async (t) => {
  const all = report([directory(0), directory(1, { notAfter: '2026-02-01T00:00:00.000Z' })])
  t.match(all.summary, {
    directories: 2,
    current: 2,
    waiting: 0,
    held: 0,
    failed: 0,
    expires: '2026-02-01T00:00:00.000Z',
  })
  t.match(all.conditions, [{ type: 'Ready', status: 'True', reason: 'AllCurrent' }])
  const mixed = report([directory(0), directory(1, { state: 'Failed' }), directory(2, { state: 'Held' })])
  t.match(mixed.summary, { directories: 3, current: 1, waiting: 0, held: 1, failed: 1 })
  t.match(mixed.conditions, [{ status: 'False', reason: 'Failed' }])
  t.match(report([directory(0, { state: 'Waiting' })]).conditions, [{ reason: 'Waiting' }])
  t.match(report([directory(0, { state: 'Held' })]).conditions, [{ reason: 'Held' }])
  t.equal(all.observedAt, '2026-01-01T00:00:00Z')
})

await t.test('the condition keeps its transition time while its status stays', async (t) => {
  const first = report([directory(0)])
  const later = new Date('2026-01-02T00:00:00Z')
  const snapshot = { agentVersion: '0.2.0', configuration: 'c', directories: [directory(0), directory(1)] }
  const second = reportOf(snapshot, identity, later, first)
  t.equal(second.conditions[0].lastTransitionTime, '2026-01-01T00:00:00Z')
  t.notOk(isSameReport(first, second))
  t.ok(isSameReport(first, { ...first, observedAt: '2030-01-01T00:00:00Z' }), 'only the time differs')
})

await t.test('a directory that is not current keeps the time at which its state began', async (t) => {
  const at = (day: number) => `2026-01-0${day}T00:00:00Z`
  const after = (before: ReturnType<typeof report>, day: number, ...directories: SnapshotDirectory[]) =>
    reportOf({ agentVersion: '0.2.0', configuration: 'c', directories }, identity, new Date(at(day)), before)
  const times = ({ directories }: ReturnType<typeof report>) => directories.map(({ since }) => since)
  const first = report([directory(0), directory(1, { state: 'Held' })])
  t.strictSame(times(first), [undefined, at(1)])
  const second = after(first, 2, directory(0, { state: 'Failed' }), directory(1, { state: 'Held' }))
  t.strictSame(times(second), [at(2), at(1)], 'each has its own')
  t.strictSame(times(after(second, 3, directory(0), directory(1, { state: 'Waiting' }))), [undefined, at(3)])
})

await t.test('a report is cut, and says so, before an API server would refuse it', async (t) => {
  const long = report([directory(0, { state: 'Failed', message: 'x'.repeat(5_000) })])
  t.ok((long.directories[0]?.message?.length ?? 0) <= 256)
  t.equal(long.truncated, true)
  const selected = report([directory(0, { objects: Array.from({ length: 3_000 }, (_, index) => object(index)) })])
  t.ok(size(selected) <= largestReport)
  t.match(selected.directories, [{ truncated: true }])
  const thousands = report([...many(3_000), directory(9_999, { state: 'Failed', message: 'm' })])
  t.ok(size(thousands) <= largestReport)
  t.equal(thousands.summary.directories, 3_001)
  t.ok(
    thousands.directories.some(({ state }) => state === 'Failed'),
    'what has failed stays',
  )
  const sizeWith = (length: number): number =>
    size(report([...many(1_000), directory(9_999, { state: 'Failed', message: 'm'.repeat(length) })]))
  const room = largestReport - sizeWith(0)
  t.equal(sizeWith(room), largestReport, 'it has as many of its directories as fit')
  t.ok(sizeWith(room + 1) < largestReport - 100, 'one directory less')
})
