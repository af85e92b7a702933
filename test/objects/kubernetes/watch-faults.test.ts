import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadClusterAccess } from '../../../src/objects/kubernetes/cluster-access.js'
import { connect } from '../../../src/objects/kubernetes/connection.js'
import { KubernetesSource } from '../../../src/objects/kubernetes/source.js'
import { contentOf, Recorder, reference } from '../recorder.js'
import { json, type Reply } from './api-server.js'
import { authority } from './connected.js'
import { temporaryDirectory } from './certificates.js'
import { base64, kubeconfig } from './kubeconfig-text.js'
import { ModelCluster } from './model-cluster.js'
import { recordingLog, shortTiming, startWatching } from './watching.js'

const cert = reference('serving-cert')
const other = reference('other')

function refuse(reply: Reply, code: number, message: string, headers: Record<string, string> = {}): true {
  json(reply, code, { kind: 'Status', code, message }, headers)
  return true
}

void t.test('410 as a status and as an event: listed again at once', async (t) => {
  let expired = 0
  const { cluster, recorder, source } = await startWatching(t, { firstDelay: 5_000 }, (c) => {
    c.streaming = 'refused'
    c.put('serving-cert', 'one')
    c.intercept = ({ verb, query }, reply) => {
      if (verb !== 'watch' || query.get('resourceVersion') === null || expired > 0) return false
      expired += 1
      return refuse(reply, 410, 'too old resource version')
    }
  })
  source.follow([{ reference: cert }])
  await recorder.untilState(cert, 'present', 'one')
  await recorder.until('watching', () => cluster.watching === 1 || recorder.restarts.length > 1)
  t.strictSame(recorder.restarts, ['expired'])
  t.equal(cluster.requests.filter(({ verb }) => verb === 'list').length, 2)
})

void t.test('410 as an event', async (t) => {
  const { cluster, recorder, source } = await startWatching(t, { firstDelay: 5_000 }, (c) =>
    c.put('serving-cert', 'one'),
  )
  source.follow([{ reference: cert }])
  await recorder.untilState(cert, 'present', 'one')
  const status = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version: 1 (2)' }
  cluster.sendLine('serving-cert', JSON.stringify({ type: 'ERROR', object: status }))
  await recorder.until('listed again', () => recorder.heartbeats.length >= 3)
  t.strictSame(recorder.restarts, ['expired'])
  t.equal(cluster.requests[1]?.query.get('sendInitialEvents'), 'true')
  t.equal(recorder.reported.length, 1)
})

void t.test('429: not before the Retry-After, and nothing is known meanwhile', async (t) => {
  let refused = 0
  const { cluster, recorder, source } = await startWatching(t, {}, (c) => {
    c.put('serving-cert', 'one')
    c.intercept = (_, reply) => {
      refused += 1
      return refused === 1 && refuse(reply, 429, 'too many requests', { 'retry-after': '1' })
    }
  })
  source.follow([{ reference: cert }])
  const { observation } = await recorder.untilState(cert, 'unknown')
  t.match(observation, { reason: 'SourceUnavailable', message: /HTTP 429 \(too many requests\)/ })
  await recorder.untilState(cert, 'present', 'one')
  const [first, second] = cluster.requests.map(({ at }) => at)
  // A timer of Node may be a millisecond early.
  t.ok((second ?? 0) - (first ?? 0) >= 999, 'the server said one second')
  t.strictSame(recorder.restarts, ['throttled'])
})

void t.test(
  'one object that is denied: reported with what it needs, the others go on, and it is tried again',
  async (t) => {
    let denied = true
    const { cluster, recorder, source } = await startWatching(t, {}, (c) => {
      c.put('serving-cert', 'one')
      c.put('other', 'two')
      const message = 'secrets "serving-cert" is forbidden: User "u" cannot watch resource "secrets"'
      c.intercept = ({ name }, reply) => denied && name === 'serving-cert' && refuse(reply, 403, message)
    })
    source.follow([{ reference: cert }, { reference: other }])
    const { observation } = await recorder.untilState(cert, 'unknown')
    t.match(observation, { reason: 'AccessDenied' })
    const { message } = observation as { message: string }
    for (const part of [
      'Secret kube-system/serving-cert',
      'watch',
      'HTTP 403',
      'User "u" cannot',
      'Role in namespace kube-system',
      'get, list and watch',
      'resource secrets',
      'resourceNames: [serving-cert]',
    ]) {
      t.ok(message.includes(part), part)
    }
    await recorder.untilState(other, 'present', 'two')
    cluster.put('other', 'three')
    await recorder.untilState(other, 'present', 'three')
    await recorder.until('tried again', () => recorder.restarts.length >= 3)
    t.equal(recorder.reported.filter(({ object }) => object.endsWith('cert')).length, 1, 'reported once')
    denied = false
    await recorder.untilState(cert, 'present', 'one')
    t.ok(recorder.restarts.every((reason) => reason === 'denied'))
  },
)

