/** What the program promises of each call of a life, asked of what the readers say before and after it. */
import { DurableWriteError, OverlappingTargets } from '../../../src/durable/errors.js'
import type { Hold, PastContent, Pin } from '../../../src/durable/types.js'
import { kindOf } from './contents.js'
import { differenceOf, emptyDirectory, type Facts, saidOf } from './facts.js'
import type { Call } from './life.js'
import { type Answered, contentOfVersion, filesOf } from './life-calls.js'
import { touchesRecords } from './pool.js'
import { isAtOrAbove } from './snapshot.js'

export type AllFacts = ReadonlyMap<string, Facts>

export interface Judged {
  readonly call: Call
  /** undefined: it was killed. */
  readonly answer: Answered | undefined
  readonly before: AllFacts
  /** Where another one came between: what was there before, and afterwards. */
  readonly between?: { readonly from: AllFacts; readonly to: AllFacts } | undefined
  readonly after: AllFacts
  /** Of the source. */
  readonly version: number
  /** Nobody but calls that have answered has had to do with the record of the path. */
  readonly sure: boolean
  readonly isSure: (path: string) => boolean
  /** Absolute paths of the life's own. */
  readonly inLife: (path: string) => string
}

/** What a program finds at a path once this content is published there. */
export function textFor(path: string, content: number): string {
  if (kindOf(path) === 'file') return `: file ${content}\n`
  return Object.entries(filesOf(content))
    .map(([name, data]) => `${name}: ${data}`)
    .sort()
    .join('')
}

const publishing: ReadonlySet<string> = new Set(['replace', 'batch', 'pass', 'rollback'])

/** Whether a call is about this path: by its name, as its old path, or as a second target. */
function partOf({ call, path, from }: Call, at: string): 'target' | 'old' | 'none' {
  if (at === path || (call === 'batch' && at === from)) return 'target'
  return at === from && (call === 'pass' || call === 'move') ? 'old' : 'none'
}

type Kept = 'hold' | 'pin' | 'generation' | 'record'

/** Whether a call may take such a thing from a path. */
function mayTake(call: Call, at: string, what: Kept, pin?: Pin): boolean {
  const part = partOf(call, at)
  const { call: name, release } = call
  if (part === 'none') return false
  if (part === 'old') return what === 'generation' || what === 'record'
  if (name === 'takeAway') return true
  if (what === 'record') return name === 'remove'
  if (what === 'generation') return publishing.has(name) || name === 'prune' || name === 'remove'
  if (name === 'release' || (release && (publishing.has(name) || name === 'remove'))) return true
  if (what === 'hold') return name === 'hold'
  return name === 'replace' || name === 'batch' || name === 'rollback' || (name === 'pass' && pin?.until === 'newer')
}

/** What has gone from one look to the next, which this call may not take. */
export function takenBy(
  call: Call,
  before: AllFacts,
  after: AllFacts,
  isSure: (path: string) => boolean,
): string | undefined {
  for (const [path, then] of before) {
    // A record that came with a copy of its directory is of no target.
    if (isBeside(call, path) && !isSure(path)) continue
    // What another program puts there in the last instant goes aside with all that is in it.
    if (isDeed(call.disturbed) && (isBeside(call, path) || disturbsRecords(call, path))) continue
    const now = after.get(path)
    if (now === undefined || Object.keys(now.failed).length + Object.keys(then.failed).length > 0) continue
    const was = then.publication
    if (was === undefined) continue
    const is = now.publication
    const gone = (what: Kept, pin?: Pin): boolean => !mayTake(call, path, what, pin)
    if (is === undefined && gone('record')) return `${path}: its record is gone`
    if (was.hold && !isSame(was.hold, is?.hold) && gone('hold')) return `${path}: its hold is gone`
    if (was.pin && !isSame(was.pin, is?.pin) && gone('pin', was.pin)) return `${path}: its pin is gone`
    const lost = then.past
      .slice(1)
      .find((one) => one.state === 'whole' && !now.past.some((other) => isSamePast(one, other)))
    if (lost && gone('generation')) return `${path}: its earlier content ${lost.sequence} is gone`
  }
  return undefined
}

function isSame(one: Hold | Pin, other: Hold | Pin | undefined): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

function isNotDamaged({ state }: PastContent): boolean {
  return state !== 'damaged'
}

function isSamePast(one: PastContent, other: PastContent): boolean {
  return one.sequence === other.sequence && one.digest === other.digest && other.state === 'whole'
}

function disturbsRecords({ disturbed }: Call, at: string): boolean {
  return typeof disturbed === 'object' && disturbed.path === at && touchesRecords.has(disturbed.do)
}

