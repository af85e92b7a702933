/** A load balancer that ends each watch in order, long before its time: the watch goes on from where it was. */
import t from 'tap'
import { contentOf, reference } from '../recorder.js'
import { refuse } from '../../kubernetes/connection/api-server.js'
import { startWatching } from './watching.js'

const cert = reference('serving-cert')
const other = reference('other')

void t.test('watches that end early in order are resumed, without a list or a warning for each wave', async (t) => {
  const { cluster, recorder, source, logged } = await startWatching(t, { shortWatch: 0 }, (c) => {
    c.put('serving-cert', 'wave 0')
    c.put('other', 'one')
  })
  source.follow([{ reference: cert }, { reference: other }])
  await recorder.untilState(cert, 'present', 'wave 0')
  await recorder.until('both are watched', () => recorder.heartbeats.length >= 2 && cluster.watching === 2)
  const waves = 8
  for (let wave = 1; wave <= waves; wave++) {
    const asked = cluster.requests.length
    cluster.endWatches('serving-cert')
    cluster.endWatches('other')
    // What changes while no watch is open must not be missed.
    cluster.put('serving-cert', `wave ${wave}`)
    await recorder.until(`wave ${wave}`, () => cluster.requests.length === asked + 2 && cluster.watching === 2)
    await recorder.untilState(cert, 'present', `wave ${wave}`)
  }
  t.equal(contentOf(source.latest(other)), 'one')
  t.equal(cluster.requests.filter(({ query }) => query.has('sendInitialEvents')).length, 2, 'one list for each object')
  t.ok(cluster.requests.every(({ verb }) => verb === 'watch'))
  t.strictSame([...new Set(recorder.restarts)], ['timeout'], 'no failure is counted')
  const told = logged.filter((line) => !line.includes('"debug"'))
  t.equal(told.length, 1, told.join('\n'))
  t.match(told[0], /"info".*the server, or a load balancer before it, ended the watch after .* of .* it is resumed/)
  t.notOk(recorder.reported.some(({ rewound }) => rewound))
})

void t.test('a resumed watch of a history that is no more is found out in the time of one watch', async (t) => {
  const { cluster, recorder, source } = await startWatching(t, { watchSeconds: [3, 3], shortWatch: 0 })
  cluster.put('serving-cert', 'backed up')
  const backup = cluster.revision
  cluster.put('serving-cert', 'lost')
  source.follow([{ reference: cert }])
  await recorder.until('watched', () => contentOf(source.latest(cert)) === 'lost' && cluster.watching === 1)
  cluster.restore(backup, { cut: false })
  // The load balancer goes on to end silent connections, and each resumed watch is as silent.
  const ending = setInterval(() => cluster.endWatches('serving-cert'), 200)
  t.teardown(() => clearInterval(ending))
  const { rewound } = await recorder.untilState(cert, 'present', 'backed up')
  t.ok(rewound)
})

void t.test('a watch that ends at once, and says nothing, has failed', async (t) => {
  const { cluster, recorder, source, logged } = await startWatching(t, { shortWatch: 60_000 }, (c) =>
    c.put('serving-cert', 'one'),
  )
  source.follow([{ reference: cert }])
  await recorder.until('watched', () => contentOf(source.latest(cert)) === 'one' && cluster.watching === 1)
  cluster.endWatches('serving-cert')
  await recorder.until('resumed', () => cluster.requests.length === 2 && cluster.watching === 1)
  t.equal(cluster.requests[1]?.query.get('resourceVersion'), '1001', 'the first one brought the object')
  cluster.endWatches('serving-cert')
  await recorder.until('listed', () => cluster.requests.length === 3 && cluster.watching === 1)
  t.equal(cluster.requests[2]?.query.get('sendInitialEvents'), 'true')
  t.strictSame(recorder.restarts, ['timeout', 'connection'])
  t.match(logged.join('\n'), /"warn".*the server ended the watch after/)
})

void t.test('a resumed watch whose version has expired lists anew', async (t) => {
  let expired = 0
  const { cluster, recorder, source } = await startWatching(t, { shortWatch: 0 }, (c) => {
    c.put('serving-cert', 'one')
    c.intercept = ({ query }, reply) => {
      if (query.get('resourceVersion') === null || expired++ > 0) return false
      return refuse(reply, 410, 'too old resource version')
    }
  })
  source.follow([{ reference: cert }])
  await recorder.until('watched', () => contentOf(source.latest(cert)) === 'one' && cluster.watching === 1)
  cluster.endWatches('serving-cert')
  cluster.put('serving-cert', 'two')
  await recorder.untilState(cert, 'present', 'two')
  t.strictSame(recorder.restarts, ['timeout', 'expired'])
})
