import type { ServerResponse } from 'node:http'
import t from 'tap'
import { Random } from '../../random.js'
import { replay, seed } from '../../seed.js'
import { contentOf, reference } from '../recorder.js'
import { json, type Reply } from '../../kubernetes/connection/api-server.js'
import { SimulatedTime } from '../../simulated-time.js'
import { startWatching } from './watching.js'

const cert = reference('serving-cert')

/** The source has seen a change that came after the backup of the cluster. */
async function watchingAfterABackup(...how: Parameters<typeof startWatching>) {
  const { cluster, recorder, source } = await startWatching(...how)
  cluster.put('serving-cert', 'backed up')
  const backup = cluster.revision
  cluster.put('serving-cert', 'lost')
  source.follow([{ reference: cert }])
  await recorder.untilState(cert, 'present', 'lost')
  return { cluster, recorder, backup }
}

void t.test('a list that lags behind the published version changes nothing', async (t) => {
  const { cluster, recorder, source } = await startWatching(t)
  cluster.put('serving-cert', 'oldest')
  cluster.put('serving-cert', 'old')
  const { metadata } = cluster.put('serving-cert', 'new')
  cluster.lag = 2
  source.follow([{ reference: cert, published: metadata }])
  const { rewound } = await recorder.untilState(cert, 'present')
  t.equal(contentOf(source.latest(cert)), 'new')
  t.notOk(rewound)
  t.equal(recorder.reported.length, 1, 'the old one was never reported')
  t.strictSame(
    cluster.requests.map(({ verb }) => verb),
    ['watch', 'get'],
  )
  t.strictSame([...(cluster.requests[1]?.query.keys() ?? [])], [], 'a read that accepts no cache')
  cluster.lag = 0
  cluster.flush()
  cluster.put('serving-cert', 'newer')
  await recorder.untilState(cert, 'present', 'newer')
  t.equal(cluster.requests.length, 2, 'what the stream then catches up with asks for nothing')
})

void t.test('an absence that lags behind changes nothing', async (t) => {
  for (const streaming of ['supported', 'refused'] as const) {
    const { cluster, recorder, source } = await startWatching(t, {}, (c) => (c.streaming = streaming))
    const { metadata } = cluster.put('serving-cert', 'new')
    cluster.lag = 1
    source.follow([{ reference: cert, published: metadata }])
    await recorder.untilState(cert, 'present', 'new')
    t.equal(recorder.reported.length, 1, streaming)
  }
})

void t.test('a lagging server does not undo a deletion', async (t) => {
  const { cluster, recorder, source } = await startWatching(t, {}, (c) => c.put('serving-cert', 'one'))
  source.follow([{ reference: cert }])
  await recorder.untilState(cert, 'present')
  cluster.delete('serving-cert')
  await recorder.untilState(cert, 'absent')
  cluster.lag = 1
  cluster.cut()
  const asked = (verb: string) => cluster.requests.filter((request) => request.verb === verb).length
  await recorder.until('doubted, and doubted again', () => asked('get') >= 4)
  cluster.lag = 0
  const confirmed = recorder.heartbeats.length
  await recorder.until('back', () => recorder.heartbeats.length > confirmed && cluster.watching === 1)
  t.equal(source.latest(cert)?.state, 'absent')
  t.equal(recorder.reported.length, 2)
})

void t.test('a version published while the source runs is a floor, too', async (t) => {
  const { cluster, recorder, source } = await startWatching(t, {}, (c) => c.put('serving-cert', 'one'))
  source.follow([{ reference: cert }])
  await recorder.untilState(cert, 'present', 'one')
  source.published(cert, { uid: 'uid-1', resourceVersion: '1500' })
  cluster.put('serving-cert', 'two')
  const { rewound } = await recorder.untilState(cert, 'present', 'two')
  t.ok(rewound, 'below it only with the word of a fresh read')
  source.published(cert, { uid: 'uid-1', resourceVersion: '1500' })
  cluster.put('serving-cert', 'three')
  t.notOk((await recorder.untilState(cert, 'present', 'three')).rewound, 'the lost history raises no floor again')
  t.equal(cluster.requests.filter(({ verb }) => verb === 'get').length, 1)
})

