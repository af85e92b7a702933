/** Events, on a clock that the test moves: some are made, some only counted, some wait, and some are given up. */
import t from 'tap'
import { eventBody, eventName } from '../../../src/kubernetes/events/event-body.js'
import { SimulatedTime } from '../../simulated-time.js'
import { settled, Scene, away, draft, minute } from './event-scene.js'

/** How long an event is only counted, after its last one. */
const seriesWindow = 15 * minute

/** Normal events of one object: so many at once, then one in so many milliseconds. */
const burst = 25

const refill = 5 * minute
const longestQueue = 100

await t.test('an event has all that the API demands', async (t) => {
  const scene = new Scene()
  await scene.record(draft())
  const [sent] = scene.sent
  t.match(sent, { method: 'POST', path: '/apis/events.k8s.io/v1/namespaces/ns/events' })
  t.match(sent?.body, {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { namespace: 'ns', name: /^a\.[0-9a-f]{16}$/ },
    eventTime: '2026-01-01T00:00:00.000000Z',
    type: 'Warning',
    reason: 'CertificateInvalid',
    action: 'Publish',
    note: 'note',
    reportingController: 'holdfast.dev/agent',
    reportingInstance: 'n1',
    regarding: { apiVersion: 'v1', kind: 'Secret', namespace: 'ns', name: 'a', uid: 'u' },
  })
  t.notOk(sent?.body.series)
})

await t.test('an event about a Node goes to the namespace "default", and its subject has no namespace', async (t) => {
  const scene = new Scene()
  await scene.record(draft('x', { subject: { kind: 'Node', namespace: '', name: 'n1', uid: 'n1' } }))
  t.equal(scene.sent[0]?.path, '/apis/events.k8s.io/v1/namespaces/default/events')
  t.strictSame(scene.sent[0]?.body.regarding, { apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'n1' })
})

function noteOf(text: string): string {
  const body = eventBody(draft(text), 'name', new Date(), { controller: 'holdfast', instance: 'n1' }, undefined)
  return (body as { note: string }).note
}

await t.test('names and notes keep to their limits, and are cut between characters', async (t) => {
  t.equal(noteOf('a'.repeat(1024)), 'a'.repeat(1024))
  for (const text of ['a'.repeat(2000), 'ä'.repeat(1000), `a${'ä'.repeat(1000)}`, '😀'.repeat(500)]) {
    const short = noteOf(text)
    t.ok(Buffer.byteLength(short) <= 1024 && Buffer.byteLength(short) > 1015, 'as long as it may be')
    t.ok(short.endsWith('…') && text.startsWith(short.slice(0, -1)), 'whole characters')
  }
  const name = `${'a'.repeat(235)}.${'b'.repeat(17)}`
  const event = eventName(name)
  t.match(event, /^a{235}\.[0-9a-f]{16}$/, 'no empty label where it was cut')
})

await t.test('a repeated occurrence is one event, whose count grows', async (t) => {
  const scene = new Scene()
  await scene.record(draft())
  await scene.clock.advance(minute)
  await scene.record(draft())
  await scene.clock.advance(seriesWindow - 1)
  await scene.record(draft())
  t.strictSame(scene.counts, ['POST 1', 'PATCH 2', 'PATCH 3'])
  const [made, patched] = scene.sent
  t.equal(patched?.path, `${made?.path ?? ''}/${(made?.body.metadata as { name: string }).name}`)
  t.strictSame(patched?.body, { series: { count: 2, lastObservedTime: '2026-01-01T00:01:00.000000Z' } })
  await scene.clock.advance(seriesWindow)
  await scene.record(draft())
  t.equal(scene.counts.at(-1), 'POST 1', 'after a while without it, it is another event')
})