void t.test('401 is a denial, too, and never absence', async (t) => {
  const { recorder, source } = await startWatching(t, {}, (c) => {
    c.intercept = (_, reply) => refuse(reply, 401, 'Unauthorized')
  })
  source.follow([{ reference: cert }])
  const { observation } = await recorder.untilState(cert, 'unknown')
  t.match(observation, { reason: 'AccessDenied', message: /does not accept the credentials/ })
  t.equal(recorder.restarts[0], 'unauthorized')
})

void t.test('a denial that does not last hides nothing that is known', async (t) => {
  const { cluster, recorder, source } = await startWatching(t, { denialGrace: 60_000 }, (c) =>
    c.put('serving-cert', 'one'),
  )
  source.follow([{ reference: cert }])
  await recorder.untilState(cert, 'present', 'one')
  // As an API server that has just started, and has not read its roles yet.
  let denials = 0
  cluster.intercept = (_, reply) => {
    denials += 1
    return denials <= 2 && refuse(reply, 403, 'forbidden')
  }
  cluster.cut()
  await recorder.until('back', () => denials > 2 && cluster.watching === 1)
  t.equal(recorder.reported.length, 1, 'nobody has heard of it')
})

void t.test('a denial that lasts is reported, and ends', async (t) => {
  const { cluster, recorder, source } = await startWatching(t, { denialGrace: 400 }, (c) =>
    c.put('serving-cert', 'one'),
  )
  source.follow([{ reference: cert }])
  await recorder.untilState(cert, 'present', 'one')
  cluster.intercept = (_, reply) => refuse(reply, 403, 'forbidden')
  const startedAt = performance.now()
  cluster.cut()
  const { observation } = await recorder.untilState(cert, 'unknown')
  t.match(observation, { reason: 'AccessDenied' })
  t.ok(performance.now() - startedAt >= 400)
  cluster.intercept = () => false
  await recorder.untilState(cert, 'present', 'one')
})

void t.test('a server that fails: unknown at first; what is known stays', async (t) => {
  let failing = true
  const { cluster, recorder, source } = await startWatching(t, {}, (c) => {
    c.put('serving-cert', 'one')
    c.intercept = (_, reply) => failing && refuse(reply, 500, 'etcdserver: request timed out')
  })
  source.follow([{ reference: cert }])
  const { observation } = await recorder.untilState(cert, 'unknown')
  t.match(observation, { reason: 'SourceUnavailable', message: /HTTP 500 \(etcdserver: request timed out\)/ })
  failing = false
  await recorder.untilState(cert, 'present', 'one')
  failing = true
  const before = recorder.restarts.length
  cluster.cut()
  await recorder.until('several failures', () => recorder.restarts.length >= before + 4)
  t.equal(contentOf(source.latest(cert)), 'one')
  cluster.put('serving-cert', 'two')
  failing = false
  await recorder.untilState(cert, 'present', 'two')
  t.equal(recorder.reported.length, 3)
  t.ok(recorder.restarts.includes('server-error'))
})

void t.test('a server that is away at the start, and comes back', async (t) => {
  const { cluster, recorder, source } = await startWatching(t, {}, (c) => c.put('serving-cert', 'one'))
  await cluster.stop()
  source.follow([{ reference: cert }])
  const { observation } = await recorder.untilState(cert, 'unknown')
  t.match(observation, { reason: 'SourceUnavailable', message: /ECONNREFUSED/ })
  await cluster.start()
  await recorder.untilState(cert, 'present', 'one')
})

void t.test(
  'a hundred watches find a server that is back quickly, with long backoffs, and not all at once',
  async (t) => {
    const all = Array.from({ length: 100 }, (_, index) => reference(`object-${index}`))
    // Who waits for its own delay waits for minutes; nobody has succeeded for so long that delays begin again.
    const slow = {
      firstDelay: 600_000,
      longestDelay: 600_000,
      scoutDelay: 200,
      wakeSpread: 2_000,
      healthyAfter: 600_000,
    }
    const { cluster, recorder, source } = await startWatching(t, slow, (c) => {
      for (const { name } of all) c.put(name, 'one')
    })
    source.follow(all.map((reference) => ({ reference })))
    await recorder.until('all present', () => all.every((one) => contentOf(source.latest(one)) === 'one'))
    await cluster.stop()
    await recorder.until('a failure each', () => recorder.restarts.length >= 100)
    for (const { name } of all) cluster.put(name, 'two')
    const seen = cluster.requests.length
    await cluster.start()
    await recorder.until('all new', () => all.every((one) => contentOf(source.latest(one)) === 'two'))
    const times = cluster.requests.slice(seen).map(({ at }) => at)
    t.equal(times.length, 100, 'one request each')
    t.ok(Math.max(...times) - Math.min(...times) > 200, 'spread')
    t.ok(
      recorder.reported.every(({ observation }) => observation.state === 'present'),
      'nothing else was reported',
    )
  },
)