void t.test('the source recognises an etcd restored from a backup', async (t) => {
  for (const streaming of ['supported', 'refused'] as const) {
    const { cluster, recorder, source } = await startWatching(t, {}, (c) => (c.streaming = streaming))
    cluster.put('serving-cert', 'backed up')
    const backup = cluster.revision
    source.follow([{ reference: cert }])
    await recorder.untilState(cert, 'present', 'backed up')
    cluster.put('serving-cert', 'lost')
    await recorder.untilState(cert, 'present', 'lost')
    cluster.restore(backup)
    const { rewound } = await recorder.untilState(cert, 'present', 'backed up')
    t.ok(rewound, streaming)
    cluster.put('serving-cert', 'after')
    const after = await recorder.untilState(cert, 'present', 'after')
    t.match(after, { rewound: false, observation: { object: { resourceVersion: '1002' } } })
  }
})

void t.test('the source follows a restore to before the object was made', async (t) => {
  const { cluster, recorder, source } = await startWatching(t)
  const backup = cluster.revision
  cluster.put('serving-cert', 'one')
  cluster.put('serving-cert', 'two')
  source.follow([{ reference: cert }])
  await recorder.untilState(cert, 'present', 'two')
  cluster.restore(backup)
  t.ok((await recorder.untilState(cert, 'absent')).rewound)
  cluster.put('serving-cert', 'again')
  t.notOk((await recorder.untilState(cert, 'present', 'again')).rewound, 'and life goes on there')
})

void t.test('the source recognises another history that has reached the same version with other content', async (t) => {
  const { cluster, recorder, backup } = await watchingAfterABackup(t)
  await cluster.stop()
  cluster.restore(backup, { cut: false })
  cluster.put('serving-cert', 'found')
  await cluster.start()
  const { rewound, observation } = await recorder.untilState(cert, 'present', 'found')
  t.ok(rewound)
  t.match(observation, { object: { resourceVersion: '1002' } })
})

void t.test('the silence of the resumed watch reveals a restore that breaks no connection', async (t) => {
  // Of one second: whenever the server ends such a watch, its time is over.
  const { cluster, recorder, backup } = await watchingAfterABackup(t, { watchSeconds: [1, 1] }, (c) => {
    c.obeysTimeouts = false
  })
  cluster.restore(backup, { cut: false })
  cluster.endWatches('serving-cert')
  await recorder.until('resumed', () => cluster.requests.length === 2 && cluster.watching === 1)
  t.equal(cluster.requests[1]?.query.get('resourceVersion'), '1002')
  cluster.endWatches('serving-cert')
  const { rewound } = await recorder.untilState(cert, 'present', 'backed up')
  t.ok(rewound)
  t.strictSame(
    cluster.requests.slice(2).map(({ verb, query }) => [verb, query.get('sendInitialEvents')]),
    [
      ['watch', 'true'],
      ['get', null],
    ],
    'after two watches',
  )
})

void t.test('a resumed watch that breaks begins again with a consistent read', async (t) => {
  const { cluster, recorder, backup } = await watchingAfterABackup(t, { watchSeconds: [1, 1] }, (c) => {
    c.obeysTimeouts = false
  })
  cluster.endWatches('serving-cert')
  await recorder.until('resumed', () => cluster.requests.length === 2 && cluster.watching === 1)
  t.equal(cluster.requests[1]?.query.get('resourceVersion'), '1002')
  cluster.restore(backup)
  t.ok((await recorder.untilState(cert, 'present', 'backed up')).rewound)
  t.equal(cluster.requests[2]?.query.get('sendInitialEvents'), 'true')
})

void t.test('a bookmark that goes backwards leads to a fresh read', async (t) => {
  const { cluster, recorder, backup } = await watchingAfterABackup(t)
  cluster.restore(backup, { cut: false })
  const bookmark = { type: 'BOOKMARK', object: { metadata: { resourceVersion: String(backup) } } }
  cluster.sendLine('serving-cert', JSON.stringify(bookmark))
  t.ok((await recorder.untilState(cert, 'present', 'backed up')).rewound)
  t.strictSame(recorder.restarts, ['expired'])
})