await t.test('another text makes another event', async (t) => {
  const scene = new Scene()
  const other = { kind: 'Secret', namespace: 'ns', name: 'a', uid: 'another' } as const
  const drafts = [draft(), draft('other'), draft('note', { reason: 'ObjectInvalid' })]
  await scene.record(...drafts, draft('note', { type: 'Normal' }), draft('note', { subject: other }))
  t.strictSame(scene.counts, Array(5).fill('POST 1'))
})

await t.test('the recorder makes an event again that the server has forgotten, with its count', async (t) => {
  const scene = new Scene()
  await scene.record(draft())
  scene.answer = ({ method }) => (method === 'PATCH' ? 404 : 201)
  await scene.record(draft())
  t.strictSame(scene.counts, ['POST 1', 'PATCH 2', 'POST 2'])
  t.strictSame(scene.lines, [])
})

await t.test('no object gets more than a trickle, and notices cannot crowd out warnings', async (t) => {
  const scene = new Scene()
  const normal = (index: number) => draft(`publication ${index}`, { type: 'Normal', reason: 'Published' })
  for (let index = 0; index < 2 * burst; index++) await scene.record(normal(index))
  t.equal(scene.sent.length, burst)
  await scene.record(draft())
  t.equal(scene.sent.length, burst + 1, 'a warning')
  const other = { kind: 'Secret', namespace: 'ns', name: 'b', uid: 'u' } as const
  await scene.record(draft('note', { type: 'Normal', subject: other }))
  t.equal(scene.sent.length, burst + 2, 'another object')
  await scene.clock.advance(refill)
  await scene.record(normal(1000), normal(1001))
  t.equal(scene.sent.length, burst + 3, 'one in five minutes')
})

await t.test('the next event to go reports the occurrences that were only counted', async (t) => {
  const scene = new Scene()
  for (let index = 0; index < burst + 10; index++) await scene.record(draft())
  t.equal(scene.counts.at(-1), `PATCH ${burst}`)
  await scene.clock.advance(refill)
  await scene.record(draft())
  t.equal(scene.counts.at(-1), `PATCH ${burst + 11}`)
})

await t.test('events wait while the server is away, and go in order when it is back', async (t) => {
  const scene = new Scene()
  scene.answer = () => away
  await scene.record(draft('1'), draft('2'), draft('1'))
  t.equal(scene.sent.length, 1, 'one request at a time')
  await scene.clock.advance(999)
  await scene.clock.advance(2_000)
  const tries = scene.sent.length
  t.ok(tries > 1 && tries < 6, `tried again with growing delays: ${tries}`)
  for (const status of [503, 429, 401]) {
    scene.answer = () => status
    await scene.clock.advance(minute)
  }
  scene.sent.length = 0
  scene.answer = () => 201
  await scene.clock.advance(minute)
  t.strictSame(scene.counts, ['POST 2', 'POST 1'], 'what recurred meanwhile is one event')
  t.strictSame(
    scene.sent.map(({ body }) => body.note),
    ['1', '2'],
  )
  t.strictSame(scene.lines, [])
})

await t.test('the recorder drops the oldest of too many waiting events, and counts them', async (t) => {
  const scene = new Scene()
  scene.answer = () => away
  const about = (index: number) =>
    draft('note', { subject: { kind: 'Secret', namespace: 'ns', name: `s${index}`, uid: 'u' } })
  for (let index = 0; index < longestQueue + 50; index++) scene.recorder.record(about(index))
  await settled()
  scene.sent.length = 0
  scene.answer = () => 201
  await scene.clock.advance(minute)
  t.equal(scene.sent.length, longestQueue)
  const names = scene.sent.map(({ body }) => (body.regarding as { name: string }).name)
  t.equal(names.at(-1), `s${longestQueue + 49}`, 'the newest is reported')
  t.notOk(names.includes('s1'), 'the oldest is not')
  t.match(scene.lines, [{ level: 'warn', fields: { lost: 50 }, message: /dropped 50 events/ }])
})

