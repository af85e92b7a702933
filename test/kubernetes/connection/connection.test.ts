import t from 'tap'
import { connect } from '../../../src/kubernetes/connection/connection.js'
import { settled, SimulatedTime } from '../../simulated-time.js'
import { beginWatch, json, startServer } from './api-server.js'
import { issue, temporaryDirectory } from './certificates.js'
import { authority, collect, once, serving, start } from './connected.js'
import { base64, kubeconfig, loadKubeconfig } from '../credentials/kubeconfig-text.js'

const client = issue(authority, { name: 'node-1', days: 5 })
const directory = temporaryDirectory()
t.teardown(directory.remove)

for (const protocol of ['h2', 'https', 'http'] as const) {
  void t.test(`get, list and watch work alike over ${protocol}`, async (t) => {
    const { api, running } = await start(
      t,
      {
        protocol,
        handler: (seen, reply) => {
          if (seen.path.startsWith('/watch')) {
            beginWatch(reply, { n: 1 }, { text: 'é'.repeat(100_000) })
            ;(reply as { end(): void }).end()
          } else if (seen.path === '/busy') json(reply, 429, { kind: 'Status' }, { 'retry-after': '7' })
          else if (seen.path === '/text') (reply as { end(text: string): void }).end('not json')
          else json(reply, 200, { path: seen.path, method: seen.method })
        },
      },
      { token: 'secret-token' },
    )
    t.equal(api.defaultNamespace, 'kube-system')
    t.equal(api.connections, 0, 'nothing is opened before the first request')
    const answer = await api.get('/api/v1/secrets', { fieldSelector: 'metadata.name=a b', limit: '1' }, once)
    t.strictSame(answer.body, {
      path: '/api/v1/secrets?fieldSelector=metadata.name%3Da+b&limit=1',
      method: 'GET',
    })
    t.equal(api.connections, 1)
    const [seen] = running.requests
    t.equal(seen?.httpVersion, protocol === 'h2' ? '2.0' : '1.1')
    t.equal(seen?.headers['authorization'], protocol === 'http' ? undefined : 'Bearer secret-token')
    t.equal(seen?.headers['accept'], 'application/json')
    t.equal(seen?.headers['accept-encoding'], undefined)
    t.match(String(seen?.headers['user-agent']), /^holdfast\/1\.2\.3 \(linux\/(amd64|arm64)\)$/)

    const watch = await api.stream('/watch', { watch: '1' }, once)
    const lines = await collect(watch)
    t.strictSame(lines, ['{"n":1}', JSON.stringify({ text: 'é'.repeat(100_000) })])

    const busy = await api.stream('/busy', {}, once)
    t.match(busy, { status: 429, retryAfter: 7000, body: { kind: 'Status' } })
    t.strictSame(await collect(busy), [])
    t.match(await api.get('/busy', {}, once), { status: 429, retryAfter: 7000 })
    t.strictSame((await api.get('/text', {}, once)).body, undefined, 'a body that is not JSON')

    const sent = await api.send('POST', '/api/v1/events', { kind: 'Event' }, once)
    t.strictSame(sent.body, { path: '/api/v1/events', method: 'POST' })
    await api.send('PATCH', '/api/v1/events/x', { count: 2 }, once)
    const [post, patch] = running.requests.slice(-2)
    t.equal(post?.body, '{"kind":"Event"}')
    t.equal(post?.headers['content-type'], 'application/json')
    t.equal(patch?.headers['content-type'], 'application/merge-patch+json')
    const apply = { manager: 'a b', force: true }
    await api.send(
      'PATCH',
      '/api/v1/nodes/x/status',
      { kind: 'Node' },
      { ...once, accept: 'application/json;as=x', apply },
    )
    t.match(running.requests.at(-1), {
      // The API server decodes the YAML once.
      path: '/api/v1/nodes/x/status?fieldManager=a+b&fieldValidation=Ignore&force=true',
      headers: { 'content-type': 'application/apply-patch+yaml', accept: 'application/json;as=x' },
    })
    t.equal(running.accepted(), 1, 'one connection for all of it')
  })
}

