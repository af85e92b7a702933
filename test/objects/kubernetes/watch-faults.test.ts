import t from 'tap'
import { contentOf, reference } from '../recorder.js'
import { objectName } from '../../../src/message-text.js'
import { refuse } from '../../kubernetes/connection/api-server.js'
import { until } from '../../until.js'
import { startWatching } from './watching.js'

const cert = reference('serving-cert')
const other = reference('other')

void t.test('a 410, as a status or an event, leads to a new list at once', async (t) => {
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

void t.test('a 410 event leads to a new list', async (t) => {
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

void t.test(
  'a 429 delays the next request until its Retry-After, each watch by another time, and the objects stay unknown meanwhile',
  async (t) => {
    const all = Array.from({ length: 10 }, (_, index) => reference(`object-${index}`))
    const refused = new Set<string>()
    const { cluster, recorder, source } = await startWatching(t, { firstDelay: 400, longestDelay: 400 }, (c) => {
      for (const { name } of all) c.put(name, 'one')
      c.intercept = ({ name }, reply) => {
        if (refused.has(name)) return false
        refused.add(name)
        return refuse(reply, 429, 'too many requests', { 'retry-after': '1' })
      }
    })
    source.follow(all.map((reference) => ({ reference })))
    for (const reference of all) {
      await recorder.untilState(reference, 'present', 'one')
      const unknown = recorder.reported.find(({ object }) => object === objectName(reference))
      t.match(unknown?.observation, { reason: 'SourceUnavailable', message: /HTTP 429 \(too many requests\)/ })
    }
    const waits = all.map(({ name }) => {
      const [first, second] = cluster.requests.filter((request) => request.name === name).map(({ at }) => at)
      return (second ?? 0) - (first ?? 0)
    })
    // A timer of Node may be a millisecond early.
    t.ok(Math.min(...waits) >= 999, 'the server said one second')
    t.ok(Math.max(...waits) - Math.min(...waits) >= 150, `${waits.map(Math.round).join(', ')} ms`)
    t.strictSame([...new Set(recorder.restarts)], ['throttled'])
  },
)

void t.test('four watches begin at a time, also where the server is slow, and each gets its turn', async (t) => {
  const all = Array.from({ length: 10 }, (_, index) => reference(`object-${index}`))
  const held: (() => void)[] = []
  const { cluster, recorder, source } = await startWatching(t, {}, (c) => {
    for (const { name } of all) c.put(name, 'one')
    c.intercept = (request, reply) => {
      held.push(() => c.answer(request, reply))
      return true
    }
  })
  source.follow(all.map((reference) => ({ reference })))
  for (let answered = 0; answered < all.length; answered++) {
    await until('as many as may ask', () => held.length >= Math.min(4, all.length - answered))
    t.equal(cluster.requests.length, Math.min(answered + 4, all.length))
    held.shift()?.()
  }
  await recorder.until('all present', () => all.every((one) => contentOf(source.latest(one)) === 'one'))
})

void t.test('a failing server leaves unknown objects unknown, and known ones known', async (t) => {
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

void t.test('the source starts without a server, and finds it later', async (t) => {
  const { cluster, recorder, source } = await startWatching(t, {}, (c) => c.put('serving-cert', 'one'))
  await cluster.stop()
  source.follow([{ reference: cert }])
  const { observation } = await recorder.untilState(cert, 'unknown')
  t.match(observation, { reason: 'SourceUnavailable', message: /ECONNREFUSED/ })
  await cluster.start()
  await recorder.untilState(cert, 'present', 'one')
})

void t.test('a hundred watches find a returned server quickly, with long backoffs, and not all at once', async (t) => {
  const all = Array.from({ length: 100 }, (_, index) => reference(`object-${index}`))
  // A watch waits minutes for its own delay; and no watch lives so long that its delays begin again.
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
})

void t.test('malformed objects are reported with their place, and mended by the next version', async (t) => {
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

void t.test('a line that is no event breaks nothing', async (t) => {
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

void t.test('close ends hanging requests', async (t) => {
  const { recorder, source } = await startWatching(t, {}, (c) => (c.intercept = () => true))
  source.follow([{ reference: cert }, { reference: other }])
  await source.close()
  t.strictSame(recorder.reported, [])
})
