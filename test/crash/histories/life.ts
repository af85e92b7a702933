/**
 * Lives of two or three targets, drawn from a seed: calls of every kind, refused ones among them, and another program that puts back, adds and
 * takes away all that was ever there. What each call must leave is in judge-life.ts.
 */
import type { Random } from '../../random.js'
import { kindOf } from './contents.js'

const callNames = ['replace', 'pass', 'rollback', 'hold', 'release', 'prune', 'move', 'endMove'] as const
const rarer = ['remove', 'letGo', 'hook', 'objects', 'takeAway', 'batch'] as const
type CallName = (typeof callNames)[number] | (typeof rarer)[number]

/** One call of the program at a path. Fields that a call does not have are ignored by it. */
export interface Call {
  readonly do: 'call'
  readonly call: CallName
  readonly path: string
  /** The old path of a move; the second target of a batch. */
  readonly from?: string
  readonly content: number
  readonly agent: 'one' | 'two'
  readonly release: boolean
  readonly force: boolean
  readonly keepHold: boolean
  readonly adopt: boolean | 'replace'
  readonly onDrop: 'keep' | 'remove'
  /** Of a hold and a pin, in milliseconds from now; 0: until it is released. `newer`: of a pin. */
  readonly until: number | 'newer'
  /** Which of the earlier contents, and how many stay. */
  readonly number: number
  /** What is wrong with the request. */
  readonly wrong?: 'aborted' | 'rejected' | 'unreadable' | 'form' | 'publisher' | 'nested'
  /** The process is killed before this call of the file system, or that fails, or another one does something before it. */
  readonly at: number
  readonly disturbed?: 'killed' | 'EIO' | 'ENOSPC' | Call | Deed
}

/** What another program does. `item` counts back in the pool of all that was ever at the path. */
export interface Deed {
  readonly do:
    'put' | 'bring' | 'restore' | 'mount' | 'copy' | 'drop' | 'forget' | 'thin' | 'edit' | 'aside' | 'back' | 'tear'
  readonly path: string
  readonly item: number
}

export type Step = Call | Deed | { readonly do: 'wait' | 'object' | 'sync' | 'reboot' | 'unmount' } | Cut
interface Cut {
  readonly do: 'cut'
  readonly seed: number
}

export type Life = readonly Step[]

/** Each as often as it is drawn. */
const deeds: readonly Deed['do'][] = [
  ...(['put', 'put', 'put', 'restore', 'restore', 'bring', 'mount', 'copy', 'drop', 'drop', 'forget', 'thin'] as const),
  ...(['edit', 'edit', 'aside', 'back', 'back', 'tear', 'tear'] as const),
]

/** Three that move to one another, one with a history, two forms more, and one inside another. */
const families = [
  ['a/p/h', 'b/p/h', 'c/p/h'],
  ['a/p/h', 'b/p/h'],
  ['a/p/t', 'a/p/t/h', 'b/p/t'],
  ['a/p/l', 'b/p/l'],
  ['a/p/h', 'a/p/f'],
  ['a/p/h', 'o/a/p/t'],
] as const

const bitsOf = (random: Random) => (one: number) => random.below(one) === 0

function drawCall(random: Random, paths: readonly string[], inner: boolean): Call {
  const oneIn = bitsOf(random)
  const path = random.pick(paths)
  const others = paths.filter((other) => other !== path)
  const call = oneIn(4)
    ? random.pick(rarer)
    : oneIn(2)
      ? random.pick(['replace', 'pass', 'pass'] as const)
      : random.pick(callNames)
  const isMoving = call === 'move' || call === 'batch' || (call === 'pass' && oneIn(3))
  const until = random.pick([0, 0, 0, 'newer', 3000] as const)
  return {
    ...{ do: 'call', call, path, content: random.below(4), until, at: 1 + random.below(random.pick([20, 60, 110])) },
    agent: oneIn(6) ? 'two' : 'one',
    release: oneIn(6),
    force: !oneIn(3),
    keepHold: oneIn(4),
    adopt: oneIn(4) ? random.pick([true, 'replace'] as const) : false,
    onDrop: oneIn(3) ? 'remove' : 'keep',
    number: random.below(3),
    ...(isMoving && others.length > 0 && { from: random.pick(others) }),
    ...(oneIn(10) && {
      wrong: random.pick(['aborted', 'rejected', 'unreadable', 'form', 'publisher', 'nested'] as const),
    }),
    ...(!inner && oneIn(3) && { disturbed: drawDisturbance(random, paths, path) }),
  }
}

function drawDisturbance(random: Random, paths: readonly string[], path: string): NonNullable<Call['disturbed']> {
  const kind = random.below(8)
  if (kind < 3) return 'killed'
  if (kind < 5) return random.pick(['EIO', 'ENOSPC'] as const)
  if (kind === 5) return { do: random.pick(['put', 'edit', 'drop', 'restore'] as const), path, item: random.below(4) }
  return drawCall(random, random.below(3) > 0 ? [path] : paths, true)
}

type Asked = Partial<Call> & Pick<Call, 'call' | 'path'>

