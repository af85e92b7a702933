import t from 'tap'
import { contentOf, reference } from '../recorder.js'
import { json } from '../../kubernetes/connection/api-server.js'
import { SimulatedTime } from '../../simulated-time.js'
import { startWatching } from './watching.js'

const cert = reference('serving-cert')

void t.test('the source reports create, update, delete and create again at once', async (t) => {
  const { cluster, recorder, source } = await startWatching(t)
  source.follow([{ reference: cert }])
  await recorder.untilState(cert, 'absent')
  t.equal(cluster.requests.length, 1, 'list and watch are one request')
  const { query, path } = cluster.requests[0] ?? {}
  t.equal(path, '/api/v1/namespaces/kube-system/secrets')
  t.strictSame(
    { ...Object.fromEntries(query ?? []), timeoutSeconds: '' },
    {
      watch: '1',
      fieldSelector: 'metadata.name=serving-cert',
      allowWatchBookmarks: 'true',
      sendInitialEvents: 'true',
      resourceVersionMatch: 'NotOlderThan',
      timeoutSeconds: '',
    },
  )
  const seconds = Number(query?.get('timeoutSeconds'))
  t.ok(seconds >= 300 && seconds <= 600, 'five to ten minutes')

  const made = cluster.put('serving-cert', 'one')
  const { observation } = await recorder.untilState(cert, 'present', 'one')
  t.match(observation, { object: { uid: made.metadata.uid, resourceVersion: '1001', terminating: false } })
  cluster.put('serving-cert', 'two')
  await recorder.untilState(cert, 'present', 'two')
  cluster.delete('serving-cert')
  await recorder.untilState(cert, 'absent')
  cluster.put('serving-cert', 'three')
  const again = await recorder.untilState(cert, 'present', 'three')
  t.match(again, { rewound: false, observation: { object: { uid: 'uid-2' } } })
  t.strictSame(source.latest(cert), again.observation)
  t.equal(cluster.requests.length, 1, 'all of it on one stream')
  t.strictSame(recorder.restarts, [])
})

void t.test('a new uid under the same name is another object', async (t) => {
  const { cluster, recorder, source } = await startWatching(t, {}, (c) => c.put('serving-cert', 'one'))
  source.follow([{ reference: cert }])
  await recorder.untilState(cert, 'present', 'one')
  cluster.putRaw('serving-cert', { data: { a: Buffer.from('one').toString('base64') } }, { uid: 'another' })
  await recorder.until('another uid', () => {
    const last = recorder.last(cert)?.observation
    return last?.state === 'present' && last.object.uid === 'another'
  })
  t.equal(recorder.reported.length, 2)
})

void t.test('an object that is being deleted is reported as terminating until it is gone', async (t) => {
  const { cluster, recorder, source } = await startWatching(t, {}, (c) => c.put('serving-cert', 'one'))
  source.follow([{ reference: cert }])
  await recorder.untilState(cert, 'present')
  cluster.put('serving-cert', 'one', { deletionTimestamp: '2026-01-01T00:00:00Z' })
  await recorder.until('terminating', () => {
    const last = recorder.last(cert)?.observation
    return last?.state === 'present' && last.object.terminating
  })
  cluster.delete('serving-cert')
  await recorder.untilState(cert, 'absent')
  t.equal(recorder.reported.length, 3)
})

void t.test('a server that refuses streaming lists hears of them once: then list, then watch', async (t) => {
  const { cluster, recorder, source } = await startWatching(t, {}, (c) => {
    c.streaming = 'refused'
    c.put('serving-cert', 'one')
  })
  source.follow([{ reference: cert }])
  await recorder.untilState(cert, 'present', 'one')
  cluster.put('serving-cert', 'two')
  await recorder.untilState(cert, 'present', 'two')
  source.follow([{ reference: cert }, { reference: reference('other') }])
  await recorder.untilState(reference('other'), 'absent')
  t.strictSame(
    cluster.requests.slice(0, 4).map(({ verb, name, query }) => [verb, name, query.get('resourceVersion')]),
    [
      ['watch', 'serving-cert', null],
      ['list', 'serving-cert', null],
      ['watch', 'serving-cert', '1001'],
      ['list', 'other', null],
    ],
  )
  t.strictSame(recorder.restarts, [], 'which is no restart')
})

void t.test('the missing end of initial events reveals a server that does not know of them', async (t) => {
  const { cluster, recorder, source } = await startWatching(
    t,
    { initialEventsTimeout: 300 },
    (c) => (c.streaming = 'ignored'),
  )
  source.follow([{ reference: cert }])
  await recorder.untilState(cert, 'absent')
  t.strictSame(
    cluster.requests.map(({ verb }) => verb).slice(0, 2),
    ['watch', 'list'],
    'absence is reported by the list alone',
  )
  cluster.put('serving-cert', 'one')
  await recorder.untilState(cert, 'present', 'one')
})