function isDeed(one: Call['disturbed']): boolean {
  return typeof one === 'object' && one.do !== 'call'
}

/** Whether one of them is in the other: then a change of one is a change of the other. */
function isNested(one: string, other: string): boolean {
  return one !== other && (isAtOrAbove(one, other) || isAtOrAbove(other, one))
}

function isBeside({ path, from }: Call, at: string): boolean {
  return isNested(at, path) || (from !== undefined && isNested(at, from))
}

/** Between two looks readers are told the same of all paths that are not `except`. */
function changedBetween(before: AllFacts, after: AllFacts, except: (path: string) => boolean, isMoving: boolean) {
  for (const [path, then] of before) {
    const now = after.get(path)
    if (now === undefined || except(path)) continue
    // A directory above a target is made before the target is refused.
    const isMadeAbove = then.text === '' && now.text === emptyDirectory && then.publication === undefined
    if (then.text !== now.text && !isMadeAbove) return `${path} held\n${then.text}and holds\n${now.text}`
    const other = differenceOf(saidOf(then, isMoving), saidOf(now, isMoving))
    if (other !== undefined) return `of ${path} readers are told something else: ${other}`
  }
  return undefined
}

/** The first thing that is wrong with what a call has answered and left. */
export function faultOfLife(judged: Judged): string | undefined {
  const { call, answer, before, between, after } = judged
  const isOthers = (path: string): boolean => partOf(call, path) !== 'none' || isBeside(call, path)
  const spans = between
    ? ([
        [before, between.from],
        [settled(judged), after],
      ] as const)
    : ([[before, after]] as const)
  for (const [then, now] of spans) {
    const changed = changedBetween(then, now, isOthers, false)
    if (changed !== undefined) return `it is not about this path: ${changed}`
    const taken = takenBy(call, then, now, judged.isSure)
    if (taken !== undefined) return `may not take this: ${taken}`
  }
  return faultOfMove(judged) ?? (answer === undefined ? faultOfKilled(judged) : faultOfAnswer(judged, answer))
}

/**
 * What the rest of a call starts from. The record of a publication that is under way may go with it: no look before has it, and readers
 * believe it as soon as another program changes the target.
 */
function settled({ call: { disturbed }, before, between }: Judged): AllFacts {
  if (!between) return before
  const { from, to } = between
  const isUnderWay = (path: string): boolean => {
    const sequence = to.get(path)?.sequence
    return sequence !== before.get(path)?.sequence && (isDeed(disturbed) || sequence === from.get(path)?.sequence)
  }
  return new Map([...to].filter(([path]) => !isUnderWay(path)))
}

/** The old path goes once the new one holds what it held; and what still moves to it is not left behind. */
function faultOfMove({ call, between, before, after, inLife }: Judged): string | undefined {
  const { from, path } = call
  if (from === undefined || (call.call !== 'pass' && call.call !== 'move')) return undefined
  const [old, now, then] = [after.get(from), after.get(path), (between?.to ?? before).get(from)]
  if (then?.publication === undefined || old === undefined || old.publication !== undefined) return undefined
  if (old.text === '' && then.text !== '' && now?.text === '') return `${from} is gone, and ${path} holds nothing`
  const { relocation } = then.publication
  const first = relocation && relocation.state !== 'done' ? inLife(relocation.from) : undefined
  const stranded = first !== undefined && first !== path && after.get(first)?.publication?.movedTo !== undefined
  return stranded ? `${first} moves to ${from}, which is gone: nothing brings ${first} up to date any more` : undefined
}

function faultOfKilled({ call, between, before, after, version, sure }: Judged): string | undefined {
  if (between || !sure) return undefined
  const { path } = call
  const [then, now] = [before.get(path), after.get(path)]
  const expected = expectedTexts(call, version, then)
  if (then === undefined || now === undefined || [then.text, ...expected].includes(now.text)) return undefined
  // What a rollout takes away has a name that no reader has: it may go entry by entry.
  if (call.call === 'takeAway' && (now.text === emptyDirectory || isPart(now.text, then.text))) return undefined
  return `killed, and ${path} holds neither what it held nor what was asked for:\n${now.text}`
}

/** Whether the one is the other without some of it. */
function isPart(part: string, whole: string): boolean {
  let found = 0
  for (let at = 0; found < part.length && at < whole.length; at++) if (whole[at] === part[found]) found += 1
  return found === part.length
}

