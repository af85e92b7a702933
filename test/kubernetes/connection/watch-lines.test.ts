/** The lines of a watch do not depend on how the network cuts them, and no line makes more of a watch than a failure. */
import assert from 'node:assert/strict'
import { PassThrough, Readable } from 'node:stream'
import fc from 'fast-check'
import t from 'tap'
import { ConnectionError, StreamLine } from '../../../src/kubernetes/connection/client.js'
import { ApiError } from '../../../src/kubernetes/reads/api-error.js'
import { LargeReads } from '../../../src/kubernetes/connection/large-reads.js'
import { ReadProgress } from '../../../src/kubernetes/connection/progress.js'
import { takeLines } from '../../../src/kubernetes/connection/watch-lines.js'
import { WatchSession } from '../../../src/objects/kubernetes/watch-session.js'
import { objectTarget } from '../../../src/kubernetes/reads/requests.js'
import { ObjectEvents } from '../../../src/objects/kubernetes/watch-subject.js'
import { StoredObject } from '../../../src/objects/stored-object.js'
import { holds } from '../../property.js'
import { until } from '../../until.js'
import { Recorder, reference } from '../../objects/recorder.js'

/** Bytes of the longest line that the reader takes here. */
const limit = 40

const options = () => {
  const progress = new ReadProgress(() => 0)
  return { limit, what: 'GET /x', signal: new AbortController().signal, largeReads: new LargeReads(1, 10), progress }
}

/** Reads a body in these chunks: its lines, and the error that ended them. */
async function read(chunks: Iterable<Buffer>): Promise<{ lines: string[]; error: string | undefined }> {
  const body = Readable.from(chunks)
  const lines: string[] = []
  try {
    await takeLines({ body, broken: () => undefined }, options(), (line) => {
      lines.push(line.take())
      return Promise.resolve()
    })
    return { lines, error: undefined }
  } catch (error) {
    assert.ok(error instanceof ConnectionError, String(error))
    return { lines, error: error.message }
  }
}

/** The body cut at these places. */
function cut(body: Buffer, places: readonly number[]): Buffer[] {
  const at = [0, ...places.map((place) => place % (body.length + 1)).sort((a, b) => a - b), body.length]
  return at.slice(1).map((end, index) => body.subarray(at[index], end))
}

/** The expected outcome of a body: every line that is not empty, up to one that is too long, or cut off by the end. */
function expected(body: Buffer): { lines: string[]; error: string | undefined } {
  const lines: string[] = []
  for (let start = 0; start < body.length;) {
    const end = body.indexOf(10, start)
    const line = body.subarray(start, end === -1 ? undefined : end)
    if (line.length > limit) return { lines, error: `GET /x: a line is longer than ${limit} bytes` }
    if (end === -1) return { lines, error: 'GET /x: the stream ended in the middle of a line' }
    if (line.length > 0) lines.push(line.toString())
    start = end + 1
  }
  return { lines, error: undefined }
}

const places = fc.array(fc.nat({ max: 1000 }), { maxLength: 8 })

await t.test('takeLines reads lines of any bytes, in chunks of any sizes', async (t) => {
  const line = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 12 }).map((text) => Buffer.from(text.replaceAll('\n', ''))),
    // Among them bytes that are no UTF-8, and cut characters.
    fc.uint8Array({ maxLength: limit }).map((bytes) => Buffer.from(bytes.filter((byte) => byte !== 10))),
    fc.integer({ min: limit - 1, max: limit + 2 }).map((length) => Buffer.alloc(length, 'x')),
  )
  const bodies = fc
    .tuple(fc.array(line, { maxLength: 6 }), fc.boolean())
    .map(([lines, ended]) =>
      Buffer.from(lines.map((one) => `${one.toString('latin1')}\n`).join(''), 'latin1').subarray(
        0,
        ended ? undefined : -1,
      ),
    )
  const property = fc.asyncProperty(bodies, places, async (body, places) => {
    assert.deepEqual(await read(cut(body, places)), expected(body))
  })
  await holds(t, 'chunks', property)
})

await t.test('takeLines gives a line up at the limit, and reads no more of it', async (t) => {
  let produced = 0
  function* endless() {
    for (;;) yield Buffer.alloc(8, 'x', (produced++, undefined))
  }
  t.same(await read(endless()), { lines: [], error: `GET /x: a line is longer than ${limit} bytes` })
  // Node reads a stream of objects 16 ahead.
  t.ok(produced <= limit / 8 + 1 + 16, `${produced} chunks`)
})