void t.test('the time of a fresh read does not count against streaming lists', async (t) => {
  const time = new SimulatedTime(t)
  const { cluster, recorder, source, logged } = await startWatching(t, { initialEventsTimeout: 1_000 })
  const { metadata } = cluster.put('serving-cert', 'new')
  cluster.lag = 1
  let asked: Reply | undefined
  cluster.intercept = ({ verb }, reply) => {
    if (verb !== 'get') return false
    asked = reply
    return true
  }
  source.follow([{ reference: cert, published: metadata }])
  await recorder.until('the fresh read', () => asked !== undefined)
  await time.advance(1_500)
  if (asked) json(asked, 200, { kind: 'Secret', ...cluster.current('serving-cert') })
  await recorder.untilState(cert, 'present', 'new')
  t.strictSame(
    cluster.requests.map(({ verb }) => verb),
    ['watch', 'get'],
  )
  t.notMatch(logged.join(), 'no streaming lists')
})

void t.test('a failed fresh read decides nothing', async (t) => {
  const { cluster, recorder, source } = await startWatching(t)
  const { metadata } = cluster.put('serving-cert', 'new')
  cluster.lag = 1
  let gets = 0
  cluster.intercept = ({ verb }, reply) => {
    if (verb !== 'get' || (gets += 1) > 2) return false
    const response = reply as ServerResponse
    // As a proxy says it: not the API server's own word.
    response.writeHead(gets === 1 ? 404 : 503).end('nothing here')
    return true
  }
  source.follow([{ reference: cert, published: metadata }])
  t.match((await recorder.untilState(cert, 'unknown')).observation, { reason: 'SourceUnavailable' })
  await recorder.untilState(cert, 'present', 'new')
  t.ok(recorder.reported.every(({ rewound, observation }) => !rewound && observation.state !== 'absent'))
})

void t.test("reports never go backwards, in every order of a lagging server's answers", async (t) => {
  const random = new Random(seed)
  t.comment(replay)
  const { cluster, recorder, source } = await startWatching(t, {
    firstDelay: 2,
    longestDelay: 4,
    wakeSpread: 2,
    wakeInterval: 0,
    scoutDelay: 4,
  })
  const all = Array.from({ length: 5 }, (_, index) => reference(`object-${index}`))
  const highest = new Map<string, number>()
  const observed = recorder.observed.bind(recorder)
  let backwards: string | undefined
  recorder.observed = (reference, observation, details) => {
    if (observation.state === 'present') {
      const version = Number(observation.object.resourceVersion)
      const before = highest.get(reference.name) ?? 0
      if (version < before && !details.rewound) backwards ??= `${reference.name}: ${before} to ${version}`
      if (details.rewound) backwards ??= `${reference.name}: reported as rewound, which it was not`
      highest.set(reference.name, version)
    }
    observed(reference, observation, details)
  }
  source.follow(all.map((reference) => ({ reference })))
  for (let round = 0; round < 400 && backwards === undefined; round++) {
    const name = `object-${random.below(5)}`
    const dice = random.below(20)
    if (dice < 10) cluster.put(name, `round ${round}`)
    else if (dice < 12) cluster.delete(name)
    else if (dice < 14) cluster.lag = random.below(8)
    else if (dice < 15) cluster.cut()
    else if (dice < 16) cluster.endWatches(name)
    else if (dice < 17) cluster.bookmark()
    else if (dice < 18) cluster.streaming = random.below(2) ? 'refused' : 'supported'
    else cluster.flush()
    await new Promise((resolve) => setTimeout(resolve, random.below(4)))
  }
  t.equal(backwards, undefined)
  cluster.lag = 0
  cluster.flush()
  for (const one of all) {
    const object = cluster.current(one.name)
    await recorder.until(`${one.name} as it is`, () => {
      const latest = source.latest(one)
      if (object === undefined) return latest?.state === 'absent'
      return latest?.state === 'present' && latest.object.resourceVersion === object.metadata.resourceVersion
    })
  }
})
