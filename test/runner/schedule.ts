/** What runs when: batches of files, the longest first, so many at a time. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { project } from '../project.js'
import { sharesItsProcess } from './files.js'

/** Seconds that each file took when it last ran. */
const ledger = join(project, 'dist/.test-times.json')

export type Times = Record<string, number>

function lastTimes(): Times {
  try {
    return JSON.parse(readFileSync(ledger, 'utf8')) as Times
  } catch {
    return {}
  }
}

export function keepTimes(times: Times): void {
  mkdirSync(dirname(ledger), { recursive: true })
  writeFileSync(ledger, JSON.stringify({ ...lastTimes(), ...times }))
}

/** Seconds of work that one process of several files is given. */
const secondsTogether = 8

/** Files that go into one process, at most: one that crashes takes the time of those behind it twice. */
const filesTogether = 12

/** Seconds that a file counts before it ever ran: as most take that share a process; and more than they take together. */
const secondsUnknown = 1
const secondsAlone = 30

/** Files in batches, the longest first; what has a process to itself and never ran may be long. */
export function batches(files: readonly string[], alone: boolean, times = lastTimes()): string[][] {
  const shared = alone ? [] : files.filter((file) => sharesItsProcess(file))
  const single = files.filter((file) => !shared.includes(file)).map((file) => [file])
  const together: string[][] = []
  for (const file of shared) {
    const batch = together.at(-1)
    const seconds = [...(batch ?? []), file].reduce((sum, one) => sum + (times[one] ?? secondsUnknown), 0)
    if (batch === undefined || batch.length >= filesTogether || seconds > secondsTogether) together.push([file])
    else batch.push(file)
  }
  const length = (batch: readonly string[]): number =>
    batch.reduce((sum, one) => sum + (times[one] ?? (shared.includes(one) ? secondsUnknown : secondsAlone)), 0)
  return [...single, ...together].sort((a, b) => length(b) - length(a))
}

/** Works through the queue, `jobs` at a time; what `work` returns is queued, too. */
export async function workThrough<T>(queue: readonly T[], jobs: number, work: (one: T) => Promise<readonly T[]>) {
  const waiting = [...queue]
  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) waiting.unshift(...(await work(next)))
  }
  await Promise.all(Array.from({ length: jobs }, worker))
}
