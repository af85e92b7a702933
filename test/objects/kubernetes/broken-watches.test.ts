/** Watches that are answered 200 and then break: each waits by its own backoff, and none wakes the others for ever. */
import type { ServerResponse } from 'node:http'
import t from 'tap'
import { defaultTiming } from '../../../src/objects/kubernetes/timing.js'
import { SimulatedTime } from '../../simulated-time.js'
import { contentOf, reference } from '../recorder.js'
import { startWatching } from './watching.js'

const all = Array.from({ length: 10 }, (_, index) => reference(`object-${index}`))
const well = reference('well')

/** As of a kube-apiserver whose encryption key is lost. */
const illStore = { kind: 'Status', code: 500, reason: 'InternalError', message: 'unable to transform key' }
const object = { metadata: { name: '', namespace: 'kube-system', uid: 'one', resourceVersion: '1001' }, data: {} }

/** What breaks a stream whose head has gone out. */
const ends: Record<string, (stream: ServerResponse, name: string) => void> = {
  'an ERROR event': (stream) => stream.end(`${JSON.stringify({ type: 'ERROR', object: illStore })}\n`),
  'a reset': (stream) => setImmediate(() => stream.destroy()),
  'a clean end': (stream) => stream.end(),
  'an event and a reset': (stream, name) => {
    const metadata = { ...object.metadata, name }
    stream.write(`${JSON.stringify({ type: 'ADDED', object: { ...object, metadata } })}\n`)
    setImmediate(() => stream.destroy())
  },
}

for (const [what, end] of Object.entries(ends)) {
  void t.test(`ten streams that break by ${what} stay quiet, beside one that is well`, async (t) => {
    const time = new SimulatedTime(t)
    const { cluster, recorder, source, logged } = await startWatching(t, defaultTiming, (c) => {
      c.put('well', 'one')
      c.intercept = ({ verb, name }, reply) => {
        if (verb !== 'watch' || name === 'well') return false
        const stream = reply as ServerResponse
        stream.writeHead(200, { 'content-type': 'application/json' })
        stream.flushHeaders()
        end(stream, name)
        return true
      }
    })
    source.follow([...all, well].map((reference) => ({ reference })))
    await time.until('well', () => contentOf(source.latest(well)) === 'one', 100)
    // By its backoff each watch begins some eight times in the first minute; a wake may halve a delay.
    const most = 16 * all.length
    const over = performance.now() + 60_000
    await time.until('a minute or a storm', () => performance.now() >= over || cluster.requests.length > most, 1_000)
    t.ok(cluster.requests.length <= most, `${cluster.requests.length} requests`)
    const warnings = logged.filter((line) => line.includes('"level":"warn"'))
    t.ok(warnings.length <= all.length, `${warnings.length} warnings`)
    t.ok(recorder.restarts.length > all.length, 'they go on to try')
  })
}
