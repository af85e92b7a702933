/** What `fleet wait` takes for a proof: the end of the streams is judged anew, by one more list of each collection. */
import t, { type Test } from 'tap'
import { longestQuiet } from '../../src/fleet/judge.js'
import { waitForObject, type WaitOptions, type WaitResult } from '../../src/fleet/wait.js'
import { until } from '../until.js'
import { directory, FleetServer, nodesPath, reportsPath, secretsPath, wanted } from './fleet-server.js'

const older = { ...directory, objects: [{ ...wanted, resourceVersion: '99' }] }

/** Two nodes that have the object. */
async function scene(t: Test, names: readonly string[] = ['n1', 'n2']) {
  const server = await FleetServer.start(t)
  server.putSecret()
  for (const name of names) {
    server.putNode(name)
    server.putReport(name)
  }
  const ending = new AbortController()
  t.teardown(() => ending.abort())
  const counts: { done: number; nodes: number }[] = []
  const wait = (change: Partial<WaitOptions> = {}): Promise<WaitResult> =>
    waitForObject(server.api, {
      kind: 'Secret',
      namespace: 'ns',
      name: 'ca',
      nodes: 'kubernetes.io/os=linux',
      reportedOnly: false,
      ignoreSilent: false,
      signal: ending.signal,
      log: server.log,
      progress: (now) => void counts.push(now),
      ...change,
    })
  const counted = (done: number, nodes: number) =>
    until(`${done} of ${nodes}`, () => counts.at(-1)?.done === done && counts.at(-1)?.nodes === nodes)
  /** Ends the wait as soon as so many of the nodes have it. */
  const stopped = async (done: number, nodes: number, change: Partial<WaitOptions> = {}): Promise<WaitResult> => {
    const over = new AbortController()
    counts.length = 0
    const waiting = wait({ ...change, signal: over.signal })
    await counted(done, nodes)
    over.abort()
    return waiting
  }
  return { server, wait, counted, stopped, end: () => ending.abort() }
}

const obstacles = ({ nodes }: WaitResult): Record<string, string> =>
  Object.fromEntries(nodes.flatMap(({ node, obstacle }) => (obstacle === undefined ? [] : [[node, obstacle]])))

await t.test('wait is done once each node has it, and reads metadata of the one object alone', async (t) => {
  const { server, wait } = await scene(t)
  t.match(await wait(), { ended: 'done', isAnswered: true, wanted, nodes: [{ node: 'n1' }, { node: 'n2' }] })
  const [first] = server.requests(secretsPath)
  t.equal(first?.searchParams.get('fieldSelector'), 'metadata.name=ca')
  for (const accept of server.accepted(secretsPath))
    t.match(accept, /^application\/json;as=PartialObjectMetadata(List)?;/)
  t.equal(server.requests(nodesPath)[0]?.searchParams.get('labelSelector'), 'kubernetes.io/os=linux')
})

await t.test(
  'wait lists the object, the nodes and the reports once more before it is done, in this order',
  async (t) => {
    const { server, wait } = await scene(t)
    await wait()
    t.strictSame(server.listed.slice(-3), [secretsPath, nodesPath, reportsPath])
    t.equal(server.listed.length, 6)
  },
)

await t.test('a Node that the stream has not brought yet keeps wait from being done', async (t) => {
  const { server, wait, counted } = await scene(t)
  server.putReport('n2', { directories: [older] })
  const waiting = wait()
  await counted(1, 2)
  server.holdUp(nodesPath)
  server.putNode('n3')
  server.putReport('n2')
  const began = performance.now()
  const lists = () => server.requests(reportsPath, 'list').length
  await until('it has listed once more', () => lists() >= 2)
  // Streams that say otherwise than the list are waited for, with a pause between two lists.
  await until('it has listed a third time', () => lists() >= 3)
  t.ok(performance.now() - began >= 1_900, `${lists()} lists`)
  server.goOn(nodesPath)
  await counted(2, 3)
  server.putReport('n3')
  t.match(await waiting, { ended: 'done', nodes: { length: 3 } })
})

