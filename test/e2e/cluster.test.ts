import { readFileSync } from 'node:fs'
import t from 'tap'
import { ApiClient } from './api-client.js'
import { Cluster } from './cluster.js'

t.setTimeout(120_000)

const cluster = await Cluster.start()
t.teardown(() => cluster.stop())

await t.test('kubectl makes an object, and the administrator reads it', async (t) => {
  const namespace = await cluster.namespace()
  const manifest = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a' }, stringData: { key: 'value' } }
  await cluster.kubectl(['apply', '--namespace', namespace.name, '--filename', '-'], JSON.stringify(manifest))
  const encoded = await cluster.kubectl(['get', 'secret', 'a', '-n', namespace.name, '-o', 'jsonpath={.data.key}'])
  t.equal(Buffer.from(encoded, 'base64').toString(), 'value')
})

await t.test('an account reads its allowed object by name, by a field selector, and nothing else', async (t) => {
  const namespace = await cluster.namespace()
  await namespace.putSecret('allowed', { key: 'value' })
  await namespace.createAccount('agent', { secrets: ['allowed'] })
  const headers = { authorization: `Bearer ${await namespace.token('agent')}` }
  const client = new ApiClient(cluster.api.port, cluster.api.authority.certificate)
  t.teardown(() => client.disconnect())
  const secrets = `/api/v1/namespaces/${namespace.name}/secrets`
  for (const [path, status] of [
    [`${secrets}?fieldSelector=metadata.name%3Dallowed`, 200],
    [`${secrets}?fieldSelector=metadata.name%3Dother`, 403],
    [secrets, 403],
    [`/api/v1/namespaces/${namespace.name}/configmaps?fieldSelector=metadata.name%3Dallowed`, 403],
  ] as const) {
    t.equal((await client.call('GET', path, undefined, headers)).status, status, path)
  }
})

await t.test('the API server answers a watch from before a compaction with 410', async (t) => {
  const namespace = await cluster.namespace()
  const first = await namespace.putSecret('a', { key: '1' })
  // The watch would begin at the first of these, which the compaction forgets.
  await namespace.putSecret('a', { key: '2' })
  await namespace.putSecret('a', { key: '3' })
  await cluster.api.kill()
  await cluster.etcd.compact()
  await cluster.api.start(['--watch-cache=false'])
  const query = `watch=1&timeoutSeconds=5&resourceVersion=${first.metadata.resourceVersion}`
  const answer = await cluster.api.admin.call('GET', `/api/v1/namespaces/${namespace.name}/secrets?${query}`)
  t.match(answer.body, { type: 'ERROR', object: { code: 410, reason: 'Expired' } })
})

await t.test('etcd restored from a snapshot shows an older object, with an older version', async (t) => {
  const namespace = await cluster.namespace()
  const before = await namespace.putSecret('a', { key: 'before' })
  const snapshot = await cluster.snapshotEtcd()
  const after = await namespace.putSecret('a', { key: 'after' })
  t.ok(readFileSync(snapshot).length > 10_000)
  await cluster.restoreEtcd(snapshot)
  const secret = await cluster.api.admin.demand('GET', `/api/v1/namespaces/${namespace.name}/secrets/a`)
  t.equal(secret.metadata.resourceVersion, before.metadata.resourceVersion)
  t.ok(Number(after.metadata.resourceVersion) > Number(before.metadata.resourceVersion))
})
