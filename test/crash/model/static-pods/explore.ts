import { DurableCalls } from '../../../../src/durable/index.js'
import type { Effort } from '../explore.js'
import type { Explorer, Position } from '../explorer.js'
import { ModelDisk } from '../model-disk.js'
import { ModelProcess } from '../model-process.js'
import type { Instant } from '../play.js'
import { intactRevision, look, type View } from './node.js'
import type { Command, Story } from './commands.js'

interface Ended {
  readonly failure: Error | undefined
  /** Before the first change, and after each. */
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
  const instants: Instant[] = []
  if (record) {
    instants.push({ what: 'the first change', disk: disk.fork() })
    disk.changed = (what) => instants.push({ what, disk: disk.fork() })
  }
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

async function prepared(explorer: Explorer, { name, prepare }: Story): Promise<Position & { view: View }> {
  const disk = new ModelDisk()
  await prepare(disk)
  const { view, fault } = await look(disk)
  if (fault !== undefined) explorer.report(`before: ${fault}`, [name])
  return { disk, ledgers: [], trail: [name], view }
}

/** What may never be seen of a node, however far the command came: all of it is as it was, or as it is to be. */
async function whole(
  explorer: Explorer,
  { after, isForeign, undone }: Story,
  before: View,
  { disk, trail }: Position,
): Promise<void> {
  const { view, torn, certificates, fault } = await look(disk)
  const wrong = (what: string): void => explorer.report(what, trail)
  if (isForeign) return
  if (fault !== undefined) wrong(fault)
  for (const revision of torn) wrong(`revision ${revision} is torn`)
  for (const part of ['live', 'link', 'own'] as const) {
    if (![before, after, undone ?? after].some((known) => known[part] === view[part])) wrong(`${part} is ${view[part]}`)
  }
  for (const revision of before.revisions) {
    if (after.revisions.includes(revision) && !view.revisions.includes(revision)) wrong(`revision ${revision} is gone`)
  }
  for (const revision of [view.live, view.link]) {
    if (revision !== undefined && !view.revisions.includes(revision))
      wrong(`revision ${revision} is named, and is not there`)
  }
  if (view.live !== before.live && view.live === after.live && (after.live ?? 0) > (before.live ?? 0)) {
    if (certificates !== after.live) wrong(`revision ${view.live} is live with the certificates of ${certificates}`)
  }
  // The next process takes the monitor for done.
  if (before.own && !view.own && !isDone(view, after)) wrong("the monitor's manifest is gone before its work is done")
}

function isDone(view: View, after: View): boolean {
  return view.live === after.live && view.link === after.link
}

/** What must hold once the command has succeeded, now and after a power cut. */
async function done(
  explorer: Explorer,
  { after, isGone }: Story,
  { disk, trail }: Position,
  isCut = false,
): Promise<void> {
  const { view, torn, left, fault } = await look(disk)
  const wrong = fault ?? torn.map((revision) => `revision ${revision} is torn`)[0]
  if (wrong !== undefined) explorer.report(`after success: ${wrong}`, trail)
  const [found, expected] = [view, after].map(({ live, link, own, revisions }) =>
    [live, link, own, ...revisions].join(),
  )
  if (found !== expected) explorer.report(`after success: ${found}, not ${expected}`, trail)
  if (left.length > 0 && (isGone || !isCut)) explorer.report(`after success: ${left.join()} is left`, trail)
}

async function succeeds(explorer: Explorer, asked: Story, position: Position, effort: Effort): Promise<void> {
  const { undone } = asked
  const { view } = await look(position.disk)
  const isUndone = undone !== undefined && view.live === undone.live && view.link === undone.link
  const story = isUndone ? { ...asked, after: undone } : asked
  const disk = position.disk.fork()
  const { failure } = await run(explorer, disk, story.command)
  const ended = { ...position, disk, trail: [...position.trail, `the command again: ${shown(failure)}`] }
  if (failure !== undefined) explorer.report('does not succeed', ended.trail)
  await done(explorer, story, ended)
  await eachCut(explorer, ended, effort.fewer, (survivor) => done(explorer, story, survivor, true))
}

export async function eachCut(
  explorer: Explorer,
  position: Position,
  limit: number,
  task: (survivor: Position) => Promise<void>,
): Promise<void> {
  const survivors: Position[] = []
  explorer.cut(position, limit, (survivor) => survivors.push(survivor))
  for (const survivor of survivors) await task(survivor)
}

function shown(failure: Error | undefined): string {
  return failure === undefined ? 'done' : (failure.stack ?? failure.message)
}

/** Every instant of the command: a power cut in every way, or a kill; then the command again. */
export async function explorePowerCutsOf(explorer: Explorer, story: Story, effort: Effort): Promise<void> {
  if (story.meanwhile) return
  await intactRevision(7)
  const start = await prepared(explorer, story)
  const disk = start.disk.fork()
  const first = await run(explorer, disk, story.command, { record: true })
  const ended = { ...start, disk, trail: [...start.trail, shown(first.failure)] }
  if (first.failure !== undefined) explorer.report('does not succeed', ended.trail)
  await done(explorer, story, ended)
  await eachCut(explorer, ended, effort.states, (survivor) => done(explorer, story, survivor, true))
  const known = new Set<string>()
  for (const { what, disk } of first.instants) {
    const stopped = { ...start, disk, trail: [...start.trail, `stopped after: ${what}`] }
    await whole(explorer, story, start.view, stopped)
    await succeeds(explorer, story, stopped, effort)
    await eachCut(explorer, stopped, effort.states, async (survivor) => {
      await whole(explorer, story, start.view, survivor)
      const key = explorer.keyOf(survivor)
      // What another program wrote and did not sync may be lost, and the command with it: it ended in nothing.
      if (known.has(key) || story.isForeign) return
      known.add(key)
      await succeeds(explorer, story, survivor, effort)
    })
  }
}

/** Another process comes at each call of the command: each success is true, and the live revision is whole. */
export async function exploreMeetings(explorer: Explorer, story: Story, effort: Effort): Promise<void> {
  const { meanwhile } = story
  if (!meanwhile) return
  const start = await prepared(explorer, story)
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
    const live = byOther ?? (first.failure === undefined ? story.after.live : start.view.live)
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
    await eachCut(explorer, ended, effort.fewer, judge)
  }
}
