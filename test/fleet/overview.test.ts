/** Sums and exceptions of a fleet, from nodes and reports as the API server lists them. */
import t, { type Test } from 'tap'
import { longestQuiet } from '../../src/fleet/judge.js'
import { overviewOf, watchFleet, type Overview, type OverviewOptions } from '../../src/fleet/overview.js'
import type { ReportedDirectory } from '../../src/fleet/types.js'
import { refuse } from '../kubernetes/connection/api-server.js'
import { until } from '../until.js'
import { directory, FleetServer, nodesPath, reportsPath, wanted } from './fleet-server.js'

const { signal } = new AbortController()

async function scene(t: Test, names: readonly string[] = ['n1', 'n2']) {
  const server = await FleetServer.start(t)
  for (const name of names) {
    server.putNode(name)
    server.putReport(name)
  }
  const overview = (more: Partial<OverviewOptions> = {}): Promise<Overview> =>
    overviewOf(server.api, { nodes: '', signal, ...more })
  return { server, overview }
}

const states = ({ exceptions }: Overview): string[] =>
  exceptions.map(({ node, directory, state }) => [node, directory, state].filter(Boolean).join(' '))

const since = '2026-01-02T00:00:00Z'
const failed: ReportedDirectory = {
  ...directory,
  path: '/b',
  state: 'Failed',
  reason: 'NoSpace',
  message: 'full',
  since,
}
const pending: ReportedDirectory = { ...directory, path: '/c', state: 'Waiting', objects: [], pending: [wanted] }
const other: ReportedDirectory = { ...directory, path: '/d', objects: [{ ...wanted, name: 'other' }] }

await t.test('each node that is not as it should be is named, the others are counted', async (t) => {
  const { server, overview } = await scene(t)
  server.putReport('n2', { directories: [directory, failed, pending], agentVersion: '2' })
  for (const name of ['n3', 'n4', 'n5', 'n6']) server.putNode(name)
  server.putReport('n4', { nodeUID: 'another' })
  server.putReport('n5', { bootID: 'another' })
  server.putReport('n6', { at: new Date(Date.now() - longestQuiet - 60_000) })
  server.putReport('gone')
  const found = await overview()
  t.match(found, { nodes: 6, reports: 5, directories: { current: 5, waiting: 1, held: 0, failed: 1 } })
  t.strictSame(states(found), [
    'n2 /b Failed',
    'n2 /c Waiting',
    'n3 NoReport',
    'n4 OtherNode',
    'n5 OtherBoot',
    'n6 Silent',
  ])
  t.match(found.exceptions[0], { reason: 'NoSpace', message: 'full', since })
  const { kind, namespace, name, resourceVersion } = wanted
  const older = `not published yet: ${kind} ${namespace}/${name} ${resourceVersion}`
  t.match(found.exceptions[1], { reason: 'Older', message: older, since: undefined })
  t.strictSame(found.agentVersions, [
    { value: '1', nodes: 4 },
    { value: '2', nodes: 1 },
  ])
  t.equal(found.versions, undefined)
})

await t.test('with an object, nodes that have it nowhere are named, and those that are to get it', async (t) => {
  const { server, overview } = await scene(t)
  server.putReport('n1', { directories: [directory, other, failed] })
  server.putReport('n2', { directories: [other] })
  server.putNode('n3')
  server.putReport('n3', { directories: [pending] })
  const found = await overview({ object: wanted })
  t.strictSame(states(found), ['n1 /b Failed', 'n2 NotConfigured', 'n3 /c Waiting'])
  t.match(found.directories, { current: 1, waiting: 1, held: 0, failed: 1 })
  t.strictSame(found.versions, [{ value: '100', nodes: 2 }])
  const one = await overview({ directory: '/d' })
  t.strictSame(states(one), ['n3 NotConfigured'])
  t.match(one.directories, { current: 2 })
})

await t.test(
  'sums count directories that a report had no room for, and say where an object may be in one',
  async (t) => {
    const { server, overview } = await scene(t)
    const summary = { directories: 300, current: 298, waiting: 0, held: 0, failed: 2 }
    server.putReport('n2', { directories: [directory, failed], summary, truncated: true })
    const found = await overview()
    t.match(found.directories, { current: 299, waiting: 0, held: 0, failed: 2 })
    t.strictSame(states(found), ['n2 Truncated', 'n2 /b Failed'])
    t.strictSame(states(await overview({ object: { ...wanted, name: 'x' } })), ['n1 NotConfigured', 'n2 Truncated'])
    server.putReport('n2', { directories: [directory, { ...other, truncated: true }] })
    t.strictSame(states(await overview({ object: wanted })), ['n2 Truncated'])
  },
)

await t.test('a directory that waits is named with what it waits for', async (t) => {
  const { server, overview } = await scene(t, ['n1'])
  const hooks: ReportedDirectory = { ...directory, state: 'Waiting', hooksPending: ['exec sh', 'signal HUP'] }
  const unread: ReportedDirectory = { ...pending, pending: [{ ...wanted, uid: '', resourceVersion: '' }] }
  server.putReport('n1', { directories: [hooks, unread] })
  const { exceptions } = await overview()
  t.match(exceptions, [
    { reason: 'HooksPending', message: 'hooks have not run: exec sh and signal HUP' },
    { reason: 'Older', message: /^not published yet: Secret .*, of which no version is known$/ },
  ])
})

await t.test("an overview has the time of the server's clock", async (t) => {
  const { server, overview } = await scene(t, ['n1'])
  server.ahead = 3 * 60 * 60_000
  const { at } = await overview()
  t.ok(Math.abs(Date.parse(at) - Date.now() - server.ahead) < 60_000, at)
})

await t.test('the earliest end of a certificate is of the directories that were asked for', async (t) => {
  const { server, overview } = await scene(t)
  const [soon, late] = ['2026-02-01T00:00:00Z', '2027-02-01T00:00:00Z']
  const directories = [
    { ...directory, notAfter: late },
    { ...other, notAfter: soon },
  ]
  server.putReport('n2', { directories, summary: { expires: soon } })
  t.same((await overview()).expires, { node: 'n2', at: soon })
  t.same((await overview({ directory: '/a' })).expires, { node: 'n2', at: late })
})

await t.test('a watched fleet is shown anew as its nodes come, report and go', async (t) => {
  const { server } = await scene(t)
  const abort = new AbortController()
  t.teardown(() => abort.abort())
  let latest: (() => Overview) | undefined
  const watching = watchFleet(server.api, { nodes: '', signal: abort.signal, log: server.log }, (now) => (latest = now))
  watching.catch(() => undefined)
  await until('both are current', () => latest?.().directories.current === 2)
  server.putNode('n3')
  await until('a third one lacks its report', () => latest && states(latest()).includes('n3 NoReport'))
  server.putReport('n3', { directories: [failed] })
  await until('it has failed', () => latest?.().directories.failed === 1)
  server.remove(reportsPath, 'n3')
  server.remove(nodesPath, 'n3')
  await until('it is gone', () => latest?.().nodes === 2)
  t.strictSame(latest && states(latest()), [])
  t.equal(latest?.().unanswered, undefined)
  server.answer = (_, reply) => {
    refuse(reply, 503, 'away')
    return true
  }
  server.cut()
  await until('it says that this may be old', () => latest?.().unanswered)
  t.match(latest?.().unanswered, { since: /^\d{4}-/, message: /cut off|closed|HTTP 503/ })
  server.answer = () => false
  await until('both streams go on', () => latest?.().unanswered === undefined)
  abort.abort()
  await t.resolves(watching)
})
