import { randomBytes } from 'node:crypto'
import { mkdir, readdir, realpath, rmdir } from 'node:fs/promises'
import { arch, release } from 'node:os'
import { join } from 'node:path'
import { replaceDirectory, replaceFile, syncPath } from '../src/durable/index.js'
import { codeOf, messageOf } from '../src/errors.js'
import type { Log } from '../src/log.js'
import { warnUnproven } from '../src/unproven.js'
import { describeDisk, machineDigest, otherFileSystem } from './disk.js'
import { examine, filesOfGeneration } from './generation.js'
import { Guard } from './guard.js'
import type { EndMark, Run, Standing, Verdict } from './types.js'
import { NoWitness, WitnessClient, type WitnessAddress } from './witness-client.js'

export interface TortureOptions {
  /** Where the operator wants it; only a new directory in it is written to. */
  readonly directory: string
  readonly witness: WitnessAddress
  readonly key: Buffer
  /** The kernel's identifier of this boot. */
  readonly boot: string
  readonly version: string
  /** The kind of the last outage, by the operator's word. */
  readonly outage: 'power' | 'reset'
  readonly signal: AbortSignal
  readonly log: Log
}

/**
 * Publishes one generation after the other until the signal aborts, or the power goes. The witness hears of each before and after.
 * Where the machine has been off, the disk is examined first. Answers the verdict so far.
 * @throws NoWitness, DurableWriteError; Error where the witness refuses or the directory is another one
 */
export async function torture(options: TortureOptions): Promise<Verdict> {
  let progress: Progress | undefined
  let guard: Guard | undefined
  try {
    return await withWitness(options, async (witness, found) => {
      const standing = found ?? (await begin(witness, options))
      await examineIfDue(witness, standing, options)
      const now = (await open(witness, options)) ?? standing
      progress = { run: now.run, generation: now.announced }
      guard = await Guard.start(markOf(now.run, options.boot), now.announced, options.log)
      await publishUntilAborted({ witness, guard }, now, progress, options)
    })
  } catch (error) {
    if (progress !== undefined) await leaveMark(progress, options)
    throw error
  } finally {
    guard?.end()
  }
}

/** Examines the disk where the machine has been off since something was published. Writes nothing. Answers the verdict so far. */
export function verifyDisk(options: TortureOptions): Promise<Verdict> {
  return withWitness(options, async (witness, standing) => {
    if (standing === undefined) throw new Error('the witness knows of no run: start one without --verify')
    if (await examineIfDue(witness, standing, options)) return
    options.log.info({}, 'this machine has not been off since the last generation: there is nothing to examine')
  })
}

async function withWitness(
  options: TortureOptions,
  work: (witness: WitnessClient, standing: Standing | undefined) => Promise<void>,
): Promise<Verdict> {
  const { witness: address, key, signal } = options
  const witness = await WitnessClient.connect(address, key, signal)
  try {
    await work(witness, await open(witness, options))
    const { verdict } = await witness.ask({ type: 'verdict' })
    await witness.ask({ type: 'end' })
    return verdict
  } finally {
    witness.close()
  }
}

/** Asks the witness for the standing of a run. @throws Error where that would lead out of the run's directory */
async function open(witness: WitnessClient, { boot }: TortureOptions): Promise<Standing | undefined> {
  const { standing } = await witness.ask({ type: 'open', boot, machine: machineDigest() })
  if (standing === undefined) return undefined
  const { run, place, announced } = standing
  // It comes from a file on another machine, and names a directory that root writes to.
  const fit = /^[0-9a-f]{12}$/.test(run.id) && /^[0-9a-f]{16}$/.test(run.seed)
  if (fit && Number.isSafeInteger(place) && Number.isSafeInteger(announced)) return standing
  throw new Error('the file of the witness is damaged: name another --state there for a new run; nothing was touched')
}

async function begin(witness: WitnessClient, options: TortureOptions): Promise<Standing> {
  const directory = await resolvedDirectory(options.directory, 'name a directory on the disk')
  const run: Run = {
    id: randomBytes(6).toString('hex'),
    seed: randomBytes(8).toString('hex'),
    machine: machineDigest(),
    directory,
    disk: describeDisk(directory),
    kernel: `Linux ${release()} ${arch()}`,
    version: options.version,
    startedAt: new Date().toISOString(),
  }
  // The run's directory must be new, so that no other program uses it: mkdir(2) fails where it exists.
  try {
    await mkdir(directoryOf(run), { mode: 0o700 })
  } catch (error) {
    const problem = codeOf(error) ?? messageOf(error)
    throw new Error(`cannot make ${directoryOf(run)}: ${problem}; nothing was published`, { cause: error })
  }
  try {
    await syncPath(directory)
    await witness.ask({ type: 'begin', run })
  } catch (error) {
    await rmdir(directoryOf(run)).catch(() => undefined)
    throw error
  }
  return { run, place: 1, announced: 0, due: false }
}

