/** One object from its creation to its end, as the disk, status, metrics and log show it. */
import t from 'tap'
import { Cluster } from './cluster.js'
import { leftovers, readPublished, readTree } from './disk.js'
import { Node } from './node.js'
import { until } from '../until.js'

const cluster = await Cluster.start()
t.teardown(() => cluster.stop())

await t.test('the agent publishes an object created and updated with kubectl, and reports it everywhere', async (t) => {
  const namespace = await cluster.namespace()
  const node = await Node.start(t, namespace, {
    allowed: { secrets: ['serving'] },
    directories: [{ path: 'certs', contents: [{ secret: 'serving', into: 'secrets/serving' }] }],
  })
  const { agent } = node
  const target = node.path('certs')
  const manifest = (version: string): string =>
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'serving' },
      stringData: { 'tls.crt': `certificate ${version}`, 'tls.key': `key ${version}` },
    })
  const tree = (version: string): object => ({
    'secrets/serving/tls.crt': `certificate ${version}`,
    'secrets/serving/tls.key': `key ${version}`,
  })

  const before = await until('not ready, for the object is missing', async () => {
    const answer = await agent.get('/readyz')
    return answer.text.includes('ObjectMissing') && answer
  })
  t.match(before, { status: 503, text: target })
  t.equal((await agent.get('/livez')).status, 200)
  t.equal(readTree(target), undefined, 'there is no target while a required object is missing')
  t.equal(await agent.metric('holdfast_directory_ready', { directory: target }), 0)

  await cluster.kubectl(['apply', '-n', namespace.name, '-f', '-'], manifest('1'))
  await agent.ready()
  t.strictSame(readTree(target), tree('1'))
  t.ok(await agent.metric('holdfast_last_publish_timestamp_seconds', { directory: target }))
  t.equal(await agent.metric('holdfast_directory_ready', { directory: target }), 1)
  const publishes = await agent.metric('holdfast_publishes_total', { directory: target })

  await cluster.kubectl(['apply', '-n', namespace.name, '-f', '-'], manifest('2'))
  await until('the update is on the disk', () => readTree(target)?.['secrets/serving/tls.crt'] === 'certificate 2')
  t.strictSame(readTree(target), tree('2'))
  const secret = await cluster.api.admin.demand('GET', `/api/v1/namespaces/${namespace.name}/secrets/serving`)
  const status = await agent.condition(target, 'Published', 'True', 'Published', { objects: [secret] })
  t.match(status.objects, [{ kind: 'Secret', namespace: namespace.name, name: 'serving' }])
  t.match(status.digest, /^sha256:[0-9a-f]{64}$/)
  await agent.condition(target, 'Fresh', 'True')
  t.equal(await agent.metric('holdfast_publishes_total', { directory: target }), publishes + 1)
  t.equal(await agent.stop(), 0, 'SIGTERM is answered with exit code 0')
  t.equal(agent.logged('Published').length, 2)
  t.strictSame(leftovers(target), [])
})

await t.test('the agent keeps a deleted object, and publishes its successor as another object', async (t) => {
  const namespace = await cluster.namespace()
  const first = await namespace.putSecret('a', { key: 'first' })
  const node = await Node.start(t, namespace, {
    allowed: { secrets: ['a'] },
    directories: [{ path: 'certs', contents: [{ secret: 'a' }] }],
  })
  const target = node.path('certs')
  await node.agent.ready()

  await namespace.deleteSecret('a')
  await until('the log reports it', () => node.agent.logged('ObjectMissing').length > 0)
  t.strictSame(readTree(target), { key: 'first' })
  t.equal((await node.agent.get('/readyz')).status, 200, 'what is whole on the disk can be used')

  const second = await namespace.putSecret('a', { key: 'second' })
  t.not(second.metadata.uid, first.metadata.uid)
  await until('the new object is on the disk', () => readPublished(target, 'key') === 'second')
  await node.agent.condition(target, 'Published', 'True', undefined, { objects: [second] })
})

await t.test('the agent keeps a terminating object, and does not publish it again', async (t) => {
  const namespace = await cluster.namespace()
  await namespace.putSecret('a', { key: 'kept' })
  await namespace.patchSecret('a', { metadata: { finalizers: ['e2e.example/hold'] } })
  await namespace.putSecret('b', { other: '1' })
  const node = await Node.start(t, namespace, {
    allowed: { secrets: ['a', 'b'] },
    directories: [
      { path: 'certs', contents: [{ secret: 'a', optional: true }], onMissing: 'remove' },
      { path: 'other', contents: [{ secret: 'b' }] },
    ],
  })
  const target = node.path('certs')
  await node.agent.ready()
  await until('published', () => readPublished(target, 'key') === 'kept')

  await namespace.deleteSecret('a')
  await namespace.patchSecret('a', { stringData: { key: 'written while it terminates' } })
  // A later write of another object shows that the earlier events have been seen.
  await namespace.putSecret('b', { other: '2' })
  await until('the other is on the disk', () => readPublished(node.path('other'), 'other') === '2')
  t.strictSame(readTree(target), { key: 'kept' })

  await namespace.patchSecret('a', { metadata: { finalizers: null } })
  await until('it is gone from the disk', () => readPublished(target, 'key') === undefined)
})