await t.test('a report that went back behind the stream keeps wait from being done', async (t) => {
  const { server, wait, counted, end } = await scene(t)
  server.putReport('n2', { directories: [older] })
  const waiting = wait()
  await counted(1, 2)
  await until('it watches', () => server.requests(reportsPath, 'watch').length === 1)
  server.putReport('n2')
  server.holdUp(reportsPath)
  server.putReport('n2', { directories: [{ ...directory, state: 'Failed', reason: 'PublishFailed' }] })
  await until('it has listed once more', () => server.requests(reportsPath, 'list').length >= 2)
  server.goOn(reportsPath)
  await counted(1, 2)
  end()
  t.match(obstacles(await waiting), { n2: 'Failed' })
})

await t.test('an object that is deleted or replaced behind the stream ends wait with that', async (t) => {
  for (const how of ['deleted', 'replaced'] as const) {
    const { server, wait, counted } = await scene(t)
    server.putReport('n2', { directories: [older] })
    const waiting = wait()
    await counted(1, 2)
    server.holdUp(secretsPath)
    if (how === 'deleted') server.remove(secretsPath, 'ca')
    else server.putSecret({ uid: 'u2', resourceVersion: '200' })
    server.putReport('n2')
    t.match(await waiting, { ended: 'gone', wanted }, how)
  }
})

await t.test('an object that is deleted or replaced before each node has it ends wait at once', async (t) => {
  for (const how of ['deleted', 'replaced', 'never there'] as const) {
    const { server, wait, counted } = await scene(t)
    if (how === 'never there') server.remove(secretsPath, 'ca')
    server.putReport('n2', { directories: [older] })
    const waiting = wait()
    if (how !== 'never there') await counted(1, 2)
    if (how === 'deleted') server.remove(secretsPath, 'ca')
    if (how === 'replaced') server.putSecret({ uid: 'u2', resourceVersion: '200' })
    t.match(await waiting, { ended: 'gone', wanted: how === 'never there' ? undefined : wanted }, how)
  }
})

await t.test(
  'an object of another name, which a proxy without the fieldSelector lets through, is not the object',
  async (t) => {
    const { server, wait, counted } = await scene(t)
    const other = (version: string) =>
      server.put(secretsPath, { metadata: { name: 'aa', namespace: 'ns', uid: 'u9', resourceVersion: version } })
    other('90')
    server.putReport('n2', { directories: [older] })
    const waiting = wait()
    await counted(1, 2)
    other('1300')
    server.remove(secretsPath, 'aa')
    server.putReport('n2')
    t.match(await waiting, { ended: 'done', wanted })
  },
)

await t.test('a newer version of the object changes nothing in the version that wait asks for', async (t) => {
  const { server, wait, counted, stopped } = await scene(t)
  server.putReport('n2', { directories: [older] })
  const waiting = wait()
  await counted(1, 2)
  server.putSecret({ resourceVersion: '150' })
  server.putReport('n2')
  t.match(await waiting, { ended: 'done', wanted: { resourceVersion: '100' } })
  t.match(await stopped(0, 2), { ended: 'aborted', wanted: { resourceVersion: '150' } })
  t.match(await wait({ resourceVersion: '99' }), { ended: 'done', wanted: { resourceVersion: '99' } })
})

await t.test('a Node that is deleted meanwhile does not block, and no Node at all is no proof', async (t) => {
  const { server, wait, counted } = await scene(t)
  server.remove(reportsPath, 'n2')
  const waiting = wait()
  await counted(1, 2)
  server.remove(nodesPath, 'n2')
  t.match(await waiting, { ended: 'done', nodes: [{ node: 'n1' }] })
  server.remove(nodesPath, 'n1')
  t.match(await wait(), { ended: 'no-nodes', nodes: { length: 0 } })
})