function expectedTexts({ call, path, content }: Call, version: number, then: Facts | undefined): string[] {
  if (call === 'replace' || call === 'batch') return [textFor(path, content)]
  if (call === 'pass') return [textFor(path, contentOfVersion(version))]
  if (call === 'remove' || call === 'takeAway') return ['']
  return call === 'rollback' ? [0, 1, 2, 3].map((one) => textFor(path, one)) : then ? [then.text] : []
}

function faultOfAnswer(judged: Judged, answer: Answered): string | undefined {
  const { call, before, between, after } = judged
  const error = answer.error ?? answer.moveError
  if (error !== undefined) {
    const untrue = untrueRefusal(judged, error)
    if (untrue !== undefined) return untrue
  }
  if (answer.error === undefined) return between ? undefined : untrueAnswer(judged, answer)
  if ((error instanceof DurableWriteError && error.published) || answer.told !== '') return undefined
  const isMoving = call.call === 'pass' || call.call === 'move'
  // While it was under way, another one came: what had been changed until then may have been taken back.
  if (between && changedBetween(before, between.from, () => false, isMoving) !== undefined) return undefined
  const start = settled(judged)
  const holdsTheSame = (path: string, then: AllFacts): boolean => after.get(path)?.text === then.get(path)?.text
  // A batch may have published its other target, or thinned its history; a move's steps before the one that failed stay. An old record
  // that another program puts back in the instant before it is removed goes. A copy of a target, with its record, is no target: a
  // publication in it leaves its lock there.
  const except = (path: string): boolean =>
    (call.call === 'batch' && error instanceof DurableWriteError && !error.path.endsWith(`/${path}`)) ||
    (isMoving && path === call.from && holdsTheSame(path, before)) ||
    (path !== call.path && isAtOrAbove(path, call.path) && holdsTheSame(path, start)) ||
    (isDeed(call.disturbed) && disturbsRecords(call, path) && holdsTheSame(path, start))
  const changed = changedBetween(start, after, except, isMoving)
  return changed === undefined ? undefined : `rejects (${error?.message}), and ${changed}`
}

/** Reasons that a call may have by itself, each with what must be so. */
function untrueRefusal({ call, before, between, after, sure }: Judged, error: Error): string | undefined {
  if (error instanceof OverlappingTargets) return undefined
  if (!(error instanceof DurableWriteError)) {
    // A move gives up between two steps with the signal's reason.
    const isMoving = call.call === 'move' || call.call === 'pass'
    const gaveUp = isMoving && call.wrong === 'aborted' && error.name === 'AbortError'
    return gaveUp ? undefined : `a defect of the program: ${error.stack}`
  }
  const looks = [before, ...(between ? [between.from, between.to] : []), after]
  const publications = looks.flatMap((all) =>
    [call.path, call.from ?? call.path].map((path) => all.get(path)?.publication),
  )
  const { reason, code, message } = error
  const said = `${reason}, ${code}: ${message}`
  // A rollout alone comes to the trees that it takes away.
  const meets = between !== undefined && !isDeed(call.disturbed) && call.call !== 'takeAway'
  if (code === 'ABORT_ERR') {
    if (call.wrong !== 'aborted') return `nobody aborted it: ${said}`
    return error.published ? `aborted, and it has published: ${said}` : undefined
  }
  switch (reason as string) {
    case 'Held':
      return publications.some((one) => one?.hold) ? undefined : `says that it is held, and it is not: ${said}`
    case 'RolledBack':
      return publications.some((one) => one?.pin) ? undefined : `says that it is rolled back, and it is not: ${said}`
    case 'InUse':
      return `nobody uses it: ${said}`
    case 'Busy':
      return call.disturbed === undefined ? `nobody else publishes: ${said}` : undefined
    case 'AdoptionPending':
    case 'AdoptionRefused':
      return call.adopt === false ? `it is to adopt nothing: ${said}` : undefined
    case 'TargetForeign':
      return sure && isOurs(before.get(call.path), call) ? `it is its own, and says ${said}` : undefined
    case 'TargetUnfit':
      if (code === 'EBADMSG' && sure && meets && looks.every((all) => all.get(call.path)?.past.every(isNotDamaged)))
        return `no earlier content is damaged at any look: ${said}`
      // Another program exchanges the records one after the other, without the lock.
      return message.includes('has published nothing') &&
        !disturbsRecords(call, call.path) &&
        publications.every((one) => one !== undefined)
        ? `holdfast has published it at each look, and says ${said}`
        : undefined
    default:
      // Another publisher is no failing disk: the call waits, or is to be repeated.
      return (call.disturbed === undefined && call.wrong === undefined) ||
        (meets && call.wrong === undefined && reason === 'PublishFailed' && !isMeeting(code, call))
        ? `nothing failed: ${said}`
        : undefined
  }
}

