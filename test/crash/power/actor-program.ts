/**
 * The program under test, as a process that can be killed: publishes what each line of standard input asks for, marks in the
 * disk's log what the library said the moment it said it, and answers with a line.
 */
import { createInterface } from 'node:readline'
import { publish, type Failure, type Result } from './library.js'
import { appendMark } from './marks.js'
import type { Target } from './targets.js'

export interface Order {
  readonly mountPoint: string
  readonly log: string
  readonly targets: readonly Target[]
  readonly generation: number
}

export type Answer = (Result | { error: Failure })[]

for await (const line of createInterface({ input: process.stdin })) {
  const { mountPoint, log, targets, generation } = JSON.parse(line) as Order
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
