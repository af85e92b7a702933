import { createHash } from 'node:crypto'
import { dirname } from 'node:path'
import { type Content, expectedView, find, missing, type Target, textOf, viewOf } from './content.js'
import { Catalogue } from './ledger.js'
import type { Inode } from './inode.js'
import { ModelDisk } from './model-disk.js'

/** The request of one call: for each target the name of a content, `missing` for its removal, or nothing. */
export type Step = readonly (string | undefined)[]

export interface Scenario {
  readonly name: string
  readonly targets: readonly Target[]
  readonly contents: readonly Content[]
  /** Directories that exist, durable, outermost first. */
  readonly directories: readonly string[]
  /** Makes unpublished content before: it is durable, and called `foreign`. */
  readonly foreign?: (disk: ModelDisk) => void
  /** Name of the content that a process uses, from its publication until the power is cut: it has to be there, whole. */
  readonly used?: string
  /** The step is a rollback: its content is the newest earlier one. */
  readonly rollback?: true
  /** Calls that came before, all successful; the crash comes in `step`. */
  readonly before: readonly Step[]
  readonly step: Step
  /** The next process's possible requests: the same, the old content, and another. */
  readonly successors: readonly Step[]
}

/** Names that look like ours, and are not: nothing may ever happen to them. */
function bystanders(target: Target): string[] {
  const id = idOf(target)
  const other = createHash('sha256').update('somebody else').digest('hex').slice(0, 16)
  return [
    'bystander',
    `.holdfast-${id}-notours`,
    `.holdfast-${id}-0123456789abcdef0`,
    `.holdfast-${id}.txt`,
    `.holdfast-${other}-0123456789abcdef`,
    `.holdfast-${other}.1`,
  ]
}

const root = { uid: 0, gid: 0, label: '', extended: '' }

export function catalogues({ targets, contents }: Scenario): Catalogue[] {
  return targets.map((target) => new Catalogue(target, contents))
}

/** The disk before anything was published. */
export function initialDisk(scenario: Scenario): ModelDisk {
  const disk = new ModelDisk()
  for (const path of scenario.directories) makeDirectory(disk, path, 0o755)
  for (const target of scenario.targets) {
    const parent = find(disk, dirname(target.path))
    if (!parent) continue
    for (const name of bystanders(target)) {
      if (disk.child(parent.number, name)) continue
      disk.create(parent.number, name, 'file', { mode: 0o644, ...root }, `${name} is not ours`)
    }
  }
  if (scenario.used !== undefined) disk.user = `process 7 has ${scenario.used}`
  scenario.foreign?.(disk)
  disk.syncAll()
  return disk
}

export function makeDirectory(disk: ModelDisk, path: string, mode: number, label = '', extended = ''): number {
  return makeEntry(disk, path, 'directory', mode, '', label, extended)
}

export function makeEntry(
  disk: ModelDisk,
  path: string,
  type: Inode['type'],
  mode: number,
  data: string,
  label = '',
  extended = '',
): number {
  const parent = find(disk, dirname(path))
  if (!parent) throw new Error(`${dirname(path)} is not there`)
  return disk.create(
    parent.number,
    path.slice(path.lastIndexOf('/') + 1),
    type,
    { mode, ...root, label, extended },
    data,
  ).number
}

/**
 * The loss or change of a foreign file, or a leftover of a finished call. `theirs`: foreign content that may stay under a quarantine name,
 * as one text. `known`: whether it is a whole content that the target has had.
 */
export function faultBeside(
  scenario: Scenario,
  disk: ModelDisk,
  finished?: Step,
  theirs?: string,
  known: (target: Target, text: string) => boolean = () => false,
): string | undefined {
  const parents = new Map<string, Target[]>()
  for (const target of scenario.targets) {
    const parent = dirname(target.path)
    parents.set(parent, [...(parents.get(parent) ?? []), target])
  }
  for (const [path, targets] of parents) {
    const parent = find(disk, path)
    const own = new Set(targets.map((target) => target.path.slice(path.length + 1)))
    const others = new Set(targets.flatMap(bystanders))
    if (parent && scenario.directories.includes(path)) {
      for (const name of others) {
        const data = disk.child(parent.number, name)?.now.data
        if (data !== `${name} is not ours`) return `${path}/${name}, which is not ours, is ${data ?? 'gone'}`
      }
    }
    if (!finished || !parent) continue
    for (const target of targets) {
      if (finished[scenario.targets.indexOf(target)] === undefined) continue
      const prefix = `.holdfast-${idOf(target)}`
      const isTheirs = (name: string): boolean => {
        const inode = disk.child(parent.number, name)
        return name.endsWith('.foreign') && inode !== undefined && textOf(disk, inode) === theirs
      }
      const kept = [...parent.now.entries.keys()].filter(
        (name) => name.startsWith(prefix) && !others.has(name) && !isTheirs(name),
      )
      const isRetired = (name: string): boolean => {
        const inode = disk.child(parent.number, name)
        return disk.user !== undefined && inode !== undefined && known(target, textOf(disk, inode))
      }
      const isRemoved = finished[scenario.targets.indexOf(target)] === missing && !find(disk, target.path)
      if (isRemoved && kept.some((name) => name !== `${prefix}.lock`))
        return `left beside ${target.path}: ${kept.join(', ')}`
      const past = kept.filter((name) => earlierPattern.test(name.slice(prefix.length)))
      if (past.length > (target.history ?? (target.takesOver ? 1 : 0)))
        return `${past.length} earlier contents stay beside ${target.path}`
      const isEarlier = (name: string): boolean => {
        const text = past.includes(name) ? earlierText(disk, parent, name, target) : undefined
        return text !== undefined && known(target, text)
      }
      const records = kept.filter((name) => recordPattern.test(name.slice(prefix.length)))
      if (
        records.length > 1 ||
        kept.some(
          (name) => name !== `${prefix}.lock` && !records.includes(name) && !isRetired(name) && !isEarlier(name),
        )
      ) {
        return `left beside ${target.path}: ${kept.map((name) => name.slice(prefix.length)).join(', ')}`
      }
      const fault = target.form === 'symlink' ? strayInside(disk, target.path) : undefined
      if (fault !== undefined) return fault
    }
    const strange = [...parent.now.entries.keys()].filter((name) => !own.has(name) && !name.startsWith('.holdfast-'))
    if (strange.some((name) => !others.has(name))) return `left in ${path}: ${strange.join(', ')}`
  }
  return undefined
}

