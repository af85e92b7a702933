/** The agent's identity for the API server, and its work after a refusal. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ApiClient } from './api-client.js'
import { Cluster } from './cluster.js'
import { ConnectProxy } from './connect-proxy.js'
import { readPublished, readTree } from './disk.js'
import { Gate } from './gate.js'
import { workingDirectory } from './guard.js'
import { Node } from './node.js'
import { until } from '../until.js'

const cluster = await Cluster.start()
t.teardown(() => cluster.stop())

const oneSecret = {
  allowed: { secrets: ['a'] },
  directories: [{ path: 'certs', contents: [{ secret: 'a' }] }],
}

await t.test('a denied object holds back its directory alone, and is published once it is allowed', async (t) => {
  const namespace = await cluster.namespace()
  await namespace.putSecret('allowed', { key: '1' })
  await namespace.putSecret('denied', { key: '1' })
  const node = await Node.start(t, namespace, {
    allowed: { secrets: ['allowed'] },
    directories: [
      { path: 'first', contents: [{ secret: 'allowed' }] },
      { path: 'second', contents: [{ secret: 'denied' }] },
      {
        path: 'third',
        contents: [
          { secret: 'allowed', into: 'x' },
          { secret: 'denied', optional: true },
        ],
      },
    ],
  })
  const { agent } = node
  const [first, second, third] = [node.path('first'), node.path('second'), node.path('third')]
  await until('the allowed one is on the disk', () => readPublished(first, 'key') === '1')
  const readiness = await until('readiness names the denied one', async () => {
    const answer = await agent.get('/readyz')
    return answer.text.includes(`[-]${second} AccessDenied`) && answer
  })
  t.equal(readiness.status, 503)
  await agent.condition(second, 'Published', 'False', 'AccessDenied')
  await agent.condition(first, 'Published', 'True')
  t.ok(agent.logged('AccessDenied').some((line) => JSON.stringify(line).includes('denied')))
  t.equal(readTree(second), undefined)
  t.equal(readTree(third), undefined, 'an optional object that may not be read is not absent')
  t.equal((await agent.get('/livez')).status, 200)

  await namespace.putSecret('allowed', { key: '2' })
  await until('the others go on', () => readPublished(first, 'key') === '2')

  await namespace.allow('agent', { secrets: ['allowed', 'denied'] })
  await until('once allowed, it is on the disk', () => readPublished(second, 'key') === '1', {
    within: 60_000,
  })
  await until('and beside others', () => readPublished(third, 'key') === '1', { within: 60_000 })
  await agent.ready()
})

await t.test('the agent keeps an object to which it has lost the right', async (t) => {
  const namespace = await cluster.namespace()
  await namespace.putSecret('a', { key: '1' })
  const gate = await Gate.before(t, cluster.api.port)
  const node = await Node.start(t, namespace, {
    allowed: { secrets: ['a'] },
    server: gate.url,
    directories: [{ path: 'certs', contents: [{ secret: 'a', optional: true }], onMissing: 'remove' }],
  })
  const target = node.path('certs')
  await until('it is on the disk', () => readPublished(target, 'key') === '1')
  gate.shut()
  await namespace.allow('agent', { secrets: ['other'] })
  gate.open()
  await node.agent.condition(target, 'Fresh', 'False', 'AccessDenied')
  t.strictSame(readTree(target), { key: '1' })
})

await t.test('the agent goes on with a rotated token after a refusal of the old one', async (t) => {
  const namespace = await cluster.namespace()
  await namespace.putSecret('a', { key: '1' })
  await namespace.createAccount('rotated', oneSecret.allowed)
  const validity = await namespace.putSecret('validity', {})
  const oldToken = await namespace.token('rotated', validity)
  const tokenFile = join(workingDirectory, 'token')
  writeFileSync(tokenFile, oldToken)
  const gate = await Gate.before(t, cluster.api.port)
  const node = await Node.start(t, namespace, {
    ...oneSecret,
    kubeconfig: namespace.kubeconfig({ tokenFile }, { server: gate.url }),
  })
  const { agent } = node
  const target = node.path('certs')
  await agent.ready()

  await namespace.deleteSecret('validity')
  const client = new ApiClient(cluster.api.port, cluster.api.authority.certificate)
  t.teardown(() => client.disconnect())
  const secret = `/api/v1/namespaces/${namespace.name}/secrets/a`
  // The server remembers for ten seconds that it has accepted a token.
  await until(
    'the server refuses the old token',
    async () => (await client.call('GET', secret, undefined, { authorization: `Bearer ${oldToken}` })).status === 401,
    { every: 250 },
  )
  gate.shut()
  gate.open()
  await agent.condition(target, 'Fresh', 'False', 'AccessDenied')
  t.ok((await agent.metric('holdfast_watch_restarts_total', { reason: 'unauthorized' })) > 0)
  t.strictSame(readTree(target), { key: '1' })
  t.equal((await agent.get('/readyz')).status, 200)

  const newToken = await namespace.token('rotated')
  writeFileSync(tokenFile, newToken)
  await namespace.putSecret('a', { key: '2' })
  await until('with the new token the update arrives', () => readPublished(target, 'key') === '2', {
    within: 90_000,
  })
  for (const token of [oldToken, newToken]) {
    t.notOk(readFileSync(agent.logFile, 'utf8').includes(token), 'no token in the log')
  }
})

await t.test('the agent reports the end of its client certificate', async (t) => {
  const namespace = await cluster.namespace()
  await namespace.putSecret('a', { key: '1' })
  await namespace.createAccount('unused', oneSecret.allowed)
  const pair = await cluster.api.authority.client(`certified-${namespace.name}`, 'nodes')
  await cluster.kubectl([
    ...['create', 'rolebinding', 'certified', '-n', namespace.name, '--role=unused'],
    `--user=certified-${namespace.name}`,
  ])
  const node = await Node.start(t, namespace, {
    ...oneSecret,
    kubeconfig: namespace.kubeconfig({
      'client-certificate-data': readFileSync(pair.certificate, 'base64'),
      'client-key-data': readFileSync(pair.key, 'base64'),
    }),
  })
  await node.agent.ready()
  t.strictSame(readTree(node.path('certs')), { key: '1' })
  const end = await node.agent.metric('holdfast_certificate_not_after_timestamp_seconds')
  const days = (end - Date.now() / 1000) / 86_400
  t.ok(days > 1.9 && days < 2.1, `${days} days`)
})

// Only the proxy can find this name, and the certificate is for another.
const behindProxy = 'api.e2e.example'

await t.test('the agent works through an HTTP CONNECT proxy, named by HTTPS_PROXY', async (t) => {
  const namespace = await cluster.namespace()
  await namespace.putSecret('a', { key: '1' })
  await namespace.createAccount('proxied', oneSecret.allowed)
  const proxy = await ConnectProxy.start(t)
  const user = { token: await namespace.token('proxied') }
  const server = `https://${behindProxy}:${cluster.api.port}`
  const node = await Node.start(t, namespace, {
    ...oneSecret,
    kubeconfig: namespace.kubeconfig(user, { server, cluster: { 'tls-server-name': 'localhost' } }),
    environment: { HTTPS_PROXY: proxy.url },
  })
  await node.agent.ready()
  await namespace.putSecret('a', { key: '2' })
  await until('the update arrives', () => readPublished(node.path('certs'), 'key') === '2')
  t.strictSame(proxy.asked, [`${behindProxy}:${cluster.api.port}`], 'one tunnel')
})
