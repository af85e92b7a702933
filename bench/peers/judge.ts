/** What a reader finds after a power cut, in one word, and what follows for the peer. */
import type { Files } from './content.js'

/**
 * `old`, `new`: all of one generation. `mixed`: each file is whole, but they are of more than one generation. `torn`: a file is of
 * none. `missing`: a file, or all, cannot be opened. `unmountable`: there is no file system any more.
 */
export type State = 'old' | 'new' | 'mixed' | 'torn' | 'missing' | 'unmountable'

/** What a state counts as, given whether the program had said by then that the new content is in place. */
export type Verdict = 'whole' | 'lost' | Exclude<State, 'old' | 'new'>

/** `read`: the bytes under each name, undefined where there are none. The worst of the files decides. */
export function stateOf(read: (name: string) => Buffer | undefined, before: Files, after: Files): State {
  const found = new Set<'old' | 'new' | 'torn' | 'missing'>()
  for (const [name, wanted] of after) {
    const bytes = read(name)
    const old = before.get(name)
    const isNew = bytes?.equals(wanted)
    const isOld = old !== undefined && bytes?.equals(old)
    if (bytes === undefined) found.add('missing')
    // Equal files tell nothing.
    else if (isNew && isOld) continue
    else if (isNew) found.add('new')
    else if (isOld) found.add('old')
    else found.add('torn')
  }
  if (found.has('missing')) return 'missing'
  if (found.has('torn')) return 'torn'
  if (found.size > 1) return 'mixed'
  return found.has('old') ? 'old' : 'new'
}

export function verdictOf(state: State, acknowledged: boolean): Verdict {
  if (state === 'new') return 'whole'
  // After the answer an old file among new ones is a file that was lost.
  if (acknowledged && (state === 'old' || state === 'mixed')) return 'lost'
  return state === 'old' ? 'whole' : state
}

export const broken = ['lost', 'mixed', 'torn', 'missing', 'unmountable'] as const satisfies readonly Verdict[]

const verdicts = ['whole', ...broken] as const satisfies readonly Verdict[]

export type Tally = Readonly<Record<Verdict, number>>

export const emptyTally: Tally = { whole: 0, lost: 0, mixed: 0, torn: 0, missing: 0, unmountable: 0 }

export function add(tally: Tally, verdict: Verdict): Tally {
  return { ...tally, [verdict]: tally[verdict] + 1 }
}

export function sumOf(one: Tally, other: Tally): Tally {
  return Object.fromEntries(verdicts.map((verdict) => [verdict, one[verdict] + other[verdict]])) as Tally
}

export const brokenOf = (tally: Tally): number => broken.reduce((sum, verdict) => sum + tally[verdict], 0)
export const statesOf = (tally: Tally): number => tally.whole + brokenOf(tally)

/** What a peer keeps through power cuts, from the weakest: speeds are compared within one of them. */
export const guarantees = ['broken', 'each file, may be lost', 'each file, durable', 'the directory, durable'] as const
export type Guarantee = (typeof guarantees)[number]

/** undefined if there were no states. */
export function guaranteeOf(tally: Tally): Guarantee | undefined {
  const { lost, mixed, torn, missing, unmountable } = tally
  if (statesOf(tally) === 0) return undefined
  if (torn + missing + unmountable > 0) return 'broken'
  if (lost > 0) return 'each file, may be lost'
  return mixed > 0 ? 'each file, durable' : 'the directory, durable'
}

/** Of an error of mount(2): the file system is at fault, and not this machine. */
export function isDamage(error: unknown): boolean {
  const { code } = error as { code?: unknown }
  return code === 'EUCLEAN' || code === 'EINVAL' || code === 'EIO' || code === 'EBADMSG'
}
