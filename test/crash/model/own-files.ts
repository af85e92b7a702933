/*
 * A file that a process keeps for itself, on the model disk. Whatever instant a power cut or a kill comes at, the file is whole, and never
 * older than the last write that has answered; the next process's write succeeds. Of what is added to it, a power cut may leave a part.
 */
import { publish, resultsOf } from '../../../src/durable/publish/publish.js'
import { filePublication } from '../../../src/durable/publish/replace.js'
import { OwnFile } from '../../../src/durable/index.js'
import type { FileSystem } from '../../../src/durable/file-system.js'
import type { Effort } from './explore.js'
import type { Explorer, Position } from './explorer.js'
import { find, textOf } from './content.js'
import { moveAway, putBack } from './foreigners.js'
import { ModelDisk } from './model-disk.js'
import { ModelProcess } from './model-process.js'
import { makeDirectory } from './scenario.js'
import { eachCut } from './static-pods/explore.js'

const [node, state] = ['/node', '/node/state']
const path = `${state}/status.json`

/** The texts, in the order of the writes; before the first there is none, or `earlier`. */
const earlier = 'earlier'
const texts = ['first', 'second', 'third'] as const
const order: readonly (string | undefined)[] = [undefined, earlier, ...texts]

/** What is added to the last of them, of more than a sector each. */
const additions = ['x', 'y'].map((letter) => letter.repeat(700))

export interface OwnFileStory {
  readonly name: string
  readonly before: (disk: ModelDisk) => Promise<void>
  /** What another program does between the writes of one process. */
  readonly meanwhile?: (disk: ModelDisk) => void
}

export const ownFileStories: readonly OwnFileStory[] = [
  {
    name: 'own file, below a directory that is not there yet',
    before: () => Promise.resolve(),
  },
  {
    name: 'own file, after a version that published it',
    async before(disk) {
      makeDirectory(disk, state, 0o755)
      resultsOf(await publish([filePublication(new ModelProcess(disk), path, earlier, { mode: 0o600 })]))
    },
  },
  {
    name: 'own file, whose directory goes between two writes',
    before: () => Promise.resolve(),
    meanwhile: (disk) => moveAway(disk, state),
  },
  {
    name: 'own file, whose directory another program makes anew between two writes',
    before: () => Promise.resolve(),
    meanwhile(disk) {
      moveAway(disk, state)
      makeDirectory(disk, state, 0o755)
    },
  },
  {
    name: 'own file, above which another program moves a directory between two writes',
    before: () => Promise.resolve(),
    meanwhile(disk) {
      moveAway(disk, state)
      putBack(disk, state)
    },
  },
]

interface Met {
  readonly what: string
  readonly disk: ModelDisk
  /** What the last write that had answered has written, as an index of `order`. */
  readonly answered: number
}

/** The writes of one process, and the disk at each instant of them. */
async function write(explorer: Explorer, disk: ModelDisk, { meanwhile }: OwnFileStory): Promise<Met[]> {
  explorer.counts.plays += 1
  const process = new ModelProcess(disk)
  const file = new OwnFile(path, process)
  let answered = 0
  const met: Met[] = []
  const note = (what: string): void => void met.push({ what, disk: disk.fork(), answered })
  note('the first change')
  disk.changed = note
  for (const text of texts) {
    if (text === 'third' && meanwhile) {
      // A write does not vouch for a directory that another program has taken away.
      answered = 0
      meanwhile(disk)
    }
    await file.replace(text)
    answered = order.indexOf(text)
    note(`the answer: ${text} is durable`)
  }
  for (const [index, addition] of additions.entries()) {
    if (!(await file.append(addition))) explorer.report('nothing is added to a file that is as it was left', [])
    answered = order.length + index
    note(`the answer: addition ${index} is durable`)
  }
  disk.changed = undefined
  if (process.descriptors > 0) explorer.report(`${process.descriptors} descriptors are left open`, [])
  return met
}

/** Which text the file holds, as an index of `order`; undefined: it is torn. */
function versionOn(disk: ModelDisk): number | undefined {
  const inode = find(disk, path)
  const now = inode && textOf(disk, inode)
  const found = order.findIndex((text) => now === (text && `f 600 0:0 <${text}>`))
  return found === -1 ? additionsIn(now ?? '') : found
}

/** The last that is whole, by the index behind those of `order`; what follows it may be torn. */
function additionsIn(text: string): number | undefined {
  const whole = additions.map((_, index) => `f 600 0:0 <third${additions.slice(0, index + 1).join('')}`)
  const most = whole.findLastIndex((start) => text.startsWith(start))
  if (most === -1) return text.startsWith('f 600 0:0 <third') ? order.indexOf('third') : undefined
  return order.length + most
}

export async function exploreOwnFiles(explorer: Explorer, story: OwnFileStory, effort: Effort): Promise<void> {
  const judge = ({ disk, trail }: Position, least: number): void => {
    const found = versionOn(disk)
    if (found === undefined) explorer.report('the file is torn', trail)
    else if (found < least)
      explorer.report(`${order[least] ?? 'an addition'} was durable, and ${order[found] ?? 'nothing'} is there`, trail)
  }
  const writes = async ({ disk, trail }: Position, fs: FileSystem): Promise<void> => {
    const ended: Position = { disk, ledgers: [], trail: [...trail, 'the next process writes'] }
    try {
      await new OwnFile(path, fs).replace('third')
    } catch (error) {
      explorer.report(`the next process does not succeed: ${String(error)}`, ended.trail)
      return
    }
    const last = order.indexOf('third')
    judge(ended, last)
    const left = [...(find(disk, state)?.now.entries.keys() ?? [])].filter((name) => name !== 'status.json')
    if (left.some((name) => !name.endsWith('.lock'))) explorer.report(`${left.join(', ')} is left`, ended.trail)
    await eachCut(explorer, ended, effort.fewer, (survivor) => {
      judge(survivor, last)
      return Promise.resolve()
    })
  }

  const disk = new ModelDisk()
  for (const path of [node, '/etc']) makeDirectory(disk, path, 0o755)
  await story.before(disk)
  disk.syncAll()
  const seen = new Set<string>()
  for (const { what, disk: met, answered } of await write(explorer, disk, story)) {
    const stopped: Position = { disk: met, ledgers: [], trail: [story.name, `stopped after: ${what}`] }
    judge(stopped, answered)
    await eachCut(explorer, stopped, effort.states, async (survivor) => {
      judge(survivor, answered)
      const key = explorer.keyOf(survivor)
      if (seen.has(key)) return
      seen.add(key)
      const next = survivor.disk.fork()
      await writes({ ...survivor, disk: next }, new ModelProcess(next))
    })
    const next = met.fork()
    await writes({ ...stopped, disk: next }, new ModelProcess(next))
  }
}
