/** The API server is killed, away, behind a cut network: the disk stays whole, and missed changes arrive afterwards. */
import t from 'tap'
import { Cluster } from './cluster.js'
import { leftovers, readPublished, readTree } from './disk.js'
import { Gate } from './gate.js'
import { Node } from './node.js'
import { until } from '../until.js'

const cluster = await Cluster.start()
t.teardown(() => cluster.stop())

const oneSecret = {
  allowed: { secrets: ['a'] },
  directories: [{ path: 'certs', contents: [{ secret: 'a' }] }],
}

await t.test('the agent goes on after the API server was killed in mid-watch and started again', async (t) => {
  const namespace = await cluster.namespace()
  await namespace.putSecret('a', { key: '1' })
  const node = await Node.start(t, namespace, oneSecret)
  const { agent } = node
  const target = node.path('certs')
  await agent.ready()

  t.teardown(() => cluster.api.start())
  await cluster.api.kill()
  await until('the lost connection is counted', () =>
    agent.metric('holdfast_watch_restarts_total', { reason: 'connection' }),
  )
  t.equal((await agent.get('/readyz')).status, 200, 'an API server that is away does not change readiness')
  t.equal((await agent.get('/livez')).status, 200)
  t.strictSame(readTree(target), { key: '1' })
  const status = await agent.condition(target, 'Fresh', 'False', 'SourceUnavailable')
  t.match(status.conditions, [{ type: 'Published', status: 'True' }, { type: 'Fresh' }])
  const confirmed = await agent.metric('holdfast_last_confirmed_timestamp_seconds', { directory: target })
  t.ok(confirmed > 0 && confirmed < Date.now() / 1000)

  await cluster.api.start()
  await namespace.putSecret('a', { key: '2' })
  await until('the update is on the disk', () => readPublished(target, 'key') === '2')
  await until(
    'the metric tells of a newer confirmation',
    async () => (await agent.metric('holdfast_last_confirmed_timestamp_seconds', { directory: target })) > confirmed,
  )
  await until(
    'the status tells of a newer confirmation',
    async () => Date.parse((await agent.status(target)).confirmedAt) / 1000 > confirmed,
  )
})

await t.test('an agent that starts without the API server keeps its published content', async (t) => {
  const namespace = await cluster.namespace()
  await namespace.putSecret('a', { key: '1' })
  const node = await Node.start(t, namespace, oneSecret)
  const { agent } = node
  const target = node.path('certs')
  await agent.ready()
  t.equal(await agent.stop(), 0)

  t.teardown(() => cluster.api.start())
  await cluster.api.kill()
  agent.start()
  await agent.ready()
  const status = await agent.condition(target, 'Fresh', 'False', 'NotConfirmed')
  t.equal(status.conditions.find(({ type }) => type === 'Published')?.status, 'True')
  t.strictSame(readTree(target), { key: '1' })
  t.equal(agent.logged('Published').length, 1, 'nothing was published again')

  await cluster.api.start()
  await agent.condition(target, 'Fresh', 'True')
  await namespace.putSecret('a', { key: '2' })
  await until('the update is on the disk', () => readPublished(target, 'key') === '2')
})

await t.test('the agent finds objects that changed and vanished while the network was cut', async (t) => {
  const namespace = await cluster.namespace()
  await namespace.putSecret('a', { key: '1' })
  await namespace.putSecret('b', { key: '1' })
  const gate = await Gate.before(t, cluster.api.port)
  const node = await Node.start(t, namespace, {
    allowed: { secrets: ['a', 'b'] },
    server: gate.url,
    directories: [
      { path: 'changes', contents: [{ secret: 'a' }] },
      { path: 'vanishes', contents: [{ secret: 'b', optional: true }], onMissing: 'remove' },
    ],
  })
  const [changes, vanishes] = [node.path('changes'), node.path('vanishes')]
  await node.agent.ready()
  await until('both are on the disk', () => readPublished(vanishes, 'key') === '1')

  gate.shut()
  await namespace.putSecret('a', { key: '2' })
  await namespace.deleteSecret('b')
  await until('the lost connection is counted', () =>
    node.agent.metric('holdfast_watch_restarts_total', { reason: 'connection' }),
  )
  t.strictSame(readTree(vanishes), { key: '1' }, 'what cannot be asked is not absent')
  gate.open()
  await until('the change is on the disk', () => readPublished(changes, 'key') === '2')
  await until('the vanished object is gone', () => readPublished(vanishes, 'key') === undefined)
  t.equal(gate.passed, 2, 'one connection before the cut, and one after it')
})

// The server's watch cache would answer from memory what etcd has forgotten.
await t.test("the agent recovers without the server's watch cache", async (t) => {
  await cluster.api.kill()
  await cluster.api.start(['--watch-cache=false'])

  for (const [changes, answer] of [
    [5, '410: the history that the watch asks for is compacted'],
    [1, '500: the change is there, what it replaced is compacted'],
  ] as const) {
    await t.test(`the agent recovers from a compaction of etcd while the network is cut; ${answer}`, async (t) => {
      const namespace = await cluster.namespace()
      await namespace.putSecret('a', { key: '0' })
      await namespace.putSecret('b', { key: '0' })
      const gate = await Gate.before(t, cluster.api.port)
      const node = await Node.start(t, namespace, {
        allowed: { secrets: ['a', 'b'] },
        server: gate.url,
        directories: [{ path: 'certs', contents: [{ secret: 'a' }, { secret: 'b', into: 'b' }] }],
      })
      const target = node.path('certs')
      await node.agent.ready()

      gate.shut()
      for (let change = 1; change <= changes; change++) await namespace.putSecret('a', { key: String(change) })
      await cluster.etcd.compact()
      gate.open()
      await until('the last change is on the disk', () => readPublished(target, 'key') === String(changes))
      t.strictSame(readTree(target), { key: String(changes), 'b/key': '0' })
      t.equal(node.agent.logged('HistoryRewound').length, 0)

      await namespace.putSecret('b', { key: '1' })
      await until('the watch goes on', () => readPublished(target, 'b/key') === '1')
    })
  }

  await t.test('the agent recovers from a compaction of etcd while it is down', async (t) => {
    const namespace = await cluster.namespace()
    const first = await namespace.putSecret('a', { key: '1' })
    const node = await Node.start(t, namespace, oneSecret)
    await node.agent.ready()
    await node.agent.kill()
    for (const key of ['2', '3', '4']) await namespace.putSecret('a', { key })
    await cluster.etcd.compact()
    const query = `watch=1&timeoutSeconds=5&resourceVersion=${first.metadata.resourceVersion}`
    const answer = await cluster.api.admin.call('GET', `/api/v1/namespaces/${namespace.name}/secrets?${query}`)
    t.match(answer.body, { type: 'ERROR', object: { code: 410, reason: 'Expired' } }, 'the server has forgotten them')
    node.agent.start()
    await until('the last is on the disk', () => readPublished(node.path('certs'), 'key') === '4')
    t.equal(await node.agent.stop(), 0)
    t.strictSame(leftovers(node.path('certs')), [])
  })
})