await t.test('the recorder reports a denial once, and tries again seldom', async (t) => {
  const scene = new Scene()
  scene.answer = () => 403
  await scene.record(draft('1'))
  t.strictSame(scene.lines, [], 'a server that has just started denies everybody')
  await scene.clock.advance(minute)
  t.equal(scene.sent.length, 2)
  t.match(scene.lines, [{ level: 'warn', fields: { namespace: 'ns' }, message: /namespace ns .*holdfast rbac/ }])
  await scene.record(draft('2'), draft('3'))
  t.equal(scene.sent.length, 2, 'no request at all')
  await scene.clock.advance(10 * minute)
  await scene.record(draft('4'))
  t.equal(scene.sent.length, 3, 'asked again after a while')
  t.equal(scene.lines.length, 1, 'and not reported again')

  scene.recorder.retryDenied()
  scene.answer = () => 201
  await scene.record(draft('5'))
  t.equal(scene.sent.at(-1)?.body.note, '5', 'asked again at once after a reload')
  scene.answer = () => 403
  await scene.record(draft('6'))
  await scene.clock.advance(minute)
  t.equal(scene.lines.length, 2, 'a new denial is news')
})

await t.test('a denial of a request without a credential advises no Role', async (t) => {
  const scene = new Scene()
  scene.anonymous = true
  scene.answer = () => 403
  await scene.record(draft('1'))
  await scene.clock.advance(minute)
  t.match(scene.lines, [{ message: /no credential was sent: give the user/ }])
  t.notMatch(scene.lines[0]?.message, /Role/)
})

await t.test('a denial in one namespace leaves the others alone', async (t) => {
  const scene = new Scene()
  scene.answer = ({ path }) => (path.includes('/default/') ? 403 : 201)
  const node = { kind: 'Node', namespace: '', name: 'n1', uid: 'n1' } as const
  await scene.record(draft('x', { subject: node }))
  await scene.clock.advance(minute)
  await scene.record(draft('x', { subject: node, reason: 'NoSpace' }), draft())
  t.equal(scene.sent.at(-1)?.body.note, 'note')
})

await t.test('a request whose answer was lost has made the event', async (t) => {
  const scene = new Scene()
  scene.answer = () => away
  await scene.record(draft())
  scene.answer = () => 409
  await scene.clock.advance(minute)
  scene.answer = () => 200
  await scene.record(draft())
  t.strictSame(scene.counts, ['POST 1', 'POST 1', 'PATCH 2'])
})

await t.test('the recorder gives an event up that the server refuses', async (t) => {
  const scene = new Scene()
  scene.answer = () => 422
  await scene.record(draft())
  t.match(scene.lines, [{ level: 'warn', message: /the API server refused an event: as the test says/ }])
  scene.answer = () => 201
  await scene.record(draft('next'))
  t.equal(scene.sent.length, 2)
})

await t.test('close sends waiting events at once', async (t) => {
  const scene = new Scene()
  scene.answer = () => away
  await scene.record(draft('1'), draft('2'))
  t.ok(scene.clock.sleeping)
  scene.answer = () => 201
  await scene.recorder.close(20_000)
  t.strictSame(
    scene.sent.slice(1).map(({ body }) => body.note),
    ['1', '2'],
  )
  t.strictSame(scene.lines, [])
  await scene.record(draft('3'))
  t.equal(scene.sent.length, 3, 'nothing is taken any more')
})

await t.test('close tries once to reach a server that is away', async (t) => {
  const scene = new Scene()
  scene.answer = () => away
  await scene.record(draft('1'), draft('2'))
  await scene.recorder.close(20_000)
  t.equal(scene.sent.length, 2)
  t.match(scene.lines, [{ level: 'warn', fields: { unsent: 2 } }])
})

await t.test('close does not wait for a silent server', async (t) => {
  const scene = new Scene()
  scene.answer = () => new Promise<never>(() => {})
  await scene.record(draft())
  const time = new SimulatedTime(t)
  await time.during(scene.recorder.close(100))
  t.match(scene.lines, [{ level: 'warn', fields: { unsent: 1 } }])
})