/** What a name says of a record, without what all of the target's have. */
const recordPattern = /^\.[1-9][0-9]*$/

/** What a name says of an earlier content, without what all of the target's have. */
const earlierPattern = /^\.(?:0|[1-9][0-9]*)-[0-9a-f]{16}$/

/** The content of a generation's name. */
function earlierText(disk: ModelDisk, parent: Inode, name: string, { path }: Target): string | undefined {
  const holder = disk.child(parent.number, name)
  const content = holder && disk.child(holder.number, path.slice(path.lastIndexOf('/') + 1))
  return content && holder.now.attributes.mode === 0o700 ? textOf(disk, content) : undefined
}

/** Whether the step's old content is in the history as a whole: where the new content is there, in a scenario with history. */
export function lostToHistory(scenario: Scenario, disk: ModelDisk): string | undefined {
  const { targets, contents, before, step } = scenario
  const [target] = targets
  if (target === undefined || (target.history === undefined && !target.takesOver)) return undefined
  const textOfContent = (name: string | undefined): string | undefined => {
    const content = contents.find((one) => one.name === name)
    return content && expectedView(content, target.form).content
  }
  if (viewOf(disk, target).content !== textOfContent(step[0])) return undefined
  const replaced = before.at(-1)?.[0]
  const replacedText = target.takesOver ? foreignText(scenario, target) : textOfContent(replaced)
  const parent = find(disk, dirname(target.path))
  const names = [...(parent?.now.entries.keys() ?? [])].filter((name) => name.startsWith(`.holdfast-${idOf(target)}.`))
  const isKept = names.some((name) => parent && earlierText(disk, parent, name, target) === replacedText)
  return isKept ? undefined : `${replaced ?? 'what was foreign'} was replaced, and is not kept as a whole`
}

/** The unpublished content before the first publication, as one text. */
function foreignText(scenario: Scenario, { path }: Target): string | undefined {
  const disk = new ModelDisk()
  for (const directory of scenario.directories) makeDirectory(disk, directory, 0o755)
  scenario.foreign?.(disk)
  const found = find(disk, path)
  return found && textOf(disk, found)
}

/** The remains of a removed target without a record, so that no later run would remove them. */
export function leftWithoutRecord({ targets, step }: Scenario, disk: ModelDisk): string | undefined {
  const [target] = targets
  if (target === undefined || step[0] !== missing || find(disk, target.path)) return undefined
  const prefix = `.holdfast-${idOf(target)}`
  const names = [...(find(disk, dirname(target.path))?.now.entries.keys() ?? [])].filter((name) =>
    name.startsWith(prefix),
  )
  const others = new Set(bystanders(target))
  const own = names.filter((name) => !others.has(name) && name !== `${prefix}.lock`)
  const records = own.filter((name) => recordPattern.test(name.slice(prefix.length)))
  return own.length > 0 && records.length === 0
    ? `left of ${target.path}, without a record: ${own.join(', ')}`
    : undefined
}

/** Whether the used content is there as a whole, under the target's name or another one. */
export function lostToItsUser(scenario: Scenario, disk: ModelDisk): string | undefined {
  const { used, contents, targets } = scenario
  const [target] = targets
  const content = contents.find(({ name }) => name === used)
  if (disk.user === undefined || content === undefined || target === undefined) return undefined
  const parent = find(disk, dirname(target.path))
  const whole = expectedView(content, target.form).content
  const found = [...(parent?.now.entries.values() ?? [])].some((number) => textOf(disk, disk.inode(number)) === whole)
  return found ? undefined : `${disk.user}, and it is not there as a whole any more`
}

function idOf({ path }: Target): string {
  return createHash('sha256')
    .update(path.slice(path.lastIndexOf('/') + 1))
    .digest('hex')
    .slice(0, 16)
}

function strayInside(disk: ModelDisk, path: string): string | undefined {
  const target = find(disk, path)
  const current = find(disk, `${path}/..data`)?.now.data
  const strays = [...(target?.now.entries.keys() ?? [])].filter(
    (name) => name.startsWith('..') && name !== '..data' && name !== current,
  )
  return strays.length > 0 ? `left in ${path}: ${strays.join(', ')}` : undefined
}