void t.test('malformed objects are reported as such, with their place, and mended by the next version', async (t) => {
  const { cluster, recorder, source, logged } = await startWatching(t, {}, (c) => {
    c.putRaw('serving-cert', { data: { 'tls.key': 'canary-value!' } })
  })
  source.follow([{ reference: cert }])
  const { observation } = await recorder.untilState(cert, 'unknown')
  t.match(observation, {
    reason: 'ObjectInvalid',
    message: 'Secret kube-system/serving-cert: data["tls.key"] is not valid base64',
  })
  cluster.put('serving-cert', 'good')
  await recorder.untilState(cert, 'present', 'good')
  cluster.putRaw('serving-cert', { data: ['canary'] })
  await recorder.untilState(cert, 'unknown')
  cluster.cut()
  await recorder.until('back', () => recorder.restarts.length > 0 && cluster.watching === 1)
  t.match(source.latest(cert), { reason: 'ObjectInvalid' }, 'that the server was away does not hide it')
  t.notMatch(JSON.stringify([recorder.reported.map(({ observation }) => observation), logged]), 'canary')
})

void t.test('what is no event breaks nothing', async (t) => {
  const { cluster, recorder, source, logged } = await startWatching(t, {}, (c) => c.put('serving-cert', 'one'))
  source.follow([{ reference: cert }])
  await recorder.untilState(cert, 'present', 'one')
  cluster.sendLine('serving-cert', JSON.stringify({ type: 'LATER', object: {} }))
  cluster.put('serving-cert', 'two')
  await recorder.untilState(cert, 'present', 'two')
  t.strictSame(recorder.restarts, [], 'an unknown type is passed over')
  const wrong = [
    '{"type":"MODIFIED","object":{"data":"canary-',
    JSON.stringify({ type: 'ERROR', object: 'canary' }),
    JSON.stringify({ type: 'MODIFIED', object: { metadata: { name: 'other', namespace: 'kube-system' } } }),
    JSON.stringify({ type: 'DELETED', object: { metadata: {} } }),
    JSON.stringify({ type: 'DELETED' }),
  ]
  for (const line of wrong) {
    const before = cluster.requests.length
    cluster.sendLine('serving-cert', line)
    await recorder.until(line, () => cluster.requests.length > before && cluster.watching === 1)
  }
  t.strictSame(
    recorder.restarts,
    wrong.map(() => 'protocol'),
  )
  t.equal(contentOf(source.latest(cert)), 'two')
  t.notMatch(logged.join(), 'canary')
})

void t.test('a 404 of the collection is a wrong address, not an absence', async (t) => {
  const { recorder, source } = await startWatching(t, {}, (c) => {
    c.intercept = (_, reply) => refuse(reply, 404, 'page not found')
  })
  source.follow([{ reference: cert }])
  const { observation } = await recorder.untilState(cert, 'unknown')
  t.match(observation, { reason: 'SourceUnavailable', message: /address of a Kubernetes API server/ })
})

void t.test('closing ends requests that hang', async (t) => {
  const { recorder, source } = await startWatching(t, {}, (c) => (c.intercept = () => true))
  source.follow([{ reference: cert }, { reference: other }])
  await source.close()
  t.strictSame(recorder.reported, [])
})

void t.test('a mistake in the kubeconfig is reported once for all watches, and mended it is followed', async (t) => {
  const cluster = new ModelCluster()
  cluster.put('serving-cert', 'one')
  await cluster.start()
  t.teardown(() => cluster.stop())
  const directory = temporaryDirectory()
  t.teardown(directory.remove)
  const file = join(directory.path, 'config')
  writeFileSync(
    file,
    kubeconfig({ server: cluster.url, 'certificate-authority-data': base64(authority.certificate) }, {}),
  )
  let context = 'nope'
  const recorder = new Recorder()
  const logged: string[] = []
  const access = () => loadClusterAccess({ kubeconfig: file, context, environment: {} })
  const source = new KubernetesSource(connect(access, { version: '1' }), recorder, {
    timing: shortTiming,
    log: recordingLog(logged),
  })
  t.teardown(() => source.close())
  source.follow([{ reference: cert }, { reference: reference('a') }, { reference: reference('b') }])
  await recorder.until('several tries', () => recorder.restarts.length >= 12)
  const warnings = logged.filter((line) => line.includes('"warn"'))
  t.equal(warnings.length, 1, warnings.join('\n'))
  t.match(warnings[0], 'there is no context')
  t.same([...new Set(recorder.restarts)], ['credentials'], 'nobody was asked, so that nobody refused them')
  t.match(recorder.last(cert)?.observation, { reason: 'SourceUnavailable', permanent: true })
  context = ''
  await recorder.untilState(cert, 'present', 'one')
})
