/** A watch that lived for long enough resets its backoff; one that broke before does not. The tests compare delays, and wait for none. */
import t, { type Test } from 'tap'
import { silent } from '../../../src/log.js'
import { Recovery } from '../../../src/objects/kubernetes/recovery.js'
import { Reflector } from '../../../src/objects/kubernetes/reflector.js'
import { AbortableSemaphore } from '../../../src/abortable-semaphore.js'
import { StreamingLists } from '../../../src/objects/kubernetes/streaming-lists.js'
import { defaultTiming } from '../../../src/objects/kubernetes/timing.js'
import { ObjectSubject } from '../../../src/objects/kubernetes/watch-subject.js'
import { StoredObject } from '../../../src/objects/stored-object.js'
import { Recorder, reference } from '../recorder.js'
import { connectTo } from '../../kubernetes/connection/connected.js'
import { ModelCluster } from './model-cluster.js'

const cert = reference('serving-cert')

/** Records each delay, and does not wait. */
class RecordingRecovery extends Recovery {
  readonly delays: number[] = []

  override waitForServer(delay: number): Promise<boolean> {
    this.delays.push(delay)
    return Promise.resolve(false)
  }
}

/** The delays of a watch whose connection breaks: `before` times before a stream, after each of two streams, and `before` times again. */
async function delaysOf(t: Test, healthyAfter: number, before: number): Promise<readonly number[]> {
  const cluster = new ModelCluster()
  cluster.put('serving-cert', 'one')
  await cluster.start()
  t.teardown(() => cluster.stop())
  let refusals = before
  cluster.intercept = () => {
    if (refusals === 0) return false
    refusals--
    cluster.cut()
    return true
  }
  const recorder = new Recorder()
  // The longest of each random range: a first delay of half a second is half a second.
  const random = () => 1
  const recovery = new RecordingRecovery(defaultTiming, random)
  const timing = { ...defaultTiming, healthyAfter }
  const client = await connectTo(t, cluster.url)
  const context = {
    client,
    listener: recorder,
    log: silent,
    random,
    timing,
    recovery,
    streamingLists: new StreamingLists(silent, 0),
    openings: new AbortableSemaphore(1),
  }
  const watch = new Reflector(new ObjectSubject(new StoredObject(cert, recorder), context.client), context)
  const running = watch.run()
  for (let stream = 1; stream <= 2; stream++) {
    const confirmed = recorder.heartbeats.length
    await recorder.until(`stream ${stream}`, () => recorder.heartbeats.length > confirmed && cluster.watching === 1)
    if (stream === 2) refusals = before
    cluster.cut()
  }
  await recorder.until('all failures', () => recovery.delays.length >= 2 * before + 2)
  watch.stop()
  await running
  t.equal(new Set(recorder.restarts).size, 1, `one kind, ${recorder.restarts[0]}: another would start again by itself`)
  return recovery.delays.slice(0, 2 * before + 2)
}

await t.test('a failure after a long-lived stream counts as a first one', async (t) => {
  t.strictSame(await delaysOf(t, 0, 2), [500, 1000, 500, 500, 1000, 2000])
})

await t.test('the delays go on to grow while streams break earlier', async (t) => {
  t.strictSame(await delaysOf(t, 3_600_000, 2), [500, 1000, 2000, 4000, 8000, 16_000])
})
