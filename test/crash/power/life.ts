/**
 * Targets with a life: each generation is a step of a story, which the next process after a power cut repeats, or continues. `act` does a
 * step, `problem` checks the files beside the target: without the library under test, as far as that can be.
 */
import type { DirectoryPublicationOptions } from '../../../src/durable/publish/request.js'
import { lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { faultOfContent } from '../judge/contents.js'
import { contentAt, entriesAt } from '../judge/directory.js'
import { isKind, type NameBeside, namesOf } from '../judge/names.js'
import { takeOver } from '../../../src/durable/adopt/adoption.js'
import type * as durableModule from '../../../src/durable/index.js'
import { failureOf } from '../../../src/errors.js'
import type { FileSystem, Writers } from '../../../src/durable/file-system.js'
import type * as fileSystemModule from '../../../src/durable/posix/file-system.js'
import type * as publishModule from '../../../src/durable/publish/publish.js'
import type * as relocationModule from '../../../src/durable/move/relocation.js'
import type * as removalModule from '../../../src/durable/remove/removal.js'
import type * as replaceModule from '../../../src/durable/publish/replace.js'
import { module, type Result } from './library.js'
import { contentAfter, hold, type Life, rollback, stepsOf } from './lives.js'
import { difference, differenceAt, textFor } from './observe.js'
import { contentOf, directoryMode, filesOf, type Target } from './targets.js'

interface Place {
  readonly mountPoint: string
  readonly target: Target
  readonly path: string
  readonly durable: typeof durableModule
  /** A file system without users: a scan of all processes takes its time, and has other tests. */
  readonly fs: FileSystem
}

interface Story {
  readonly act: (place: Place, step: number) => Promise<Result>
  /** The fault of this step, where the target holds its content. */
  readonly problem: (place: Place, step: number, how: HowFar) => Promise<string | undefined>
}

/**
 * How far a step has come: the program has said that it is `done`, the `next` one has begun after that; or, after a power cut, another
 * process has done it again.
 */
type HowFar = 'begun' | 'done' | 'next' | 'repeated'

/** A foreign file, beside each target. */
const bystander = 'bystander'
const theirs = 'it is not ours'
const forEver = Number.MAX_SAFE_INTEGER / 2

const stories: Record<Life, Story> = {
  history: {
    async act(place, step) {
      const { durable, path } = place
      if (step === rollback) return rollBackTo(place, contentAfter('history', step))
      if (step !== hold)
        return publish(place, step, { history: { keep: 2, maxAge: null }, held: step > hold ? 'release' : 'refuse' })
      if ((await heldBy(place)) === reason) return { outcome: 'unchanged' }
      await durable.setHold(path, { reason, since: Date.now(), until: null })
      return { outcome: 'replaced' }
    },
    async problem(place, step, how) {
      const required = [[], [], [1], [2, 1], [3, 2], [4, 3], [4, 3], [3, 4]][step] ?? []
      const word = await heldBy(place)
      const expected = step === rollback ? 'pinned' : step === hold ? reason : undefined
      if (word !== expected) return `it is ${word ?? 'free'}, not ${expected ?? 'free'}`
      if (step === hold && !(await isRefused(place))) return 'it is held, and would be published'
      return pastProblem(place, required, 3, how)
    },
  },
  removal: {
    act(place, step) {
      if (contentAfter('removal', step) === 0) return remove(place)
      return publish(place, step, { history: { keep: 1, maxAge: null } })
    },
    async problem(place, step, how) {
      if (contentAfter('removal', step) > 0) return pastProblem(place, step === 2 ? [1] : [], 1, how)
      const own = besideOf(place).flatMap(({ name, kind }) => (kind === 'lock' ? [] : [name]))
      if (how === 'next') return stagedProblem(place, step, own)
      // An older record tells of content, not of its removal.
      const tells = (name: string): boolean =>
        isRecord(name) && readFileSync(join(dirname(place.path), name), 'utf8').includes('"removing":')
      if (own.length > 0 && !own.some(tells))
        return `without the record of their removal, these are left: ${own.join(', ')}`
      return how !== 'begun' && own.length > 0 ? `these were removed, and are back: ${own.join(', ')}` : undefined
    },
  },
  adoption: {
    act: (place, step) => publish(place, step, { adopt: takeOver({ replace: false }) }),
    problem: (place, step, how) => pastProblem(place, step === 1 ? [1] : [], 1, how),
  },
  relocation: {
    async act(place, step) {
      const { fs, path, mountPoint, target } = place
      const { relocate } = await module<typeof relocationModule>('durable/move/relocation')
      const from = join(mountPoint, oldPath)
      if (step === 1) return publish({ ...place, path: from }, step, {}, contentOf(target, 1))
      const published = await publish(place, step, { movedFrom: from })
      const keep = step >= lastMove ? 0 : forEver
      const { state, result, entered, waits } = await relocate(fs, path, { from, keep })
      const expected = keep === 0 ? 'done' : 'both'
      if (state !== expected)
        throw new Error(`the relocation is ${state ?? 'nowhere'}, not ${expected}: ${waits ?? ''}`)
      const changes = [published.outcome, result?.outcome ?? 'unchanged', entered ?? 'unchanged']
      return { outcome: changes.every((one) => one === 'unchanged') ? 'unchanged' : 'replaced' }
    },
    problem: (place, step, how) => Promise.resolve(oldPathProblem(place, step, how)),
  },
}

const isRecord = isKind('record')
const reason = 'kept as it is'
const lastMove = 4
const oldPath = 'was/certs'

/** The content before the first publication. */
export function beforeLife(mountPoint: string, targets: readonly Target[]): void {
  for (const target of targets) {
    if (target.life === undefined) continue
    const path = join(mountPoint, target.path)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(join(dirname(path), bystander), theirs)
    const files = filesOf(target, 0)
    if (files.size > 0) mkdirSync(path, { mode: directoryMode })
    for (const [name, { content, mode }] of files) writeFileSync(join(path, name), content, { mode })
  }
}

/** Does a step, or finds that it is done. */
export async function act(mountPoint: string, target: Target, step: number): Promise<Result> {
  const { story, place } = await storyOf(mountPoint, target)
  return story.act(place, step)
}

/** The fault beside the target, where it holds the content of one of these steps. */
export async function lifeProblem(
  mountPoint: string,
  target: Target,
  allowed: readonly number[],
  isRepeated = false,
): Promise<string | undefined> {
  if (target.life === undefined) return undefined
  const { story, place } = await storyOf(mountPoint, target)
  if (read(join(dirname(place.path), bystander)) !== theirs) return `${bystander}, which is not ours, is gone`
  const problems: string[] = []
  for (const step of allowed) {
    if (difference(mountPoint, target, step) !== undefined) continue
    const more = step === allowed.at(-1) ? 'begun' : 'next'
    const problem = await story.problem(place, step, isRepeated ? 'repeated' : allowed.length === 1 ? 'done' : more)
    if (problem === undefined) return undefined
    problems.push(`as of step ${step}: ${problem}`)
  }
  return problems.join('; ')
}

async function storyOf(mountPoint: string, target: Target): Promise<{ story: Story; place: Place }> {
  if (target.life === undefined) throw new Error(`${target.path} has no life`)
  const durable = await module<typeof durableModule>('durable/index')
  const { NodeFileSystem } = await module<typeof fileSystemModule>('durable/posix/file-system')
  class Unused extends NodeFileSystem {
    override userOf(): Promise<string | undefined> {
      return Promise.resolve(undefined)
    }

    override writersIn(): Promise<Writers> {
      return Promise.resolve({ writer: undefined, unseen: undefined })
    }
  }
  const path = join(mountPoint, target.path)
  return { story: stories[target.life], place: { mountPoint, target, path, durable, fs: new Unused() } }
}

async function publish(
  { fs, target, path }: Place,
  step: number,
  options: DirectoryPublicationOptions,
  files = filesOf(target, step),
): Promise<Result> {
  const publish = target.kind === 'symlink' ? 'symlink' : 'exchange'
  const request = { target: path, files: Object.fromEntries(files), mode: directoryMode, publish } as const
  const { directoryPublication } = await module<typeof replaceModule>('durable/publish/replace')
  const { publish: publishAll, resultsOf } = await module<typeof publishModule>('durable/publish/publish')
  const [result] = resultsOf(await publishAll([directoryPublication(fs, { ...request, ...options })]))
  if (result === undefined) throw new Error('publish() returned nothing')
  return { outcome: result.outcome }
}

async function remove({ fs, path }: Place): Promise<Result> {
  const { removePublished } = await module<typeof removalModule>('durable/remove/removal')
  try {
    await removePublished(fs, path, {})
    return { outcome: 'replaced' }
  } catch (error) {
    if ((error as { code?: string }).code !== 'ENOENT') throw error
    return { outcome: 'unchanged' }
  }
}

async function rollBackTo(place: Place, content: number): Promise<Result> {
  const { durable, path, target } = place
  const isThere = differenceAt(path, target, contentOf(target, content)) === undefined
  if (isThere && (await heldBy(place)) === 'pinned') return { outcome: 'unchanged' }
  const earlier = earlierContents(place).find(({ number }) => number === content)
  const pin = { reason: '', until: 'released' } as const
  const { outcome } = await durable.history.rollBack(path, { to: earlier?.sequence, pin })
  return { outcome }
}

/** Reason of the hold that is in force; `pinned`: it is rolled back. */
async function heldBy({ durable, path }: Place): Promise<string | undefined> {
  const { hold, pin } = (await durable.readPublication(path)) ?? {}
  return hold?.reason ?? (pin && 'pinned')
}

/** Whether an ordinary publication fails with Held. */
async function isRefused(place: Place): Promise<boolean> {
  const refusal = await failureOf(publish(place, stepsOf('history'), {}))
  return refusal !== undefined && 'reason' in refusal && refusal.reason === 'Held'
}

/** Earlier contents are unchanged, the library says so, and the required ones are there. */
async function pastProblem(
  place: Place,
  required: readonly number[],
  most: number,
  how: HowFar,
): Promise<string | undefined> {
  const earlier = new Map(earlierContents(place).map((one) => [one.sequence, one] as const))
  const recorded = ((await place.durable.history.read(place.path)) ?? []).filter(
    ({ replacedAt }) => replacedAt !== null,
  )
  const found: number[] = []
  for (const { sequence, state } of recorded) {
    const { number, problem = 'it is gone' } = earlier.get(sequence) ?? {}
    if (number === undefined) return `the earlier content ${sequence}, said to be ${state}: ${problem}`
    if (state !== 'whole') return `the earlier content ${sequence} is whole, and said to be ${state}`
    found.push(number)
  }
  const lost = required.filter((number) => !found.includes(number))
  if (lost.length > 0) return `of the earlier contents ${required.join(', ')}, these are lost: ${lost.join(', ')}`
  if (how === 'repeated' && earlier.size > found.length)
    return `earlier contents that no record names stay: ${JSON.stringify([...earlier.values()])}, recorded ${found.join(', ')}`
  return found.length > most ? `${found.length} earlier contents stay` : undefined
}

/** What a first publication has staged comes before its record, in any part of it; nothing that was removed before lies in it. */
function stagedProblem({ target, path }: Place, step: number, own: readonly string[]): string | undefined {
  const steps = Array.from({ length: step }, (_, before) => filesOf(target, before))
  const removed = steps.flatMap((files) => [...files.values()].map(({ content }) => content.toString('latin1')))
  const back = own.find((name) => {
    const entries = [...entriesAt(join(dirname(path), name))]
    return entries.some(([, { type, data }]) => type === 'file' && removed.includes(data))
  })
  return back === undefined ? undefined : `its content was removed, and is back: ${back}`
}

interface Earlier {
  readonly sequence: number
  /** Of the content that it is. */
  readonly number?: number
  readonly problem?: string
}

function earlierContents(place: Place): Earlier[] {
  const { target, path } = place
  const last = stepsOf(target.life ?? 'history')
  return besideOf(place).flatMap(({ name, kind, sequence }): readonly Earlier[] => {
    if (kind !== 'generation' || sequence === undefined) return []
    const root = join(dirname(path), name, basename(path))
    const problems: string[] = []
    for (let number = 1; number <= last; number++) {
      const problem = differenceAt(root, target, contentOf(target, number))
      if (problem === undefined) return [{ sequence, number }]
      problems.push(`not ${number} (${problem})`)
    }
    return [{ sequence, problem: problems.join(', ') }]
  })
}

const besideOf = ({ path }: Place): NameBeside[] => namesOf(path, readdirSync(dirname(path)))

/** What the old path holds once a step is done, and before it while the step is on its way: the new path comes first. */
const atOldPath = [[0], [1], [2, 1], [3, 2], [0, 4, 3]] as const

function oldPathProblem({ mountPoint, target }: Place, step: number, how: HowFar): string | undefined {
  const [end, ...before] = atOldPath[step] ?? [0]
  const numbers = how === 'begun' ? [end, ...before] : [end]
  const allowed = numbers.map((number) => [`${number}`, textFor(target, contentOf(target, number))] as const)
  return faultOfContent(oldPath, contentAt(join(mountPoint, oldPath)), new Map(allowed))
}

function read(path: string): string | undefined {
  return lstatSync(path, { throwIfNoEntry: false }) && readFileSync(path, 'utf8')
}
