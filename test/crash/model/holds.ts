/*
 * Holding and releasing a directory on the model disk. A power cut or a kill at any instant leaves the content whole, and the directory
 * held or not: as before, or as requested. Once the call has answered, only the latter; and the next call publishes where there is no hold,
 * and nowhere else.
 */
import { publish, resultsOf } from '../../../src/durable/publish/publish.js'
import { directoryPublication } from '../../../src/durable/publish/replace.js'
import { setHold } from '../../../src/durable/operator/hold.js'
import { recordOf } from '../../../src/durable/move/relocation-source.js'
import type { FileSystem } from '../../../src/durable/file-system.js'
import type { Effort } from './explore.js'
import type { Explorer, Position } from './explorer.js'
import { find, textOf } from './content.js'
import { ModelDisk } from './model-disk.js'
import { ModelProcess } from './model-process.js'
import { makeDirectory } from './scenario.js'
import { eachCut, run } from './static-pods/explore.js'

const parent = '/node'
const path = `${parent}/certs`

type Version = 'first' | 'second'

export interface HoldStory {
  readonly name: string
  readonly wasHeld: boolean
  readonly isHeld: boolean
}

export const holdStories: readonly HoldStory[] = [
  { name: 'hold', wasHeld: false, isHeld: true },
  { name: 'hold, of what is held', wasHeld: true, isHeld: true },
  { name: 'release', wasHeld: true, isHeld: false },
]

async function replace(fs: FileSystem, version: Version): Promise<void> {
  resultsOf(await publish([directoryPublication(fs, { target: path, files: { 'tls.crt': version } })]))
}

async function hold(fs: FileSystem, isHeld: boolean): Promise<void> {
  await setHold(fs, path, isHeld ? { since: fs.now(), reason: 'it is repaired by hand', until: null } : undefined, {})
}

const textFor = (version: Version): string => `d 755 0:0 {tls.crt=f 600 0:0 <${version}>}`

function contentOn(disk: ModelDisk): string | undefined {
  const inode = find(disk, path)
  return inode && textOf(disk, inode)
}

export async function exploreHolds(explorer: Explorer, story: HoldStory, effort: Effort): Promise<void> {
  const judge = async ({ disk, trail }: Position, hasAnswered: boolean): Promise<boolean> => {
    if (contentOn(disk) !== textFor('first')) explorer.report(`${String(contentOn(disk))} is there`, trail)
    const record = await recordOf(new ModelProcess(disk.fork()), path)
    if (!record?.trusted) explorer.report('nothing says any more what was published', trail)
    const isHeld = record?.hold !== undefined
    if (isHeld !== story.isHeld && (hasAnswered || isHeld !== story.wasHeld))
      explorer.report(isHeld ? 'it is held' : 'it is not held', trail)
    return isHeld
  }
  /** What comes next publishes, or is refused. */
  const publishes = async ({ disk, trail }: Position, isHeld: boolean): Promise<void> => {
    const next: Position = { disk: disk.fork(), ledgers: [], trail: [...trail, 'the next publication'] }
    const { failure } = await run(explorer, next.disk, ({ fs }) => replace(fs, 'second'))
    if ((failure !== undefined) !== isHeld)
      explorer.report(failure?.message ?? 'it is published all the same', next.trail)
    const expected = textFor(isHeld ? 'first' : 'second')
    const look = ({ disk, trail }: Position): Promise<void> => {
      if (contentOn(disk) !== expected) explorer.report(`${String(contentOn(disk))} is there`, trail)
      return Promise.resolve()
    }
    await look(next)
    await eachCut(explorer, next, effort.fewer, look)
  }
  const asksAgain = async ({ disk, trail }: Position): Promise<void> => {
    const again: Position = { disk: disk.fork(), ledgers: [], trail: [...trail, 'again'] }
    const { failure } = await run(explorer, again.disk, ({ fs }) => hold(fs, story.isHeld))
    if (failure) explorer.report(`the next one does not succeed: ${failure.message}`, again.trail)
    await eachCut(explorer, again, effort.fewer, async (survivor) => {
      await judge(survivor, true)
    })
  }

  const disk = new ModelDisk()
  makeDirectory(disk, parent, 0o755)
  const before = new ModelProcess(disk)
  await replace(before, 'first')
  if (story.wasHeld) await hold(before, true)
  disk.syncAll()
  const ended: Position = { disk: disk.fork(), ledgers: [], trail: [story.name, 'it has answered'] }
  const { failure, instants } = await run(explorer, ended.disk, ({ fs }) => hold(fs, story.isHeld), { record: true })
  if (failure) explorer.report(`does not succeed: ${failure.message}`, ended.trail)
  const met = instants.map(({ what, disk }) => ({
    position: { disk, ledgers: [], trail: [story.name, `stopped after: ${what}`] },
    hasAnswered: false,
  }))
  const seen = new Set<string>()
  for (const { position, hasAnswered } of [...met, { position: ended, hasAnswered: true }]) {
    const goOn = async (survivor: Position): Promise<void> => {
      const isHeld = await judge(survivor, hasAnswered)
      const key = explorer.keyOf(survivor)
      if (seen.has(key)) return
      seen.add(key)
      await publishes(survivor, isHeld)
      await asksAgain(survivor)
    }
    await goOn(position)
    await eachCut(explorer, position, effort.states, goOn)
  }
}