await t.test('takeLines takes one line at a time, and reads nothing more meanwhile', async (t) => {
  const body = new PassThrough()
  const taken: string[] = []
  let go = (): void => undefined
  const end = takeLines({ body, broken: () => undefined }, options(), async (line) => {
    taken.push(line.take())
    await new Promise<void>((resolve) => (go = resolve))
  })
  body.write('a\nb\n')
  await until('the first line is taken', () => taken.length === 1)
  body.write('c\n')
  body.end()
  t.equal(body.isPaused(), true)
  for (const count of [2, 3]) {
    go()
    await until('the next line is taken', () => taken.length === count)
  }
  go()
  await end
  t.strictSame(taken, ['a', 'b', 'c'])
})

await t.test('a failed or closed body ends takeLines once the line under way has ended', async (t) => {
  for (const end of [(body: PassThrough) => body.destroy(new Error('cut')), (body: PassThrough) => body.destroy()]) {
    const body = new PassThrough()
    let go: (() => void) | undefined
    let ended = false
    const reading = takeLines({ body, broken: () => undefined }, options(), async () => {
      await new Promise<void>((resolve) => (go = resolve))
      ended = true
    })
    const failed = t.rejects(reading, { name: 'ConnectionError' }).then(() => t.equal(ended, true))
    body.write('a\n')
    const took = await until('the line is taken', () => go)
    end(body)
    await until('the body is closed', () => body.closed)
    took()
    await failed
    await t.rejects(
      takeLines({ body, broken: () => undefined }, options(), () => Promise.resolve()),
      { name: 'ConnectionError' },
      'and a body that was closed before',
    )
  }
})

const cert = reference('a')

function newSession(from: string | undefined): WatchSession {
  const stored = new StoredObject(cert, new Recorder())
  const fresh = { observation: { state: 'absent' }, resourceVersion: '1', uid: undefined } as const
  const target = objectTarget(cert)
  return new WatchSession(
    { target, objects: () => [stored] },
    from,
    new ObjectEvents(stored, () => Promise.resolve(fresh)),
  )
}

await t.test('every line makes an event or an ApiError, whose text quotes nothing', async (t) => {
  const canary = 'CANARY-3fd1'
  const anything = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constant(canary))
  const metadata = fc.record(
    {
      name: fc.oneof(fc.constant('a'), anything),
      namespace: fc.oneof(fc.constant('kube-system'), anything),
      resourceVersion: fc.oneof(fc.constantFrom('1', '9', '10'), anything),
      uid: anything,
      annotations: fc.oneof(fc.constant({ 'k8s.io/initial-events-end': 'true' }), anything),
    },
    { requiredKeys: [] },
  )
  const event = fc.record(
    {
      type: fc.oneof(fc.constantFrom('ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR'), anything),
      object: fc.oneof(fc.record({ metadata, data: anything, code: anything }, { requiredKeys: [] }), anything),
    },
    { requiredKeys: [] },
  )
  const line = fc.oneof(
    { weight: 5, arbitrary: event.map((event) => JSON.stringify(event)) },
    fc.string().map((text) => text + canary),
    anything.map((value) => JSON.stringify(value)),
  )
  let failed = 0
  let taken = 0
  const property = fc.asyncProperty(
    fc.array(line, { maxLength: 5 }),
    fc.constantFrom('5', undefined),
    async (lines, from) => {
      const session = newSession(from)
      try {
        for (const line of lines) {
          await session.take(new StreamLine([Buffer.from(line)]))
          taken++
        }
      } catch (error) {
        failed++
        assert.ok(error instanceof ApiError, String(error))
        assert.ok(!error.message.includes(canary), error.message)
      }
    },
  )
  await holds(t, 'events', property, { runs: 500 })
  t.ok(failed > 100 && taken > 100, `${failed} failed, ${taken} were taken: the property is about something`)
})

await t.test('a stream that ends in order, of a response that was broken before, is a failure', async (t) => {
  const reading = takeLines(
    {
      body: Readable.from([Buffer.from('{}\n')]),
      broken: () => new ConnectionError('GET /x: the server cut the answer', 'protocol'),
    },
    options(),
    () => Promise.resolve(),
  )
  await t.rejects(reading, { message: /cut the answer/ })
})
