import { PassThrough, Readable } from 'node:stream'
import t from 'tap'
import { Deadline } from '../../../src/deadline.js'
import { LargeReads } from '../../../src/kubernetes/connection/large-reads.js'
import { objectTarget } from '../../../src/kubernetes/reads/requests.js'
import { ReadProgress } from '../../../src/kubernetes/connection/progress.js'
import { readBody, retryAfter } from '../../../src/kubernetes/connection/response-body.js'
import { takeLines } from '../../../src/kubernetes/connection/watch-lines.js'
import { readEvents, WatchSession } from '../../../src/objects/kubernetes/watch-session.js'
import { ObjectEvents } from '../../../src/objects/kubernetes/watch-subject.js'
import { StoredObject } from '../../../src/objects/stored-object.js'
import { Recorder, reference } from '../../objects/recorder.js'
import { SimulatedTime } from '../../simulated-time.js'

void t.test('short lines take no place; long ones wait for one another, in their order', async (t) => {
  const lines = new LargeReads(1, 10)
  const { signal } = new AbortController()
  const [first, second, third] = [lines.place(signal), lines.place(signal), lines.place(signal)]
  await first.grown(10)
  await first.grown(20)
  await second.grown(9)
  const order: string[] = []
  const waiting = [second.grown(10).then(() => order.push('second')), third.grown(10).then(() => order.push('third'))]
  first.leave()
  await waiting[0]
  t.strictSame(order, ['second'])
  second.leave()
  second.leave()
  await waiting[1]
  t.strictSame(order, ['second', 'third'])
  let isTaken = false
  const fourth = lines
    .place(signal)
    .grown(10)
    .then(() => (isTaken = true))
  await new Promise(setImmediate)
  t.notOk(isTaken, 'a place that is left twice is given back once')
  third.leave()
  await fourth
})

await t.test('Retry-After is seconds or a date, and a date that has passed asks for no wait', async (t) => {
  const now = Date.parse('2026-01-01T00:00:00Z')
  t.equal(retryAfter('7', now), 7_000)
  t.equal(retryAfter('Thu, 01 Jan 2026 00:00:10 GMT', now), 10_000)
  t.equal(retryAfter('Wed, 31 Dec 2025 23:59:50 GMT', now), 0)
  for (const value of ['', 'soon', undefined]) t.equal(retryAfter(value, now), undefined)
})

void t.test('a stream that is abandoned while it waits takes no place', async (t) => {
  const lines = new LargeReads(1, 10)
  const abort = new AbortController()
  const [first, second, third] = [
    lines.place(new AbortController().signal),
    lines.place(abort.signal),
    lines.place(new AbortController().signal),
  ]
  await first.grown(10)
  const abandoned = t.rejects(second.grown(10), /stopped/)
  const next = third.grown(10)
  abort.abort(new Error('stopped'))
  await abandoned
  second.leave()
  first.leave()
  await next
  await t.rejects(lines.place(abort.signal).grown(10), /stopped/)
})

void t.test('a body waits for its place as a line does, and its time stands still meanwhile', async (t) => {
  const time = new SimulatedTime(t)
  const reads = new LargeReads(1, 10)
  const first = reads.place(new AbortController().signal)
  await first.grown(10)
  const deadline = new Deadline(50, undefined)
  t.teardown(() => deadline.dispose())
  const { signal } = deadline
  const place = reads.place(signal, deadline)
  const body = Readable.from([Buffer.alloc(9, 'a'), Buffer.alloc(9, 'b')])
  const answer = { status: 200, headers: {}, body, broken: () => undefined }
  let read = false
  const reading = readBody(answer, {
    limit: 100,
    what: 'GET /x',
    signal,
    place,
    progress: new ReadProgress(() => 0),
  }).then((bytes) => {
    read = true
    return bytes
  })
  await time.advance(200)
  t.notOk(read, 'what waits is not read on')
  first.leave()
  t.equal((await reading).toString(), 'aaaaaaaaabbbbbbbbb')
  t.notOk(deadline.expired)
  const next = reads.place(new AbortController().signal)
  await next.grown(10)
})

void t.test('the end of a line that waits for its place is not late', async (t) => {
  const time = new SimulatedTime(t)
  const reads = new LargeReads(1, 10)
  const first = reads.place(new AbortController().signal)
  await first.grown(10)
  const body = new PassThrough()
  const attempt = new AbortController()
  const { signal } = attempt
  const cert = reference('cert')
  const target = objectTarget(cert)
  const stored = new StoredObject(cert, new Recorder())
  const events = new ObjectEvents(stored, () => Promise.reject(new Error('nothing is stale')))
  const subject = { target, objects: () => [stored] }
  const session = new WatchSession(subject, undefined, events)
  const timing = { initialEventsTimeout: 50, requestTimeout: 60_000, overrun: 60_000, silence: 60_000 }
  const progress = new ReadProgress(() => 0)
  const lines = { limit: 1000, what: 'GET /x', signal, largeReads: reads, progress }
  const ended = readEvents(
    {
      progress,
      takeLines: (take, patience) => takeLines({ body, broken: () => undefined }, { ...lines, patience }, take),
    },
    session,
    { target, seconds: 300, timing, attempt, bookmarked: false },
  )
  const object = { metadata: { resourceVersion: '7', annotations: { 'k8s.io/initial-events-end': 'true' } } }
  const line = JSON.stringify({ type: 'BOOKMARK', object })
  body.write(line.slice(0, 20))
  await time.advance(200)
  body.end(`${line.slice(20)}\n`)
  first.leave()
  await ended
  t.match(stored.latest, { state: 'absent' })
})
