import { DurableCalls } from '../../../../src/durable/index.js'
import type { Effort } from '../explore.js'
import type { Explorer, Position } from '../explorer.js'
import { ModelDisk } from '../model-disk.js'
import { ModelProcess } from '../model-process.js'
import { type Instant, instantsOf } from '../play.js'
import type { PodStory } from './commands.js'
import { look } from './node.js'

export type Command = (durable: DurableCalls) => Promise<unknown>

/** A command on a node, and what is promised of the node. */
export interface Story {
  readonly name: string
  /** Makes the node; its unsynced parts may be lost until the command has ended. */
  readonly prepare: (disk: ModelDisk) => void | Promise<void>
  readonly command: Command
  readonly judge: (before: ModelDisk) => Judge | Promise<Judge>
  /** How many times the usual states of each instant. */
  readonly share: number
  /** Each state is judged; to go on from each would take minutes: so many of each instant. */
  readonly recovered?: number
}

type Wrong = (fault: string) => void

/** What must hold once the command has succeeded; `isCut`: and after a power cut. */
type Done = (position: Position, wrong: Wrong, isCut?: boolean) => unknown

export interface Judge {
  /** What may never be seen, however far the command came. */
  readonly whole: (disk: ModelDisk, wrong: Wrong) => unknown
  readonly done: Done
  /** The commands that succeed after a kill or a power cut, and what must hold then. */
  readonly next: (disk: ModelDisk, isCut: boolean) => [Command, Done][] | Promise<[Command, Done][]>
}

interface Ended {
  readonly failure: Error | undefined
  readonly instants: readonly Instant[]
}

/** One command by a new process. */
export async function run(
  explorer: Explorer,
  disk: ModelDisk,
  command: Command,
  { record = false, before }: { record?: boolean; before?: ModelProcess['before'] } = {},
): Promise<Ended> {
  explorer.counts.plays += 1
  const process = new ModelProcess(disk)
  process.before = before
  const instants = record ? instantsOf(disk) : []
  let failure: Error | undefined
  try {
    await command(new DurableCalls(process))
  } catch (error) {
    failure = error instanceof Error ? error : new Error(String(error))
  }
  disk.changed = undefined
  if (process.descriptors > 0) explorer.report(`${process.descriptors} descriptors are left open`, [])
  return { failure, instants }
}

async function prepared({ name, prepare }: Pick<Story, 'name' | 'prepare'>): Promise<Position> {
  const disk = new ModelDisk()
  await prepare(disk)
  return { disk, ledgers: [], trail: [name] }
}

/** The command does, and what it has done outlives so many power cuts. */
async function succeeds(
  explorer: Explorer,
  position: Position,
  [command, done]: readonly [Command, Done],
  limit: number,
  record = false,
): Promise<Ended> {
  const disk = position.disk.fork()
  const ran = await run(explorer, disk, command, { record })
  const ended = { ...position, disk, trail: [...position.trail, `the command: ${shown(ran.failure)}`] }
  if (ran.failure !== undefined) explorer.report('does not succeed', ended.trail)
  const judge = (at: Position, isCut: boolean): unknown => done(at, (fault) => explorer.report(fault, at.trail), isCut)
  await judge(ended, false)
  await eachCut(explorer, ended, limit, (survivor) => judge(survivor, true))
  return ran
}

async function eachCut(
  explorer: Explorer,
  position: Position,
  limit: number,
  task: (survivor: Position) => unknown,
): Promise<void> {
  const survivors: Position[] = []
  explorer.cut(position, limit, (survivor) => survivors.push(survivor))
  for (const survivor of survivors) await task(survivor)
}

function shown(failure: Error | undefined): string {
  return failure === undefined ? 'done' : (failure.stack ?? failure.message)
}

/** Every instant of the command: a power cut in every way, or a kill; then what may come next. */
export async function explorePowerCutsOf(explorer: Explorer, story: Story, effort: Effort): Promise<void> {
  const { command, recovered } = story
  const states = Math.ceil(effort.states * story.share)
  const fewer = recovered ?? Math.ceil(effort.fewer / 2)
  const start = await prepared(story)
  const { whole, done, next } = await story.judge(start.disk)
  const judge = (at: Position): unknown => whole(at.disk, (fault) => explorer.report(fault, at.trail))
  const { instants } = await succeeds(explorer, start, [command, done], states, true)
  const known = new Set<string>()
  for (const { what, disk } of instants) {
    const stopped = { ...start, disk, trail: [...start.trail, `stopped after: ${what}`] }
    await judge(stopped)
    for (const one of await next(disk, false)) await succeeds(explorer, stopped, one, fewer)
    let wentOn = 0
    await eachCut(explorer, stopped, states, async (survivor) => {
      await judge(survivor)
      const key = explorer.keyOf(survivor)
      if (known.has(key) || ++wentOn > (recovered ?? Infinity)) return
      known.add(key)
      for (const one of await next(survivor.disk, true)) await succeeds(explorer, survivor, one, fewer)
    })
  }
}

/** Another process comes at each call of the command: each success is true, and the live revision is whole. */
export async function exploreMeetings(explorer: Explorer, story: PodStory, effort: Effort): Promise<void> {
  const { meanwhile } = story
  if (!meanwhile) return
  const start = await prepared(story)
  const { view: before } = await look(start.disk)
  let calls = 0
  await run(explorer, start.disk.fork(), story.command, {
    before: () => {
      calls += 1
    },
  })
  for (let call = 0; call < calls; call++) {
    const disk = start.disk.fork()
    let count = 0
    let second: Ended | undefined
    const first = await run(explorer, disk, story.command, {
      before: async () => {
        if (count++ === call) second = await run(explorer, disk, meanwhile.command)
      },
    })
    if (second === undefined) continue
    const trail = [
      ...start.trail,
      `the other, at call ${call}: ${shown(second.failure)}`,
      `then: ${shown(first.failure)}`,
    ]
    const byOther = second.failure === undefined ? meanwhile.live : undefined
    const live = byOther ?? (first.failure === undefined ? story.after.live : before.live)
    const judge = async ({ disk, trail }: Position): Promise<void> => {
      const { view, torn, fault } = await look(disk)
      if (fault !== undefined) explorer.report(fault, trail)
      if (view.live !== live) explorer.report(`revision ${view.live} is live, not ${live}`, trail)
      for (const named of [view.live, view.link]) {
        if (named === undefined) continue
        if (torn.includes(named) || !view.revisions.includes(named))
          explorer.report(`${named} is named, and not whole`, trail)
      }
    }
    const ended = { ...start, disk, trail }
    await judge(ended)
    await eachCut(explorer, ended, Math.ceil(effort.fewer / 2), judge)
  }
}