/** What chance alone would come to too rarely: contents that were replaced, words in force, moves on the way, and calls that meet there. */
function* opening(random: Random, paths: readonly string[]): Generator<Asked> {
  const path = random.pick(paths)
  const others = paths.filter((other) => other !== path)
  const [next = path, last = path] = others
  const content = random.below(4)
  const by = random.pick(['replace', 'pass'] as const)
  yield { call: by, path, content }
  const story = random.below(9)
  if (story < 5) yield { call: 'replace', path, content: (content + 1) % 4 }
  if (story < 2) yield { call: 'rollback', path, number: 0, disturbed: 'killed', at: 60 + random.below(140) }
  if (story === 2) yield { call: 'rollback', path, number: 0 }
  if (story === 2) yield { call: 'remove', path, release: false }
  if (story === 3)
    yield { call: random.pick(['hold', 'rollback', 'letGo', 'release'] as const), path, ...meeting(random, path) }
  if (story === 4) yield { call: 'takeAway', path, disturbed: 'EIO', at: 20 + random.below(100) }
  if (story === 5) yield { call: 'hold', path, ...meeting(random, path) }
  if (story > 5 && others.length > 0) {
    yield { call: 'pass', path: next, from: path, until: 3000 }
    if (story === 6) yield { call: 'replace', path, content: (content + 1) % 4 }
    if (story === 6) yield { call: 'rollback', path, number: 0, until: 0 }
    else yield { call: 'pass', path: last, from: next, until: random.pick([0, 3000] as const) }
  }
}

/** Another one publishes before one of the first calls, where most is read. */
function meeting(random: Random, path: string): Pick<Call, 'disturbed' | 'at'> {
  const other = plain(random, { call: 'replace', path, release: false, number: random.below(2) })
  return { disturbed: other, at: 1 + random.below(random.pick([16, 40])) }
}

/** With nothing that refuses it, or comes between. */
function plain(random: Random, asked: Asked): Call {
  const { disturbed: _, wrong: __, from: ___, ...drawn } = drawCall(random, [asked.path], true)
  return { ...drawn, force: true, release: false, keepHold: false, adopt: false, agent: 'one', until: 0, ...asked }
}

export function drawLife(random: Random): Life {
  const paths = random.pick(families)
  const steps: Step[] = [...opening(random, paths)].map((asked) => plain(random, asked))
  const length = steps.length + random.below(8)
  while (steps.length < length) {
    const kind = random.below(20)
    if (kind < 11) steps.push(drawCall(random, paths, false))
    else if (kind < 16) steps.push({ do: random.pick(deeds), path: random.pick(paths), item: random.below(5) })
    else if (kind < 17) steps.push({ do: random.pick(['wait', 'sync', 'unmount'] as const) })
    else if (kind < 18) steps.push({ do: 'object' })
    else if (kind < 19) steps.push({ do: 'reboot' })
    else steps.push({ do: 'cut', seed: random.below(1000) })
  }
  return steps.filter((step) => !('from' in step) || kindOf(step.path) !== 'file')
}

/** Lives that are a little shorter or plainer, in the order in which to try them. */
export function* plainer(life: Life): Generator<Life> {
  for (const index of life.keys()) yield life.toSpliced(index, 1)
  for (const [index, step] of life.entries()) {
    if (step.do !== 'call') continue
    const { disturbed, wrong, from, ...rest } = step
    if (disturbed) yield life.with(index, { ...rest, ...(wrong && { wrong }), ...(from !== undefined && { from }) })
    if (wrong) yield life.with(index, { ...rest, ...(disturbed && { disturbed }), ...(from !== undefined && { from }) })
    if (from !== undefined)
      yield life.with(index, { ...rest, ...(disturbed && { disturbed }), ...(wrong && { wrong }) })
    for (const field of ['release', 'keepHold', 'adopt'] as const)
      if (step[field] !== false) yield life.with(index, { ...step, [field]: false })
  }
}

/** A step in one line, for people; as JSON it can be played again. */
export function describedStep(step: Step): string {
  if (step.do === 'cut') return 'the power is cut'
  if (step.do !== 'call') return 'path' in step ? `${step.do} ${step.path}, ${step.item} back in its pool` : step.do
  const { call, path, from, disturbed, at, wrong, release, force, keepHold, adopt, content, agent, until, number } =
    step
  const flags = [
    ...(call === 'replace' || call === 'batch' ? [`content ${content}`] : []),
    ...(call === 'pass' ? [`agent ${agent}`] : []),
    ...(call === 'hold' || call === 'rollback' ? [`until ${until}`] : []),
    ...(call === 'prune' || call === 'rollback' ? [`number ${number}`] : []),
    ...(from === undefined ? [] : [`from ${from}`]),
    ...Object.entries({ release, force, keepHold, adopt }).flatMap(([flag, on]) =>
      on === false ? [] : [`${flag} ${on}`],
    ),
    ...(wrong ? [`wrong: ${wrong}`] : []),
  ]
  const during =
    disturbed === undefined
      ? ''
      : `; before call ${at} ${typeof disturbed === 'string' ? disturbed : describedStep(disturbed)}`
  return `${call} ${path} (${flags.join(', ')})${during}`
}