void t.test('a refusal of streaming lists is about one collection, and not for ever', async (t) => {
  const { cluster, recorder, source } = await startWatching(t, { streamingRetry: 300 }, (c) => {
    c.put('serving-cert', 'one')
    c.intercept = ({ path, query }, reply) => {
      if (!path.endsWith('/secrets') || query.get('sendInitialEvents') === null || !refusing) return false
      json(reply, 422, { kind: 'Status', code: 422, message: 'sendInitialEvents: Forbidden' })
      return true
    }
  })
  let refusing = true
  const configMap = reference('settings', 'ConfigMap')
  source.follow([{ reference: cert }])
  await recorder.untilState(cert, 'present', 'one')
  source.follow([{ reference: cert }, { reference: configMap }])
  await recorder.untilState(configMap, 'absent')
  const of = (end: string) => cluster.requests.filter(({ path }) => path.endsWith(end)).map(({ verb }) => verb)
  t.strictSame(of('/configmaps'), ['watch'], 'the other collection is still asked for a streaming list')
  t.strictSame(of('/secrets'), ['watch', 'list', 'watch'])
  refusing = false
  await new Promise((resolve) => setTimeout(resolve, 301))
  cluster.cut()
  await recorder.until('watched again', () => of('/secrets').length === 4 && cluster.watching === 2)
  t.equal(cluster.requests.findLast(({ path }) => path.endsWith('/secrets'))?.query.get('sendInitialEvents'), 'true')
})

void t.test('initial events that do not end in time make one watch list, and no other', async (t) => {
  const time = new SimulatedTime(t)
  const { cluster, recorder, source, logged } = await startWatching(t, { initialEventsTimeout: 300 }, (c) => {
    c.put('serving-cert', 'one')
    c.streaming = 'ignored'
  })
  source.follow([{ reference: cert }])
  await recorder.until('asked', () => cluster.watching === 1)
  await time.until('listed', () => cluster.requests.some(({ verb }) => verb === 'list'), 100)
  cluster.streaming = 'supported'
  const other = reference('other')
  source.follow([{ reference: cert }, { reference: other }])
  await recorder.untilState(other, 'absent')
  t.strictSame(
    cluster.requests.filter(({ name }) => name === 'other').map(({ verb }) => verb),
    ['watch'],
    'one slow answer says nothing of the API server',
  )
  t.notMatch(logged.join(), 'has no streaming lists')
})

void t.test("bookmarks confirm a watch's reports, and a watch whose time is over resumes", async (t) => {
  // Of one second: whenever the server ends such a watch, its time is over.
  const { cluster, recorder, source } = await startWatching(t, { watchSeconds: [1, 1] }, (c) => {
    c.put('serving-cert', 'one')
    c.obeysTimeouts = false
  })
  source.follow([{ reference: cert }])
  await recorder.untilState(cert, 'present', 'one')
  const confirmed = recorder.heartbeats.length
  cluster.revision = 2000
  cluster.bookmark()
  await recorder.until('confirmed', () => recorder.heartbeats.length > confirmed)
  for (const count of [2, 3]) {
    cluster.endWatches('serving-cert')
    await recorder.until('the next', () => cluster.requests.length === count && cluster.watching === 1)
  }
  t.strictSame(recorder.restarts, ['timeout', 'timeout'])
  t.strictSame(
    cluster.requests.map(({ query }) => [query.get('resourceVersion'), query.get('sendInitialEvents')]),
    [
      [null, 'true'],
      ['2000', null],
      [null, 'true'],
    ],
    'from the bookmark; and one that was silent all its life is not resumed',
  )
  t.equal(recorder.reported.length, 1, 'nothing new was reported')
})

void t.test('the reflector cuts a watch that outlives its time', async (t) => {
  const { cluster, recorder, source } = await startWatching(t, { watchSeconds: [1, 1], overrun: 100 }, (c) => {
    c.obeysTimeouts = false
  })
  source.follow([{ reference: cert }])
  await recorder.until('cut', () => recorder.restarts.length > 0)
  t.equal(recorder.restarts[0], 'silence', 'holdfast cut it: the server did not end it in order')
  await recorder.until('begun again', () => cluster.requests.length >= 2)
  cluster.put('serving-cert', 'one')
  await recorder.untilState(cert, 'present', 'one')
  await recorder.until('the old stream is not left open', () => cluster.watching === 1)
  t.equal(cluster.watching, 1, 'one stream is open')
})

void t.test('forgotten objects are not reported any more, kept ones go on', async (t) => {
  const { cluster, recorder, source } = await startWatching(t)
  const other = reference('other')
  source.follow([{ reference: cert }, { reference: other }])
  await recorder.untilState(cert, 'absent')
  await recorder.untilState(other, 'absent')
  source.follow([{ reference: cert }])
  t.equal(source.latest(other), undefined)
  cluster.put('other', 'unseen')
  cluster.put('serving-cert', 'one')
  await recorder.untilState(cert, 'present', 'one')
  t.equal(cluster.requests.length, 2, 'the kept watch is the same stream')
  t.equal(contentOf(recorder.last(other)?.observation), undefined)
  await source.close()
  const reported = recorder.reported.length
  cluster.put('serving-cert', 'two')
  source.follow([{ reference: cert }])
  t.equal(recorder.reported.length, reported)
})

void t.test('the source follows two hundred objects at once', async (t) => {
  const all = Array.from({ length: 200 }, (_, index) => reference(`object-${index}`))
  const { cluster, recorder, source } = await startWatching(t, {}, (c) => {
    for (const { name } of all) c.put(name, name)
  })
  source.follow(all.map((reference) => ({ reference })))
  await recorder.until('all present', () => all.every((one) => contentOf(source.latest(one)) === one.name))
  for (const { name } of all) cluster.put(name, `${name} again`)
  await recorder.until('all new', () => all.every((one) => contentOf(source.latest(one)) === `${one.name} again`))
  t.equal(cluster.requests.length, 200)
})
