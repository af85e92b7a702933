/**
 * What survives a power cut: a peer replaces what lies on a disk whose every write and flush is logged, and each state is rebuilt that
 * the log allows, mounted and read. The disk, the log and the choice of states are those of the crash suite (test/crash/power).
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { execFileSync } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import type { FileSystem } from '../../test/disk/disk.js'
import { crashStates } from '../../test/crash/power/cuts.js'
import { Image } from '../../test/crash/power/image.js'
import { LoggedDisk, sizes } from '../../test/crash/power/logged-disk.js'
import { LoopMount } from '../../test/crash/power/loop-mount.js'
import { Random } from '../../test/random.js'
import { readRecords, type Depth, type Recording } from '../../test/crash/power/recording.js'
import type { Target } from '../../test/crash/power/targets.js'
import { filesOf, layOut } from './content.js'
import type { Driver } from './driver.js'
import { add, emptyTally, isDamage, stateOf, verdictOf, type State, type Tally } from './judge.js'

export interface PowerCuts {
  readonly fileSystem: FileSystem
  /** Bytes of each file. */
  readonly files: readonly number[]
  /** A directory in memory. */
  readonly directory: string
  readonly seed: number
  readonly depth: Depth
}

const place = 'node/target'
const target: Target = { path: place, kind: 'directory', content: 'few' }
/** The first lies on the disk when the log begins; each of the others replaces the one before. */
const generations = [1, 2, 3]
/** Milliseconds of a flush, so that something happens meanwhile. */
const flushTime = 1
/** How often the neighbour syncs its file, in milliseconds. */
const neighbourPause = 2

/** Counts the states by their findings. */
export async function cutPowerUnder(driver: Driver, cuts: PowerCuts): Promise<Tally> {
  const directory = mkdtempSync(join(cuts.directory, 'power-'))
  try {
    return examine(await record(driver, cuts, directory), cuts, directory)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

async function record(
  driver: Driver,
  { fileSystem, files, seed, depth }: PowerCuts,
  directory: string,
): Promise<Recording> {
  const disk = await LoggedDisk.create(fileSystem, directory)
  const path = join(disk.mountPoint, place)
  const publish = async (generation: number): Promise<void> => {
    const from = join(directory, 'from')
    layOut(from, filesOf(files, generation))
    await driver.prepare(from, [path])
    await driver.publish(from, [path])
  }
  try {
    const logs = [await disk.logTo('before')]
    await disk.disk.format(fileSystem)
    await disk.disk.mount()
    mkdirSync(join(disk.mountPoint, 'node'))
    await publish(1)
    await disk.disk.unmount()
    logs.push(await disk.logTo('cut'))
    await disk.disk.mount()
    await disk.disk.flushTime(flushTime)
    disk.mark({ event: 'targets', targets: [target] })
    disk.mark({ event: 'begun', paths: [place], generation: 1 })
    disk.mark({ event: 'acknowledged', paths: [place], generation: 1 })
    for (const generation of generations.slice(1)) {
      disk.mark({ event: 'begun', paths: [place], generation })
      const neighbour = new Neighbour(join(disk.mountPoint, 'neighbour'))
      try {
        await publish(generation)
        disk.mark({ event: 'acknowledged', paths: [place], generation })
      } finally {
        // The neighbour's next fsync ends after the answer: the cuts see its writes, and its omissions.
        await neighbour.end()
      }
      disk.mark({ event: 'acknowledged', paths: [place], generation })
      execFileSync('sync', ['--file-system', disk.mountPoint])
    }
    await disk.disk.ask('log off')
    return { fileSystem, scenario: driver.peer.name, size: sizes[fileSystem], logs, cuts: 'flushes', seed, depth }
  } finally {
    await disk.disk.destroy()
  }
}

/** Another program of the node, such as etcd, that syncs its file on the same file system all the time. */
class Neighbour {
  #ending = false
  readonly #ended: Promise<void>

  constructor(path: string) {
    this.#ended = this.#run(path)
  }

  async end(): Promise<void> {
    this.#ending = true
    await this.#ended
  }

  async #run(path: string): Promise<void> {
    const file = await open(path, 'a')
    try {
      for (let last = false; !last;) {
        last = this.#ending
        await file.write('a line of its journal\n')
        await file.sync()
        await delay(neighbourPause)
      }
    } finally {
      await file.close()
    }
  }
}

function examine(recording: Recording, { files }: PowerCuts, directory: string): Tally {
  const { fileSystem, size, seed, scenario } = recording
  const file = join(directory, 'image')
  const mountPoint = join(directory, 'state')
  mkdirSync(mountPoint)
  writeFileSync(file, '')
  const records = readRecords(recording)
  const image = new Image(file, size, records.records)
  image.become({ certain: 0, lucky: [], sectors: undefined })
  const device = new LoopMount(file, mountPoint)
  let tally = emptyTally
  try {
    const random = Random.for(seed, `${fileSystem} ${scenario}`)
    for (const { expected, ...cut } of crashStates(records, recording, random)) {
      const allowed = expected[0]?.allowed ?? []
      const newest = Math.max(...allowed)
      if (allowed.includes(0) || newest < 2) continue
      image.become(cut)
      const state = mounted(device, fileSystem, () => {
        const read = (name: string): Buffer | undefined => contentOf(join(mountPoint, place, name))
        return stateOf(read, filesOf(files, newest - 1), filesOf(files, newest))
      })
      tally = add(tally, verdictOf(state, allowed.length === 1))
    }
  } finally {
    device.close()
    image.close()
  }
  return tally
}

function mounted(device: LoopMount, fileSystem: FileSystem, look: () => State): State {
  try {
    device.mount(fileSystem)
  } catch (error) {
    if (isDamage(error)) return 'unmountable'
    throw error
  }
  try {
    return look()
  } finally {
    device.unmount()
  }
}

function contentOf(path: string): Buffer | undefined {
  try {
    return readFileSync(path)
  } catch {
    return undefined
  }
}