void t.test('the client presents its certificate, and knows its end', async (t) => {
  const user = {
    'client-certificate-data': base64(client.certificate),
    'client-key-data': base64(client.key),
  }
  const { api, running } = await start(t, { clientAuthority: authority.certificate }, user)
  await api.get('/', {}, once)
  t.equal(running.requests[0]?.client, 'node-1')
  const days = ((api.clientCertificateNotAfter()?.getTime() ?? 0) - Date.now()) / 86_400_000
  t.ok(days > 4.9 && days <= 5, `${days} days`)
})

void t.test('the path of the server URL goes before every path', async (t) => {
  const running = await startServer({ serving })
  t.teardown(running.close)
  const cluster = {
    server: `${running.url}/k8s/clusters/c-1/`,
    'certificate-authority-data': base64(authority.certificate),
  }
  const api = connect(await loadKubeconfig(directory.path, kubeconfig(cluster, {})), { version: '1' })
  t.teardown(() => api.close())
  await api.get('/version', {}, once)
  t.equal(running.requests[0]?.path, '/k8s/clusters/c-1/version')
})

void t.test('100 streams share a connection; the next ones get another', async (t) => {
  const { api, running } = await start(t, { handler: (_, reply) => beginWatch(reply, { n: 1 }) })
  const watches = await Promise.all(Array.from({ length: 250 }, (_, i) => api.stream(`/watch/${i}`, {}, once)))
  t.equal(watches.length, 250)
  t.equal(api.connections, 3)
  t.equal(running.sessions.size, 3)
})

void t.test('a server that allows fewer streams gets more connections', async (t) => {
  const { api, running } = await start(t, {
    maxConcurrentStreams: 10,
    handler: (_, reply) => beginWatch(reply),
  })
  await Promise.all(Array.from({ length: 35 }, (_, i) => api.stream(`/watch/${i}`, {}, once)))
  t.equal(api.connections, 4)
  t.equal(running.sessions.size, 4)
})

void t.test('a place is free again once its stream is over', async (t) => {
  const { api } = await start(
    t,
    { handler: (seen, reply) => (seen.path === '/get' ? json(reply, 200, {}) : beginWatch(reply, 1)) },
    {},
    { streams: 1 },
  )
  for (let i = 0; i < 5; i += 1) await api.get('/get', {}, once)
  t.equal(api.connections, 1)
  const watch = await api.stream('/watch', {}, once)
  const enough = new Error('enough')
  const taking = watch.takeLines((line) => {
    t.equal(line.take(), '1')
    return Promise.reject(enough)
  })
  await t.rejects(taking, enough)
  await api.get('/get', {}, once)
  t.equal(api.connections, 1, 'a reader that stops gives its place back')
})

for (const protocol of ['h2', 'https'] as const) {
  void t.test(`the client closes an unused ${protocol} connection, and none with a watch`, async (t) => {
    const time = new SimulatedTime(t)
    const { api, running } = await start(t, { protocol, handler: (_, reply) => beginWatch(reply, 1) })
    const attempt = new AbortController()
    const watching = collect(await api.stream('/watch', {}, { ...once, attempt }))
    await time.advance(900_000)
    t.equal(api.connections, 1)
    attempt.abort(new Error('enough'))
    await t.rejects(watching)
    await time.advance(900_000)
    t.equal(api.connections, 0)
    await time.during(api.stream('/watch', {}, once))
    t.equal(running.accepted(), 2)
  })
}

for (const protocol of ['h2', 'https'] as const) {
  void t.test(`a ${protocol} stream that has ended before its first read is whole`, async (t) => {
    const { api } = await start(t, {
      protocol,
      handler: (_, reply) => {
        beginWatch(reply, 1, 2)
        reply.end()
      },
    })
    const watch = await api.stream('/watch', {}, once)
    await settled()
    t.strictSame(await collect(watch), ['1', '2'])
  })

  void t.test(`a ${protocol} stream without a line is whole, too, after a late read`, async (t) => {
    const { api } = await start(t, {
      protocol,
      // No body at all: its end comes with the head.
      handler: (_, reply) => reply.end(),
    })
    const watch = await api.stream('/watch', {}, once)
    await settled()
    t.strictSame(await collect(watch), [])
  })
}
