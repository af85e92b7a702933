/** Each sentence of "exit 0 is a proof" has a report that makes it false. */
import t from 'tap'
import { judgeNode, longestQuiet, obstacles, type FleetReport, type Obstacle } from '../../src/fleet/judge.js'
import type { ReportedDirectory, ReportedObject } from '../../src/fleet/types.js'

const wanted: ReportedObject = { kind: 'Secret', namespace: 'ns', name: 'ca', uid: 'u1', resourceVersion: '100' }
const node = { name: 'n1', uid: 'node-1', bootID: 'boot-1' }
const now = Date.parse('2026-01-01T12:00:00Z')
const options = { now, ignoreSilent: false }

const directory: ReportedDirectory = {
  path: '/a',
  state: 'Current',
  reason: 'Published',
  sequence: 3,
  objects: [wanted],
}
const report: FleetReport = {
  name: 'n1',
  nodeUID: 'node-1',
  bootID: 'boot-1',
  takenAt: now - 60_000,
  directories: [directory],
}

const with_ = (change: Partial<ReportedDirectory>): FleetReport => ({
  ...report,
  directories: [{ ...directory, ...change }],
})
const version = (resourceVersion: string): FleetReport => with_({ objects: [{ ...wanted, resourceVersion }] })

await t.test('a node that reports this version or a newer one has the object', async (t) => {
  for (const each of [report, version('101'), version('1000')]) {
    t.same(judgeNode(node, each, wanted, options), { obstacle: undefined, message: '' })
  }
})

const against: Record<Obstacle, readonly (FleetReport | undefined)[]> = {
  NoReport: [undefined],
  OtherNode: [{ ...report, nodeUID: 'node-0' }],
  OtherBoot: [{ ...report, bootID: 'boot-0' }],
  Silent: [{ ...report, takenAt: now - longestQuiet - 1 }],
  NotConfigured: [
    { ...report, directories: [] },
    with_({ objects: [{ ...wanted, namespace: 'other' }] }),
    with_({ objects: [{ ...wanted, kind: 'ConfigMap' }] }),
  ],
  OtherObject: [with_({ objects: [{ ...wanted, uid: 'u0', resourceVersion: '200' }] })],
  Older: [
    version('99'),
    version('not a number'),
    with_({ objects: [], pending: [wanted], state: 'Waiting' }),
    // One directory has it, the other one is behind.
    {
      ...report,
      directories: [directory, { ...directory, path: '/b', objects: [{ ...wanted, resourceVersion: '9' }] }],
    },
  ],
  Failed: [
    with_({ state: 'Failed', reason: 'DurabilityUnknown' }),
    with_({ state: 'Failed', objects: [], pending: [wanted] }),
    // Another cluster's agent has taken the directory over: its object of that name is another one.
    with_({ state: 'Failed', reason: 'TargetForeign', objects: [{ ...wanted, uid: 'u0' }], pending: [wanted] }),
  ],
  Unproven: [with_({ unproven: true })],
  Held: [
    with_({ state: 'Held', reason: 'Held' }),
    with_({ state: 'Held', reason: 'RolledBack', objects: [{ ...wanted, resourceVersion: '1' }] }),
  ],
  HooksPending: [with_({ state: 'Waiting', hooksPending: ['restart'] })],
  Truncated: [
    with_({ objects: [], truncated: true }),
    { ...report, directories: [directory, { ...directory, objects: [], truncated: true }] },
  ],
}

for (const obstacle of obstacles) {
  await t.test(`${obstacle} keeps a node from having the object`, async (t) => {
    for (const each of against[obstacle]) {
      const verdict = judgeNode(node, each, wanted, options)
      t.equal(verdict.obstacle, obstacle)
      t.not(verdict.message, '')
    }
  })
}

await t.test('a directory whose report is cut has the object that the report still names', async (t) => {
  t.equal(judgeNode(node, with_({ truncated: true }), wanted, options).obstacle, undefined)
})

await t.test('a silent node is told from one whose report does not say when it was taken', async (t) => {
  const message = (takenAt: number): string => judgeNode(node, { ...report, takenAt }, wanted, options).message
  t.equal(message(now - 2 * longestQuiet), 'the last report is 144 minutes old')
  t.match(message(0), /managedFields/)
})

await t.test('a silent node has the object where silence is to be ignored', async (t) => {
  const silent = { ...report, takenAt: 0 }
  t.equal(judgeNode(node, silent, wanted, { now, ignoreSilent: true }).obstacle, undefined)
})
