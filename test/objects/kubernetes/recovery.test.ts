import t from 'tap'
import { Recovery } from '../../../src/objects/kubernetes/recovery.js'
import { SimulatedTime } from '../../simulated-time.js'
import { defaultTiming } from '../../../src/objects/kubernetes/timing.js'

void t.test('one waiting watch scouts ahead, and all follow when a request got through', async (t) => {
  const recovery = new Recovery({ scoutDelay: 40, wakeSpread: 10, wakeInterval: 0 }, () => 1)
  const signal = new AbortController().signal
  const ended: number[] = []
  const waits = [0, 1, 2].map((index) => recovery.waitForServer(60_000, signal).then(() => ended.push(index)))
  await waits[0]
  t.strictSame(ended, [0], 'the scout')
  recovery.succeeded(performance.now())
  await Promise.all(waits)
  t.equal(ended.length, 3)
})

void t.test('no watch scouts ahead while another watch is well', async (t) => {
  const recovery = new Recovery({ scoutDelay: 1, wakeSpread: 1, wakeInterval: 0 }, () => 1)
  recovery.streamOpened()
  const startedAt = performance.now()
  await recovery.waitForServer(150, new AbortController().signal)
  t.ok(performance.now() - startedAt >= 149)
})

void t.test('success does not wake a watch that waits for no server, but an abort ends every wait', async (t) => {
  const time = new SimulatedTime(t)
  const recovery = new Recovery({ scoutDelay: 1, wakeSpread: 1, wakeInterval: 0 }, () => 1)
  const abort = new AbortController()
  let ended = false
  const waiting = recovery.wait(60_000, abort.signal).then(() => (ended = true))
  recovery.succeeded(performance.now())
  await time.advance(59_999)
  t.notOk(ended)
  abort.abort()
  await waiting
  await recovery.waitForServer(60_000, abort.signal)
})

void t.test('only the first failure of a cause in an outage is worth a warning', async (t) => {
  const recovery = new Recovery(defaultTiming, Math.random)
  t.strictSame([recovery.failed('away'), recovery.failed('away'), recovery.failed('no context')], [true, false, true])
  recovery.succeeded(performance.now())
  t.notOk(recovery.failed('no context'), 'a stream that breaks at once ends no outage')
  recovery.lasted()
  t.ok(recovery.failed('no context'))
})

void t.test('success wakes only what failed before its stream was answered', async (t) => {
  const time = new SimulatedTime(t)
  const recovery = new Recovery({ scoutDelay: 60_000, wakeSpread: 1, wakeInterval: 0 }, () => 1)
  const answeredAt = performance.now()
  await time.advance(1)
  let woken: boolean | undefined
  void recovery.waitForServer(60_000, new AbortController().signal).then((early) => (woken = early))
  recovery.succeeded(answeredAt)
  await time.advance(59_999)
  t.equal(woken, undefined)
  recovery.succeeded(answeredAt + 1)
  await time.advance(1)
  t.equal(woken, true)
})

void t.test('the more watches come back, the longer they spread', async (t) => {
  const time = new SimulatedTime(t)
  for (const [count, spread] of [
    [1, 20],
    [200, 400],
  ] as const) {
    const recovery = new Recovery({ scoutDelay: 60_000, wakeSpread: 20, wakeInterval: 2 }, () => 1)
    let back = 0
    for (let each = 0; each < count; each++)
      void recovery.waitForServer(60_000, new AbortController().signal).then(() => (back += 1))
    recovery.succeeded(performance.now())
    await time.advance(spread - 1)
    t.equal(back, 0, `${count} watches`)
    await time.advance(1)
    t.equal(back, count, `${count} watches`)
  }
})
