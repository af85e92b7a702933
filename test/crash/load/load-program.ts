/**
 * A foreign program that keeps a file system busy, in the directory that it is started with: creates, writes, syncs, renames, links and
 * removes, drawn from a seed, until a kill. It ignores failures: the disk under it may die at any time. Prints a line once it works.
 */
import * as fs from 'node:fs'
import { join } from 'node:path'
import { Random } from '../../random.js'

const [directory = '', seed = '1'] = process.argv.slice(2)
const random = new Random(Number(seed))
const name = (): string => join(directory, `d${random.below(4)}`, `f${random.below(12)}`)

function sync(path: string): void {
  const descriptor = fs.openSync(path, 'r')
  try {
    fs.fsyncSync(descriptor)
  } finally {
    fs.closeSync(descriptor)
  }
}

const operations: readonly (() => void)[] = [
  () => fs.mkdirSync(join(directory, `d${random.below(4)}`), { recursive: true }),
  () => fs.writeFileSync(name(), Buffer.alloc(1 + random.below(60_000), random.below(256))),
  () => fs.appendFileSync(name(), Buffer.alloc(1 + random.below(9000), 'x')),
  () => fs.truncateSync(name(), random.below(5000)),
  () => fs.renameSync(name(), name()),
  () => fs.linkSync(name(), name()),
  () => fs.unlinkSync(name()),
  () => fs.rmSync(join(directory, `d${random.below(4)}`), { recursive: true }),
  () => sync(name()),
  () => sync(directory),
]

/** Operations between two turns of the event loop, in which a signal is heard. */
const atOnce = 20

function work(): void {
  for (let done = 0; done < atOnce; done++) {
    try {
      operations[random.below(operations.length)]?.()
    } catch {
      // Gone, taken, full, or the disk is dead.
    }
  }
  setImmediate(work)
}
work()
console.log('works')
