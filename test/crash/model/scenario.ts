import { basename, dirname } from 'node:path'
import { leftBeside, leftInside } from '../judge/leftovers.js'
import { type NameBeside, namesOf, ownPrefix } from '../judge/names.js'
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
  /** Between `before` and `step`, somebody gives everybody the right to write to the records, and leaves it to root's group. */
  readonly careless?: true
  /** Calls that came before, all successful; the crash comes in `step`. */
  readonly before: readonly Step[]
  readonly step: Step
  /** The next process's possible requests: the same, the old content, and another. */
  readonly successors: readonly Step[]
}

/** What is played and judged in another way. */
export function withoutTargets(name: string): Scenario {
  return { name, targets: [], contents: [], directories: [], before: [], step: [], successors: [] }
}

/** Names that look like ours, and are not: nothing may ever happen to them. */
function bystanders(target: Target): readonly string[] {
  const known = bystandersOf.get(target) ?? namesLikeOurs(target)
  bystandersOf.set(target, known)
  return known
}
/** The model asks at each of its million states, and each answer takes two hashes. */
const bystandersOf = new WeakMap<Target, readonly string[]>()

function namesLikeOurs(target: Target): readonly string[] {
  const own = ownPrefix(basename(target.path))
  const other = ownPrefix('somebody else')
  return [
    'bystander',
    `${own}-notours`,
    `${own}-0123456789abcdef0`,
    `${own}.txt`,
    `${other}-0123456789abcdef`,
    `${other}.1`,
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

/** As `chmod -R` beside the targets does. */
export function changeRecords({ targets }: Scenario, disk: ModelDisk, mode: number): void {
  for (const { path } of targets) {
    const parent = find(disk, dirname(path))
    const records = namesOf(path, parent?.now.entries.keys() ?? []).filter(({ kind }) => kind === 'record')
    for (const { name } of records) disk.setMetadata(parent?.now.entries.get(name) ?? 0, { mode }, 'chmod')
  }
  disk.syncAll()
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
      const text = (name: string): string => textOf(disk, disk.inode(parent.now.entries.get(name) ?? parent.number))
      const names = [...parent.now.entries.keys()].filter((name) => !others.has(name))
      const isThere = find(disk, target.path) !== undefined
      const isRemoved = !isThere && finished[scenario.targets.indexOf(target)] === missing
      // Where a call fails, foreign content has no record, and staged content has one.
      const records = isRemoved ? [0] : isThere && !scenario.foreign ? [1] : [0, 1]
      const isExcused = ({ name, kind }: NameBeside): boolean =>
        (kind === 'foreign' && text(name) === theirs) ||
        // A process uses it.
        (!isRemoved && disk.user !== undefined && known(target, text(name)))
      const generations = isRemoved ? 0 : (target.history ?? (target.takesOver ? 1 : 0))
      const isWhole = (name: string): boolean => {
        const earlier = earlierText(disk, parent, name, target)
        return earlier !== undefined && known(target, earlier)
      }
      const torn = namesOf(target.path, names).find(({ name, kind }) => kind === 'generation' && !isWhole(name))
      const fault =
        leftBeside(target.path, names, { records, generations, isExcused }) ??
        (torn && `${torn.name}, beside ${target.path}, is no whole earlier content`) ??
        strayInside(disk, target)
      if (fault !== undefined) return fault
    }
    const strange = [...parent.now.entries.keys()].filter((name) => !own.has(name) && !name.startsWith('.holdfast-'))
    if (strange.some((name) => !others.has(name))) return `left in ${path}: ${strange.join(', ')}`
  }
  return undefined
}

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
  const isKept = [...(parent?.now.entries.keys() ?? [])].some(
    (name) => parent && earlierText(disk, parent, name, target) === replacedText,
  )
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
  const others = new Set(bystanders(target))
  const own = namesOf(target.path, find(disk, dirname(target.path))?.now.entries.keys() ?? []).filter(
    ({ name, kind }) => !others.has(name) && kind !== 'lock',
  )
  return own.length > 0 && own.every(({ kind }) => kind !== 'record')
    ? `left of ${target.path}, without a record: ${own.map(({ name }) => name).join(', ')}`
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

/** A generation in a target of links that its `..data` does not lead to. */
export function strayInside(disk: ModelDisk, { path, form }: Target): string | undefined {
  if (form !== 'symlink') return undefined
  return leftInside(path, find(disk, path)?.now.entries.keys() ?? [], find(disk, `${path}/..data`)?.now.data)
}
