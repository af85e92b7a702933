/** A watch that the server has forgotten: nothing ends it, and nothing comes. */
import t from 'tap'
import { contentOf, reference } from '../recorder.js'
import { SimulatedTime } from '../../simulated-time.js'
import { startWatching } from './watching.js'

const cert = reference('serving-cert')

void t.test('silence after a bookmark ends the stream, and the reflector lists the object again', async (t) => {
  const { cluster, recorder, source, logged } = await startWatching(t, { silence: 300 }, (c) =>
    c.put('serving-cert', 'one'),
  )
  source.follow([{ reference: cert }])
  await recorder.untilState(cert, 'present', 'one')
  cluster.revision = 2000
  cluster.bookmark()
  // The server keeps the stream open, and has forgotten its reader.
  cluster.forgetWatches()
  cluster.put('serving-cert', 'two')
  await recorder.untilState(cert, 'present', 'two')
  t.strictSame(recorder.restarts, ['silence'], 'a watch that holdfast cut is not one whose time was over')
  t.strictSame(
    cluster.requests.map(({ query }) => [query.get('resourceVersion'), query.get('sendInitialEvents')]),
    [
      [null, 'true'],
      [null, 'true'],
    ],
    'not resumed',
  )
  t.matchOnly(logged, [/Secret kube-system\/serving-cert: the watch was silent for 0\.3 s/])
})

void t.test('each event and each bookmark ends a silence', async (t) => {
  const time = new SimulatedTime(t)
  const { cluster, recorder, source } = await startWatching(t, { silence: 5_000 }, (c) => c.put('serving-cert', 'one'))
  source.follow([{ reference: cert }])
  await recorder.untilState(cert, 'present', 'one')
  for (let written = 0; written < 6; written++) {
    const confirmed = recorder.heartbeats.length
    cluster.revision += 1
    if (written % 2 === 0) cluster.bookmark()
    else cluster.put('serving-cert', `content ${written}`)
    await recorder.until('confirmed', () => recorder.heartbeats.length > confirmed)
    await time.advance(4_000)
  }
  t.strictSame(recorder.restarts, [])
  t.equal(cluster.requests.length, 1)
})

void t.test('a server that sends no bookmarks may be silent for as long as the watch lasts', async (t) => {
  const time = new SimulatedTime(t)
  const { cluster, recorder, source } = await startWatching(t, { silence: 100, watchSeconds: [2, 2] }, (c) =>
    c.put('serving-cert', 'one'),
  )
  source.follow([{ reference: cert }])
  await recorder.untilState(cert, 'present', 'one')
  await time.until('its time is over', () => recorder.restarts.length > 0, 100)
  t.strictSame(recorder.restarts, ['timeout'])
  t.equal(contentOf(source.latest(cert)), 'one')
  t.equal(cluster.requests[0]?.query.get('timeoutSeconds'), '2')
})
