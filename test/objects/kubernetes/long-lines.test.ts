import t from 'tap'
import { LongLines } from '../../../src/objects/kubernetes/long-lines.js'

void t.test('short lines take no place; long ones wait for one another, in their order', async (t) => {
  const lines = new LongLines(1, 10)
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
})

void t.test('a stream that is abandoned while it waits takes no place', async (t) => {
  const lines = new LongLines(1, 10)
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
