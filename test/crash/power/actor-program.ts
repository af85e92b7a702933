/**
 * The program under test, as a process that can be killed: publishes what each line of standard input asks for, marks in the
 * disk's log what the library said the moment it said it, and answers with a line.
 */
import { createInterface } from 'node:readline'
import { exchange, publish, type Failure, type Result } from './library.js'
import { appendMark } from './marks.js'
import type { Target } from './targets.js'

export interface Order {
  readonly mountPoint: string
  readonly log: string
  readonly targets: readonly Target[]
  readonly generation: number
  /** Generations that the two targets hold once they have changed places; nothing is published then. */
  readonly exchanged?: readonly [number, number]
}

export type Answer = (Result | { error: Failure })[]

for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line) as Order
  if (order.exchanged !== undefined) {
    await changePlaces(order, order.exchanged)
    continue
  }
  const { mountPoint, log, targets, generation } = order
  appendMark(log, { event: 'begun', paths: targets.map(({ path }) => path), generation })
  const results: Answer = await publish(mountPoint, targets, generation)
  results.forEach((result, index) => {
    const paths = [targets[index]?.path ?? '']
    if ('error' in result) {
      const { published, message } = result.error
      appendMark(log, { event: 'failed', paths, generation, published, message })
    } else appendMark(log, { event: 'acknowledged', paths, generation })
  })
  console.log(JSON.stringify(results))
}

async function changePlaces(
  { mountPoint, log, targets: [a, b] }: Order,
  generations: readonly [number, number],
): Promise<void> {
  if (!a || !b) throw new Error('two targets change places')
  const mark = (event: 'begun' | 'acknowledged'): void =>
    [a, b].forEach(({ path }, index) => appendMark(log, { event, paths: [path], generation: generations[index] ?? 0 }))
  mark('begun')
  await exchange(mountPoint, [a, b])
  mark('acknowledged')
  console.log('[]')
}
