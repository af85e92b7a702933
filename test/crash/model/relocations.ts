/*
 * A directory moves to another path on the model disk. A power cut or a kill at any instant leaves each path all old or all new, the new
 * path first, and the old one until the new one holds its content; the same command then goes on.
 */
import { publish, resultsOf } from '../../../src/durable/publish/publish.js'
import { relocate } from '../../../src/durable/move/relocation.js'
import { directoryPublication } from '../../../src/durable/publish/replace.js'
import type { FileSystem } from '../../../src/durable/file-system.js'
import type { Effort } from './explore.js'
import type { Explorer, Position } from './explorer.js'
import { find, textOf } from './content.js'
import { ModelDisk } from './model-disk.js'
import { ModelProcess } from './model-process.js'
import { makeDirectory } from './scenario.js'
import { eachCut, run } from './static-pods/explore.js'

const [was, is] = ['/node/was', '/node/is']
const [from, to] = [`${was}/certs`, `${is}/tls`]

/** What the paths hold: the old one gets the content of the new one with the mode that it has. */
const versions = ['first', 'second'] as const
type Version = (typeof versions)[number]
const modes = { [from]: 0o700, [to]: 0o755 } as const

export interface RelocationStory {
  readonly name: string
  /** What the old path holds in the end. */
  readonly end: 'none' | Version
  /** The calls before. */
  readonly before: (fs: FileSystem) => Promise<void>
  readonly command: (fs: FileSystem) => Promise<void>
}

async function replace(fs: FileSystem, target: string, version: Version, moved: object = {}): Promise<void> {
  const request = {
    target,
    files: { 'tls.crt': version, 'sub/tls.key': version },
    mode: modes[target] ?? 0o755,
    ...moved,
  }
  resultsOf(await publish([directoryPublication(fs, request)]))
}

const publishNew = (fs: FileSystem, version: Version): Promise<void> => replace(fs, to, version, { movedFrom: from })

async function move(fs: FileSystem, keep: number): Promise<void> {
  await relocate(fs, to, { from, keep })
}

const forEver = 1_000_000

export const relocationStories: readonly RelocationStory[] = [
  {
    name: 'relocation, to its end',
    end: 'none',
    before: (fs) => replace(fs, from, 'first'),
    async command(fs) {
      await publishNew(fs, 'second')
      await move(fs, 0)
    },
  },
  {
    name: 'relocation, both kept up to date',
    end: 'second',
    async before(fs) {
      await replace(fs, from, 'first')
      await publishNew(fs, 'first')
      await move(fs, forEver)
    },
    async command(fs) {
      await publishNew(fs, 'second')
      await move(fs, forEver)
    },
  },
]

function versionAt(disk: ModelDisk, path: string): string {
  const inode = find(disk, path)
  if (inode === undefined) return 'none'
  const mode = (modes[path] ?? 0).toString(8)
  const found = textOf(disk, inode)
  const textFor = (version: Version): string =>
    `d ${mode} 0:0 {sub=d ${mode} 0:0 {tls.key=f 600 0:0 <${version}>},tls.crt=f 600 0:0 <${version}>}`
  return versions.find((version) => textFor(version) === found) ?? found
}

function leftBeside(disk: ModelDisk, path: string): string[] {
  return [...(find(disk, path)?.now.entries.keys() ?? [])].filter((name) => /^\.holdfast-[0-9a-f]{16}-/.test(name))
}

export async function exploreRelocations(explorer: Explorer, story: RelocationStory, effort: Effort): Promise<void> {
  const known = (version: string): boolean => versions.some((one) => one === version)
  const whole = ({ disk, trail }: Position): void => {
    const [old, now] = [versionAt(disk, from), versionAt(disk, to)]
    const report = (fault: string): void => explorer.report(`${fault}: ${from} is ${old}, ${to} is ${now}`, trail)
    if (!known(old) && old !== 'none') report('the old path is torn')
    if (!known(now) && now !== 'none') report('the new path is torn')
    if (old === 'none' && !(story.end === old && now === 'second')) report('the old path is gone')
    if (old === 'second' && now !== 'second') report('the old path comes first')
    if (story.end === 'second' && now === 'none') report('the new path is gone')
  }
  const done = ({ disk, trail }: Position, isCut = false): void => {
    const found = [versionAt(disk, from), versionAt(disk, to)].join()
    const expected = `${story.end},second`
    if (found !== expected) explorer.report(`after success: ${found}, not ${expected}`, trail)
    const left = isCut ? [] : [was, is].flatMap((path) => leftBeside(disk, path))
    if (left.length > 0) explorer.report(`after success: ${left.join()} is left`, trail)
  }
  const succeeds = async (position: Position): Promise<void> => {
    const disk = position.disk.fork()
    const { failure } = await run(explorer, disk, ({ fs }) => story.command(fs))
    const ended = { ...position, disk, trail: [...position.trail, `again: ${failure?.stack ?? 'done'}`] }
    if (failure !== undefined) explorer.report('does not succeed', ended.trail)
    done(ended)
    await eachCut(explorer, ended, effort.fewer, (survivor) => {
      done(survivor, true)
      return Promise.resolve()
    })
  }

  const disk = new ModelDisk()
  for (const path of ['/node', was, is]) makeDirectory(disk, path, 0o755)
  await story.before(new ModelProcess(disk))
  disk.syncAll()
  const position: Position = { disk: disk.fork(), ledgers: [], trail: [story.name] }
  const first = await run(explorer, position.disk, ({ fs }) => story.command(fs), { record: true })
  if (first.failure !== undefined) explorer.report('does not succeed', [story.name, first.failure.stack ?? ''])
  done(position)
  await eachCut(explorer, position, effort.states, (survivor) => {
    done(survivor, true)
    return Promise.resolve()
  })
  const seen = new Set<string>()
  let recovered = 0
  for (const { what, disk } of first.instants) {
    const stopped: Position = { disk, ledgers: [], trail: [story.name, `stopped after: ${what}`] }
    whole(stopped)
    await succeeds(stopped)
    await eachCut(explorer, stopped, effort.states, async (survivor) => {
      whole(survivor)
      const key = explorer.keyOf(survivor)
      // Each is judged; to go on from each would take minutes.
      if (seen.has(key) || ++recovered % effort.second !== 0) return
      seen.add(key)
      await succeeds(survivor)
    })
  }
}
