/**
 * Examines a recording: rebuilds each of its crash states, mounts it, and asserts the promises. Before recovery the target is one whole
 * generation, and no older than the acknowledged one; the next run of the program succeeds, leaves nothing behind, and a further one finds
 * nothing to do.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { faultOfRepeat } from '../judge/answers.js'
import { faultOfContent } from '../judge/contents.js'
import { contentAt, leftBelow } from '../judge/directory.js'
import { crashStates, type CrashState } from './cuts.js'
import { Image } from './image.js'
import { publish } from './library.js'
import { lifeProblem } from './life.js'
import { publishesNothing, stepsOf } from './lives.js'
import { LoopMount } from './loop-mount.js'
import type { Expected } from './marks.js'
import { difference, linkDifference, textFor } from './observe.js'
import { Random } from '../../random.js'
import { readRecords, type Recording } from './recording.js'
import { podProblem } from './static-pod.js'
import { filesOf, type Target } from './targets.js'

export interface Violation {
  readonly state: Omit<CrashState, 'expected'>
  /** Number of the state in its recording, from 1. */
  readonly number: number
  readonly problem: string
}

export interface Examination {
  readonly states: number
  readonly violations: Violation[]
}

export interface ExamineOptions {
  /** A directory to work in, best in memory. */
  readonly directory: string
  /** Stop at so many violations. */
  readonly most: number
}

export async function examine(recording: Recording, { directory, most }: ExamineOptions): Promise<Examination> {
  const { fileSystem, size, seed, scenario } = recording
  const file = join(directory, 'image')
  const mountPoint = join(directory, 'state')
  mkdirSync(mountPoint, { recursive: true })
  writeFileSync(file, '')
  const records = readRecords(recording)
  const image = new Image(file, size, records.records)
  image.become({ certain: 0, lucky: [], sectors: undefined })
  const device = new LoopMount(file, mountPoint)
  const violations: Violation[] = []
  let states = 0
  try {
    const random = Random.for(seed, `${fileSystem} ${scenario}`)
    for (const { expected, ...state } of crashStates(records, recording, random)) {
      states++
      image.become(state)
      const again = (): void => image.become(state)
      const problem = await mounted(device, fileSystem, again, () => examineState(mountPoint, expected, states))
      if (problem === undefined) continue
      violations.push({ state, number: states, problem })
      if (violations.length >= most) break
    }
  } finally {
    device.close()
    image.close()
    rmSync(file)
  }
  return { states, violations }
}

/**
 * Makes a state whose mount fails again, and mounts it once more: a machine short of some resource (once in some hundred thousand mounts of
 * btrfs, beside other loop devices) proves nothing about the disk.
 */
async function mounted(
  device: LoopMount,
  fileSystem: string,
  again: () => void,
  task: () => Promise<string | undefined>,
): Promise<string | undefined> {
  try {
    device.mount(fileSystem)
  } catch (first) {
    console.error(`note: ${(first as Error).message}; the same state is mounted once more${kernelSays(device)}`)
    again()
    try {
      device.mount(fileSystem)
    } catch (error) {
      return `the file system is lost: ${(error as Error).message}, twice${kernelSays(device)}`
    }
  }
  let problem: string | undefined
  try {
    problem = await task()
  } catch (error) {
    problem = `unexpected: ${(error as Error).stack ?? String(error)}`
  }
  try {
    device.unmount()
  } catch (error) {
    problem ??= `something is left open: ${(error as Error).message}`
  }
  return problem
}

/** The kernel's last lines about the device: a mount that fails answers an errno, which is not enough to find out why. */
function kernelSays({ device }: LoopMount): string {
  const { stdout } = spawnSync('dmesg', { encoding: 'utf8' })
  const lines = stdout.split('\n').filter((line) => line.includes(basename(device)))
  return lines.length === 0 ? '' : `; the kernel says\n  ${lines.slice(-8).join('\n  ')}`
}