await t.test(
  'a node without a report blocks, as one without a status, unless reported nodes alone count',
  async (t) => {
    const { server, wait, stopped } = await scene(t)
    server.putNode('n3')
    server.putNode('n4')
    server.put(reportsPath, { metadata: { name: 'n4' } })
    const result = await stopped(2, 4)
    t.match(result, { ended: 'aborted', isAnswered: true })
    t.strictSame(obstacles(result), { n3: 'NoReport', n4: 'NoReport' })
    t.match(await wait({ reportedOnly: true }), { ended: 'done', nodes: { length: 2 } })
    for (const name of ['n1', 'n2']) server.remove(reportsPath, name)
    t.match(await wait({ reportedOnly: true }), { ended: 'no-nodes' }, 'no node that reports is no proof')
  },
)

await t.test("a report's age counts by the server's clock, whatever this machine's clock says", async (t) => {
  const hour = 60 * 60_000
  const ahead = await scene(t, [])
  ahead.server.ahead = 3 * hour
  for (const name of ['n1', 'n2']) {
    ahead.server.putNode(name)
    ahead.server.putReport(name)
  }
  t.match(await ahead.wait(), { ended: 'done' })
  const old = await scene(t)
  old.server.ahead = 3 * hour
  old.server.putReport('n2')
  const result = await old.stopped(1, 2)
  t.strictSame(obstacles(result), { n1: 'Silent' })
  t.match(await old.wait({ ignoreSilent: true }), { ended: 'done' })
})

await t.test("another writer's change does not make a silent report a fresh one", async (t) => {
  const { server, stopped } = await scene(t)
  const at = new Date(Date.now() - longestQuiet - 60_000)
  const others = [
    { manager: 'kubectl', subresource: 'status', time: new Date().toISOString() },
    { manager: 'holdfast-agent-n1', time: new Date().toISOString() },
  ]
  server.putReport('n1', { at, managedFields: others })
  t.strictSame(obstacles(await stopped(1, 2)), { n1: 'Silent' })
})

await t.test(
  'a server that is away for a moment, and a version that it has forgotten, change nothing in the answer',
  async (t) => {
    const { server, wait, counted } = await scene(t)
    server.putReport('n2', { directories: [older] })
    const waiting = wait()
    await counted(1, 2)
    for (const path of [nodesPath, reportsPath, secretsPath]) {
      server.refuseOnce(path, 'watch', 410)
      server.refuseOnce(path, 'list', 503)
    }
    server.cut()
    await until('it has listed anew', () => server.requests(reportsPath, 'list').length >= 3)
    server.putReport('n2')
    t.match(await waiting, { ended: 'done' })
  },
)

await t.test('an API server that denies or is away during the last reads is asked again', async (t) => {
  const { server, wait, counted } = await scene(t)
  server.putReport('n2', { directories: [older] })
  const waiting = wait()
  await counted(1, 2)
  server.refuseOnce(secretsPath, 'list', 403)
  server.refuseOnce(reportsPath, 'list', 503)
  server.putReport('n2')
  t.match(await waiting, { ended: 'done' })
  t.matchOnly(
    server.warnings,
    [/^the last reads fail, and are made again: Secret ns\/ca: list failed with HTTP 403/],
    'wait warns once',
  )
})

await t.test('the end of the time ends wait with what is missing, also before any answer', async (t) => {
  const { server, wait } = await scene(t)
  server.answer = () => true
  t.match(await wait({ signal: AbortSignal.timeout(300) }), { ended: 'aborted', isAnswered: false })
})

await t.test('a time that is over before the wait begins ends it at once', async (t) => {
  const { server, wait } = await scene(t)
  server.putNode('n3')
  t.match(await wait({ signal: AbortSignal.abort() }), { ended: 'aborted' })
})

await t.test('a refused read ends wait with its error', async (t) => {
  const { server, wait } = await scene(t)
  server.refuseOnce(reportsPath, 'list', 404)
  await t.rejects(wait(), { message: /the cluster has no definition of it: kubectl apply -k deploy\/fleet/ })
})
