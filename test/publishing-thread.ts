/** A thread for `threads.test.ts`: publishes a directory with the given copy of the library, again and again, and reports each outcome. */
import { parentPort, workerData } from 'node:worker_threads'
import type * as Library from '../src/index.js'
import type { Order } from './threads.test.js'

const { library, target, times, lockTimeout } = workerData as Order
const { replaceDirectory } = (await import(library)) as typeof Library
const files = Object.fromEntries(Array.from({ length: 8 }, (_, index) => [`file-${index}`, target]))
for (let time = 0; time < times; time++) {
  const options = { files: { ...files, time: String(time) }, ...(lockTimeout !== undefined && { lockTimeout }) }
  const said = await replaceDirectory(target, options).then(
    ({ outcome }) => outcome,
    (error: unknown) => (error as Error).message,
  )
  parentPort?.postMessage(said)
}