/** The fault; undefined where there is none. */
export async function examineState(
  mountPoint: string,
  expected: readonly Expected[],
  number: number,
): Promise<string | undefined> {
  const before = await firstOf(expected, async ({ target, allowed, newest }) => {
    const texts = allowed.map((generation) => [`${generation}`, textFor(target, filesOf(target, generation))] as const)
    const fault = faultOfContent(target.path, contentAt(join(mountPoint, target.path)), new Map(texts))
    if (fault !== undefined) return `after the power cut ${fault}`
    const held = allowed.find((generation) => difference(mountPoint, target, generation) === undefined) ?? 0
    // A publication that failed on a dead disk could not take away what it had staged.
    const others = [...allowed, Math.max(...allowed, newest)].filter((one) => one !== held)
    const broken =
      linkDifference(mountPoint, target, [held, ...others]) ??
      podProblem(mountPoint, target, allowed) ??
      (await lifeProblem(mountPoint, target, allowed))
    return broken === undefined ? undefined : `after the power cut ${target.path}: ${broken}`
  })
  if (before !== undefined) return before
  const alike = await twinsAlike(mountPoint, expected)
  if (alike !== undefined) return alike

  // The next run has the newest content to publish, or something newer still: both must do.
  const isNewer = number % 2 === 1
  const asked = Math.max(...expected.map(({ newest }) => newest), 1)
  for (const run of ['first', 'second']) {
    for (const group of batches(expected)) {
      const targets = group.map(({ target }) => target)
      const [life] = targets.map(({ life }) => life)
      const newest = !isNewer ? asked : life === undefined ? asked + 1 : stepsOf(life)
      const results = await publish(mountPoint, targets, newest)
      const problem = await firstOf(group, async ({ target }) => {
        const result = results[targets.indexOf(target)]
        if (!result || 'error' in result) {
          return `the ${run} run after it fails for ${target.path}: ${result?.error.message ?? 'no answer'}`
        }
        const repeated = run === 'second' ? faultOfRepeat(target.path, result) : undefined
        if (repeated !== undefined) return repeated
        const wrong =
          difference(mountPoint, target, newest) ??
          linkDifference(mountPoint, target, [newest]) ??
          podProblem(mountPoint, target, [newest]) ??
          (await lifeProblem(mountPoint, target, [newest], true))
        if (wrong !== undefined) return `the ${run} run after it says ${result.outcome}, but ${target.path}: ${wrong}`
        return undefined
      })
      if (problem !== undefined) return problem
      if (life !== undefined && publishesNothing(life, newest)) return undefined
    }
    // Which earlier contents of a life may stay, life.ts says.
    const may = expected.map(({ target: { path, life } }) => [path, life === undefined ? 0 : Infinity] as const)
    const left = leftBelow(mountPoint, new Map(may))
    if (left.length > 0) return `after the ${run} run: ${left.join('; ')}`
  }
  return undefined
}

/** Two that change places in one step hold what both held before, each once. */
function twinsAlike(mountPoint: string, expected: readonly Expected[]): Promise<string | undefined> {
  const held = new Map(
    expected.map(({ target, allowed }) => {
      const generation = allowed.find((one) => difference(mountPoint, target, one) === undefined)
      return [target.path, generation] as const
    }),
  )
  return firstOf(expected, ({ target: { path, twin } }) => {
    const generation = held.get(path)
    if (twin === undefined || generation === 0 || held.get(twin) !== generation) return undefined
    return `after the power cut ${path} and ${twin} both hold ${generation}`
  })
}

function isAlone({ kind, life }: Target): boolean {
  return kind === 'file' || kind === 'pod' || life !== undefined
}

/** Directories are published together, files one by one. */
function batches(expected: readonly Expected[]): Expected[][] {
  const files = expected.filter(({ target }) => isAlone(target)).map((one) => [one])
  const directories = expected.filter(({ target }) => !isAlone(target))
  return directories.length === 0 ? files : [directories, ...files]
}

async function firstOf(
  expected: readonly Expected[],
  problem: (expected: Expected) => string | undefined | Promise<string | undefined>,
): Promise<string | undefined> {
  for (const one of expected) {
    const found = await problem(one)
    if (found !== undefined) return found
  }
  return undefined
}
