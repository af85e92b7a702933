/*
 * A directory moves to another path on the model disk. Whatever instant a power cut or a kill comes at, each path is all old or all new,
 * the new path is first, and the old one is only gone, or a link, once the new one holds what it held; the same command then goes on.
 */
import { publish, resultsOf } from '../../../src/durable/publish/publish.js'
import { relocate } from '../../../src/durable/move/relocation.js'
import { directoryPublication } from '../../../src/durable/publish/replace.js'
import type { MovedFromForm } from '../../../src/durable/types.js'
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
  readonly end: 'none' | 'link' | Version
  /** The other way round: the paths change their roles. */
  readonly back?: true
  /** What has happened before. */
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

const publishNew = (fs: FileSystem, version: Version, as: MovedFromForm = 'removed'): Promise<void> =>
  replace(fs, to, version, { movedFrom: { from, as } })

async function move(fs: FileSystem, keep: number, as: MovedFromForm = 'removed'): Promise<void> {
  await relocate(fs, to, { from, as, keep })
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
    name: 'relocation, that leaves a link',
    end: 'link',
    before: (fs) => replace(fs, from, 'first'),
    async command(fs) {
      await publishNew(fs, 'second', 'link')
      await move(fs, 0, 'link')
    },
  },
  {
    name: 'relocation, back to where a link was left',
    end: 'none',
    back: true,
    async before(fs) {
      await replace(fs, from, 'first')
      await publishNew(fs, 'first', 'link')
      await move(fs, 0, 'link')
    },
    async command(fs) {
      await replace(fs, from, 'second', { movedFrom: { from: to, as: 'removed' }, movedTo: null })
      await relocate(fs, from, { from: to, as: 'removed', keep: 0 })
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
  if (inode.type === 'symlink') return 'link'
  const mode = (modes[path] ?? 0).toString(8)
  const found = textOf(disk, inode)
  const textFor = (version: Version): string =>
    `d ${mode} 0:0 {sub=d ${mode} 0:0 {tls.key=f 600 0:0 <${version}>},tls.crt=f 600 0:0 <${version}>}`
  return versions.find((version) => textFor(version) === found) ?? found
}

function leftBeside(disk: ModelDisk, path: string): string[] {
  return [...(find(disk, path)?.now.entries.keys() ?? [])].filter((name) => /^\.holdfast-[0-9a-f]{16}-/.test(name))
}

const linkTo = (path: string): string => `../${path.slice('/node/'.length)}`

export async function exploreRelocations(explorer: Explorer, story: RelocationStory, effort: Effort): Promise<void> {
  const known = (version: string): boolean => versions.some((one) => one === version)
  const [oldPath, newPath] = story.back ? [to, from] : [from, to]
  const whole = ({ disk, trail }: Position): void => {
    const [old, now] = [versionAt(disk, oldPath), versionAt(disk, newPath)]
    const report = (fault: string): void =>
      explorer.report(`${fault}: ${oldPath} is ${old}, ${newPath} is ${now}`, trail)
    const isBefore = now === 'none' || now === 'link'
    if (!known(old) && old !== 'none' && old !== 'link') report('the old path is torn')
    if (!known(now) && !isBefore) report('the new path is torn')
    if ((old === 'none' || old === 'link') && !(story.end === old && now === 'second')) report('the old path is gone')
    if (old === 'second' && now !== 'second') report('the old path comes first')
    if (story.end === 'second' && now === 'none') report('the new path is gone')
    if (story.back && now === 'none') report('the link is gone')
  }
  const done = ({ disk, trail }: Position, isCut = false): void => {
    const found = [versionAt(disk, oldPath), versionAt(disk, newPath)].join()
    const expected = `${story.end},second`
    if (found !== expected) explorer.report(`after success: ${found}, not ${expected}`, trail)
    const link = story.end === 'link' ? find(disk, oldPath)?.now.data : undefined
    if (link !== undefined && link !== linkTo(newPath)) explorer.report(`the link leads to ${link}`, trail)
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
