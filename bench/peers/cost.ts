/** What a work costs a peer: flushes, bytes and time on a slow disk, in turns with the others; calls and processor apart from it. */
import { execFileSync, spawn } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readFileSync, readdirSync, rmSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { join } from 'node:path'
import type { Disk } from '../../test/disk/disk.js'
import { costOf, median } from '../measure.js'
import { filesOf, layOut } from './content.js'
import type { Driver } from './driver.js'
import type { Peer } from './peers.js'
import type { Work } from './work.js'

export interface PeerCost {
  readonly flushes: number
  readonly milliseconds: number
  /** Bytes that reached the disk, with all that was still to be written, as a multiple of the content; beside dirty data: until the answer. */
  readonly written: number
  /** Time beside holdfast's in the same round: the least, the median and the most. */
  readonly ratio: readonly [number, number, number]
  /** System calls of one publication, those of its threads and programs among them. */
  readonly calls: number
  /** Milliseconds of processor in one publication. */
  readonly processor: number
}

interface Round {
  readonly flushes: number
  readonly milliseconds: number
  readonly bytes: number
}

/** Publications that share one measurement of processor time, since the kernel counts in steps of 10 ms; few of the long ones. */
const processorRounds = { short: 10, long: 3 }

export interface CostOptions {
  readonly rounds: number
  /** Of a flush, in milliseconds, while time is measured. */
  readonly flushTime: number
  /** A directory in memory. */
  readonly directory: string
  /** Look at system calls and processor time, too. */
  readonly calls: boolean
  /** Told of a peer that failed, and is not asked again. */
  readonly leaveOut: (peer: Peer, error: unknown) => void
}

/** Costs by peer; none if the first, holdfast, fails, since nothing can stand beside it then. Round 0 does not count: code is cold, and nothing is there to be replaced. */
export async function costsOf(
  disk: Disk,
  drivers: readonly Driver[],
  work: Work,
  { rounds, flushTime, directory, calls, leaveOut }: CostOptions,
): Promise<Map<string, PeerCost>> {
  const from = join(directory, 'from')
  const size = work.targets * work.files.reduce((sum, bytes) => sum + bytes, 0)
  const unrelated = join(disk.mountPoint, 'unrelated')
  const taken = new Map(drivers.map((driver) => [driver, [] as Round[]]))
  const targets = new Map(drivers.map((driver) => [driver, targetsOf(disk, driver, work)]))
  let generation = 0
  const next = async (driver: Driver): Promise<string[]> => {
    const files = filesOf(work.files, work.unchanged ? 1 : ++generation)
    layOut(from, files)
    const paths = targets.get(driver) ?? []
    await driver.prepare(from, paths)
    return paths
  }
  const attempt = async (driver: Driver, task: () => Promise<void>): Promise<void> => {
    try {
      await task()
    } catch (error) {
      if (driver === drivers[0]) taken.clear()
      taken.delete(driver)
      leaveOut(driver.peer, error)
    }
  }
  await disk.flushTime(0)
  for (const [driver] of taken) await attempt(driver, async () => driver.publish(from, await next(driver)))
  await disk.flushTime(flushTime)
  for (let round = 0; round < rounds; round++) {
    for (const [driver, all] of taken) {
      await attempt(driver, async () => {
        const paths = await next(driver)
        sync(disk)
        const before = (await disk.counts()).writtenBytes
        const { dirty = 0 } = work
        const cost = await costOf(
          disk,
          () => driver.publish(from, paths),
          () => writeUnsynced(unrelated, dirty),
        )
        if (dirty === 0) sync(disk)
        all.push({ ...cost, bytes: (await disk.counts()).writtenBytes - before })
        rmSync(unrelated, { force: true })
        verify(from, paths)
      })
    }
  }
  await disk.flushTime(0)
  const [[, ours] = [undefined, []]] = taken
  const costs = new Map<string, PeerCost>()
  for (const [driver, all] of taken) {
    const ratios = all.map(({ milliseconds }, index) => milliseconds / (ours[index]?.milliseconds ?? NaN))
    // Its preparation is no part of a publication.
    const ready = async (): Promise<() => Promise<void>> => {
      const paths = await next(driver)
      return () => driver.publish(from, paths)
    }
    await attempt(driver, async () => {
      costs.set(driver.peer.name, {
        flushes: median(all.map(({ flushes }) => flushes)),
        milliseconds: median(all.map(({ milliseconds }) => milliseconds)),
        written: median(all.map(({ bytes }) => bytes)) / size,
        ratio: [Math.min(...ratios), median(ratios), Math.max(...ratios)],
        calls: calls ? await systemCalls(driver, await ready()) : NaN,
        processor: calls ? await processorTime(driver, ready, work) : NaN,
      })
    })
  }
  return costs
}

function targetsOf(disk: Disk, { peer }: Driver, work: Work): string[] {
  const root = join(disk.mountPoint, work.name.replaceAll(/\W+/g, '-'), peer.name)
  return Array.from({ length: work.targets }, (_, index) => {
    const parent = join(root, String(index))
    mkdirSync(parent, { recursive: true })
    return join(parent, 'target')
  })
}

/** A run that did not publish would be the fastest of all. */
function verify(from: string, targets: readonly string[]): void {
  for (const name of readdirSync(from)) {
    const wanted = readFileSync(join(from, name))
    for (const target of targets) {
      if (!readFileSync(join(target, name)).equals(wanted)) throw new Error(`${target}/${name} was not replaced`)
    }
  }
}

/** A new file of so many bytes, which the kernel writes later; none for 0. */
function writeUnsynced(path: string, bytes: number): void {
  if (bytes === 0) return
  const piece = Buffer.alloc(1e6, 'u')
  const file = openSync(path, 'w')
  for (let at = 0; at < bytes; at += piece.length) writeSync(file, piece)
  closeSync(file)
}

function sync({ mountPoint }: Disk): void {
  execFileSync('sync', ['--file-system', mountPoint])
}

/** All calls that strace counts of the process, its threads and its children, from attaching until the answer. */
export async function systemCalls({ pid }: Pick<Driver, 'pid'>, publish: () => Promise<void>): Promise<number> {
  const tracer = spawn('strace', ['-f', '-c', '-U', 'calls,name', '-p', String(pid)], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const ended = new Promise((resolve) => tracer.once('close', resolve))
  let calls = NaN
  let said = 'strace ended before it was attached'
  const attached = new Promise<void>((resolve, reject) => {
    createInterface({ input: tracer.stderr }).on('line', (line) => {
      if (/attached/.test(line)) resolve()
      const total = /^\s*(\d+)\s+total$/.exec(line)
      if (total) calls = Number(total[1])
      if (line.startsWith('strace: ')) said = line
    })
    tracer.once('error', reject)
    tracer.once('close', () => reject(new Error(said)))
  })
  await attached
  try {
    await publish()
  } finally {
    tracer.kill('SIGINT')
    await ended
  }
  return calls
}

/** `ready` prepares a publication, outside of the time. */
async function processorTime(
  driver: Driver,
  ready: () => Promise<() => Promise<void>>,
  { long = false }: Work,
): Promise<number> {
  const rounds = processorRounds[long ? 'long' : 'short']
  let time = 0
  for (let round = 0; round < rounds; round++) {
    const publish = await ready()
    const before = driver.processorTime()
    await publish()
    time += driver.processorTime() - before
  }
  return time / rounds
}