/** Another publisher has the same target, or has published the directory that this one is in. */
function isMeeting(code: string, { path, disturbed }: Call): boolean {
  const isAbove = typeof disturbed === 'object' && disturbed.do === 'call' && isBeside(disturbed, path)
  return code === 'ESTALE' || code === 'EAGAIN' || (code === 'ENOENT' && isAbove)
}

/** What this agent has published last, whatever it holds now. */
function isOurs(then: Facts | undefined, call: Call): boolean {
  const { publication, kept } = then ?? {}
  if (call.call !== 'pass' || call.wrong || call.disturbed || call.from !== undefined || publication === undefined)
    return false
  return kept?.publisher === 'agent' && publication.letGo === undefined
}

/** An answer of true is read back. */
function untrueAnswer({ call, before, after, version, sure }: Judged, answer: Answered): string | undefined {
  const { path } = call
  const [then, now] = [before.get(path), after.get(path)]
  if (then === undefined || now === undefined) return undefined
  const is = now.publication
  for (const [index, { outcome, digest }] of answer.results.entries()) {
    const at = index === 0 ? path : (call.from ?? path)
    const found = after.get(at)?.publication
    if (found?.digest !== digest || found.actual !== digest || (!found.durable && answer.told === ''))
      return `says ${outcome} of ${at} with ${digest}; its record is of ${found?.digest}, it holds ${found?.actual}, durable: ${found?.durable}`
    if (outcome === 'unchanged' && before.get(at)?.text !== after.get(at)?.text)
      return `says unchanged, and ${at} has changed`
    if (outcome === 'created' && before.get(at)?.text !== '') return `says created, and ${at} was there`
  }
  switch (call.call) {
    case 'replace':
    case 'batch':
      if (now.text !== textFor(path, call.content)) return `has published ${call.content}, and there is\n${now.text}`
      return then.publication?.hold && call.keepHold && !call.release && !isSame(then.publication.hold, is?.hold)
        ? 'keeps no hold, and was to'
        : undefined
    case 'pass': {
      const isWaiting = is?.pin !== undefined || is?.letGo !== undefined
      if (answer.results.length === 0 && isWaiting) return undefined
      return now.text === textFor(path, contentOfVersion(version)) ? undefined : `is content, and there is\n${now.text}`
    }
    case 'rollback':
      if (is?.pin === undefined) return 'has rolled back, and nothing is pinned'
      return then.past.some(({ digest, state }) => state !== 'damaged' && digest === is.digest)
        ? undefined
        : 'has rolled back to what was never there'
    case 'hold': {
      const { hold } = answer.value as { hold: Hold }
      return isSame(hold, is?.hold) ? undefined : `holds, and readers say ${JSON.stringify(is?.hold)}`
    }
    case 'release':
      return now.hold === undefined ? undefined : `has released it, and readers say ${JSON.stringify(now.hold)}`
    case 'prune':
      return sure ? faultOfPrune(then, now, call.number, answer) : undefined
    case 'remove':
    case 'takeAway':
      return now.text === '' && is === undefined ? undefined : `is gone, and there is ${now.text || 'a record'}`
    case 'letGo':
      return answer.value !== true || is?.letGo ? undefined : 'has let it go, and readers do not say so'
    case 'hook':
      return answer.value !== true || is?.pendingHooks.length === 0
        ? undefined
        : 'the hook has run, and is still to run'
    case 'objects': {
      const [object] = Array.isArray(answer.value) ? (answer.value as { resourceVersion: string }[]) : []
      const same = object === undefined || is?.objects[0]?.resourceVersion === object.resourceVersion
      return same
        ? undefined
        : `has recorded ${object.resourceVersion}, and readers say ${is?.objects[0]?.resourceVersion}`
    }
    case 'endMove':
      return (is?.relocation ?? is?.movedTo) ? 'has ended the move, and readers tell of one' : undefined
    case 'move':
      return undefined
  }
}

/** A prune that cannot remove a content warns of it, and leaves it to the next call. */
function faultOfPrune(then: Facts, now: Facts, keep: number, { value, told }: Answered): string | undefined {
  const count = value as number
  const [had, has] = [then.past.length - 1, now.past.length - 1]
  if (had < 1) return undefined
  if (then.publication?.hold) return had === has ? undefined : 'has removed earlier contents of what is held'
  return (has <= keep || told !== '') && had - has <= count
    ? undefined
    : `has kept ${keep} at most, and ${has} of ${had} are there; it says that ${count} went`
}