interface Progress {
  readonly run: Run
  /** The newest that the witness has heard of, or was to hear of. */
  generation: number
}

const markPattern = /^ended-([0-9a-f-]{36})-(\d{1,15})$/

/** The witness may not have heard that this program ends: without a mark the next restart would count as a power cut. */
async function leaveMark({ run, generation }: Progress, { boot, log }: TortureOptions): Promise<void> {
  const path = `${markOf(run, boot)}-${generation}`
  try {
    await replaceFile(path, 'the program ended, and the machine went on\n')
  } catch (error) {
    log.warn({ path }, `cannot note that this ends: ${messageOf(error)}; if the machine is restarted now, say --reset`)
  }
}

/** Nothing where the run's directory is gone, too. */
async function marksIn(run: Run): Promise<EndMark[]> {
  const names = await readdir(directoryOf(run)).catch(() => [])
  return names.flatMap((name) => {
    const [, boot, generation] = markPattern.exec(name) ?? []
    return boot === undefined ? [] : [{ boot, generation: Number(generation) }]
  })
}

const markOf = (run: Run, boot: string): string => join(directoryOf(run), `ended-${boot}`)
const directoryOf = ({ directory, id }: Run): string => join(directory, `holdfast-torture-${id}`)
const targetOf = ({ run, place }: Standing): string => join(directoryOf(run), `generations-${place}`)

/** Answers whether anything had to be examined. @throws Error where the directory is not where the run was: nothing is judged */
async function examineIfDue(witness: WitnessClient, standing: Standing, options: TortureOptions): Promise<boolean> {
  const { run, due } = standing
  await refuseElsewhere(run, options.directory)
  if (!due) return false
  const found = await examine(targetOf(standing), run.seed)
  const { examination } = await witness.ask({
    type: 'examined',
    found,
    outage: options.outage,
    marks: await marksIn(run),
  })
  const { result, outage, acknowledged, lost } = examination
  const path = targetOf(standing)
  const level = result === 'kept' ? 'info' : 'warn'
  options.log[level]({ path, acknowledged, lost, found }, `after an outage (${outage}): ${result}`)
  return true
}

async function refuseElsewhere(run: Run, directory: string): Promise<void> {
  const advice = 'mount the disk as it was, and name the same directory; nothing was judged'
  const here = await resolvedDirectory(directory, advice)
  if (here !== run.directory) throw new Error(`the witness keeps a run in ${run.directory}, not ${here}; ${advice}`)
  const other = otherFileSystem(run.disk, describeDisk(here))
  if (other !== undefined) throw new Error(`${other}; ${advice}`)
}

/** Where a directory really is. */
async function resolvedDirectory(directory: string, advice: string): Promise<string> {
  try {
    return await realpath(directory)
  } catch (error) {
    throw new Error(`cannot find ${directory}: ${codeOf(error) ?? messageOf(error)}; ${advice}`, { cause: error })
  }
}

async function publishUntilAborted(
  { witness, guard }: { readonly witness: WitnessClient; readonly guard: Guard | undefined },
  standing: Standing,
  progress: Progress,
  { signal, log }: TortureOptions,
): Promise<void> {
  const target = targetOf(standing)
  const { seed } = standing.run
  log.info({ path: target }, `publishing to ${target}, until the power goes or a signal comes`)
  for (let generation = standing.announced + 1; !signal.aborted; generation++) {
    progress.generation = generation
    guard?.announce(generation)
    await asking(witness.ask({ type: 'announce', generation }), generation - 1)
    const { unproven = false } = await replaceDirectory(target, { files: filesOfGeneration(seed, generation) })
    if (unproven) warnUnproven(log, target)
    await asking(witness.ask({ type: 'acknowledge', generation, unproven }), generation)
    log.debug({ generation }, `generation ${generation} is durable`)
  }
}

/** Adds the last published generation to the error of a witness that has gone. */
async function asking(answer: Promise<unknown>, published: number): Promise<void> {
  try {
    await answer
  } catch (error) {
    if (!(error instanceof NoWitness)) throw error
    throw new NoWitness(
      `${error.message}; nothing is published after generation ${published}: start it again to go on`,
      {
        cause: error,
      },
    )
  }
}
