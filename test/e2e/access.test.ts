/** The agent's identity for the API server, and its work after a refusal. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { run } from '../static-pods/command.js'
import { ApiClient } from './api-client.js'
import { Cluster } from './cluster.js'
import { ConnectProxy } from './connect-proxy.js'
import { readPublished, readTree } from './disk.js'
import { FailingServer } from './failing-server.js'
import { Gate } from './gate.js'
import { workingDirectory } from './guard.js'
import { Node } from './node.js'
import { until } from './until.js'

t.setTimeout(240_000)

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

await t.test('the agent asks an exec plugin again when its token is refused', async (t) => {
  const namespace = await cluster.namespace()
  await namespace.putSecret('a', { key: '1' })
  await namespace.createAccount('plugin', oneSecret.allowed)
  const answer = join(workingDirectory, 'credential.json')
  const credential = (token: string): string =>
    JSON.stringify({
      apiVersion: 'client.authentication.k8s.io/v1',
      kind: 'ExecCredential',
      status: { token },
    })
  writeFileSync(answer, credential('no-token-of-this-cluster'))
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: 'cat',
    args: [answer],
    interactiveMode: 'Never',
    provideClusterInfo: false,
  }
  const node = await Node.start(t, namespace, { ...oneSecret, kubeconfig: namespace.kubeconfig({ exec }) })
  await node.agent.condition(node.path('certs'), 'Published', 'False', 'AccessDenied')
  writeFileSync(answer, credential(await namespace.token('plugin')))
  await node.agent.ready()
  t.strictSame(readTree(node.path('certs')), { key: '1' })
  rmSync(answer)
  await namespace.putSecret('a', { key: '2' })
  await until('the plugin is not asked for each event', () => readPublished(node.path('certs'), 'key') === '2')
  t.notOk(readFileSync(node.agent.logFile, 'utf8').includes('no-token-of-this-cluster'))
})

// Only the proxy can find this name, and the certificate is for another.
const behindProxy = 'api.e2e.example'

for (const by of ['proxy-url', 'HTTPS_PROXY'] as const) {
  await t.test(`the agent works through an HTTP CONNECT proxy, named by ${by}`, async (t) => {
    const namespace = await cluster.namespace()
    await namespace.putSecret('a', { key: '1' })
    await namespace.createAccount('proxied', oneSecret.allowed)
    const proxy = await ConnectProxy.start(t)
    const user = { token: await namespace.token('proxied') }
    const entry = { 'tls-server-name': 'localhost', ...(by === 'proxy-url' && { 'proxy-url': proxy.url }) }
    const server = `https://${behindProxy}:${cluster.api.port}`
    const node = await Node.start(t, namespace, {
      ...oneSecret,
      kubeconfig: namespace.kubeconfig(user, { server, cluster: entry }),
      environment: by === 'HTTPS_PROXY' ? { HTTPS_PROXY: proxy.url } : {},
    })
    await node.agent.ready()
    await namespace.putSecret('a', { key: '2' })
    await until('the update arrives', () => readPublished(node.path('certs'), 'key') === '2')
    t.strictSame(proxy.asked, [`${behindProxy}:${cluster.api.port}`], 'one tunnel')
  })
}

await t.test('sync does not take an object for absent while the server answers 500 for it', async (t) => {
  const namespace = await cluster.namespace()
  const server = await FailingServer.before(t, cluster.api)
  const names = { required: 'object-a', optional: 'object-b', other: 'object-c' }
  const put = async (value: string) => {
    for (const name of Object.values(names)) await namespace.putSecret(name, { key: value })
  }
  await put('1')
  await namespace.createAccount('syncer', { secrets: Object.values(names) })
  const root = mkdtempSync(join(workingDirectory, 'synced-'))
  const configuration = join(root, 'holdfast.json')
  const token = await namespace.token('syncer')
  const certs = [
    { secret: names.required, into: 'required' },
    { secret: names.optional, into: 'optional', optional: true },
  ]
  const directories = [
    { path: 'certs', contents: certs, onMissing: 'remove' },
    { path: 'other', contents: [{ secret: names.other }] },
  ]
  const kubernetes = { kubeconfig: namespace.kubeconfig({ token }, { server: server.url }) }
  const source = { namespace: namespace.name, kubernetes }
  const document = { apiVersion: 'holdfast.dev/v1alpha1', kind: 'AgentConfiguration', source, directories }
  writeFileSync(configuration, JSON.stringify({ ...document, stateDirectory: join(root, 'state') }))
  const sync = (...more: string[]) => run(['sync', '--config', configuration, '-o', 'json', ...more])
  const pass = await sync()
  t.equal(pass.code, 0, pass.stderr)
  const whole = (value: string) => ({ 'required/key': value, 'optional/key': value })
  t.strictSame(readTree(join(root, 'certs')), whole('1'))

  await put('2')
  const others = { path: join(root, 'other') }
  server.failing = [names.required]
  const failed = await sync('--timeout', '2s')
  t.equal(failed.code, 1, failed.stderr)
  const about = { outcome: 'failed', reason: 'SourceUnavailable', message: /HTTP 500/ }
  t.match(JSON.parse(failed.stdout), { directories: [{ path: join(root, 'certs'), ...about }, others] })
  t.ok(server.failures > 1, 'it was asked again')
  t.strictSame(readTree(join(root, 'certs')), whole('1'), 'nothing is published, and nothing removed')
  t.strictSame(readTree(join(root, 'other')), { key: '2' }, 'the other directory goes on')
  t.equal((await sync('--timeout', '2s', '--allow-stale')).code, 0)
  t.strictSame(readTree(join(root, 'certs')), whole('1'))

  server.failing = [names.optional]
  const kept = await sync('--timeout', '2s')
  t.equal(kept.code, 0, kept.stderr)
  t.match(kept.stderr, /object-b: watch failed with HTTP 500/)
  t.strictSame(
    readTree(join(root, 'certs')),
    { 'required/key': '2', 'optional/key': '1' },
    'it is not taken for absent',
  )
  server.failing = []
  t.equal((await sync()).code, 0)
  t.strictSame(readTree(join(root, 'certs')), whole('2'))
})
