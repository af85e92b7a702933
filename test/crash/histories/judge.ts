/** What the program promises, asked of what can be seen before and after a call, and after a power cut. */
import { OverlappingTargets } from '../../../src/durable/errors.js'
import type { PublishOutcome } from '../../../src/durable/publish.js'
import { expectedText, hasPartOf, kindOf, linkFault, visibleText } from './contents.js'
import type { Publication } from './operations.js'
import { ownPrefix } from './places.js'
import { isAtOrAbove, nameOf, parentOf, resolved, type Seen, type Snapshot, under } from './snapshot.js'

/** What a call answered. */
export interface Answer {
  readonly outcomes: readonly PublishOutcome[]
  /** What it logged, as one text. */
  readonly told: string
  /** Instead of an answer: it rejected, which only requests that are wrong themselves may do. */
  readonly rejected?: Error | undefined
}

/** Reasons for which a target may be left alone. */
const refusals = new Set(['TargetForeign', 'TargetUnfit'])

/** What is wrong with the answer of a call that nothing disturbed. */
export function faultsOfCall(publication: Publication, before: Snapshot, after: Snapshot, answer: Answer): string[] {
  const { targets, content } = publication
  if (answer.rejected) {
    return answer.rejected instanceof OverlappingTargets
      ? faultsBeside(publication, before, after)
      : [`rejects: ${answer.rejected.stack}`]
  }
  const faults = targets.flatMap((target, index) => {
    const outcome = answer.outcomes[index]
    if (outcome === undefined) return [`${target}: no answer`]
    if ('error' in outcome) return faultsOfError(target, content, before, after, outcome.error)
    const text = visibleText(after, target)
    const found: (string | undefined)[] = []
    if (text !== expectedText(target, content)) found.push(`says ${outcome.outcome}, and holds:\n${text}`)
    if (outcome.outcome === 'unchanged' && visibleText(before, target) !== text)
      found.push('says unchanged, and was not the same')
    found.push(linkFault(after, target, content), leftoverFault(target, after, answer.told))
    return found.flatMap((fault) => (fault === undefined ? [] : [`${target}: ${fault}`]))
  })
  return [...faults, ...faultsBeside(publication, before, after)]
}

function faultsOfError(
  target: string,
  content: number,
  before: Snapshot,
  after: Snapshot,
  { published, reason, message, code }: Extract<PublishOutcome, { error: unknown }>['error'],
): string[] {
  const faults: string[] = []
  if (!refusals.has(reason)) faults.push(`fails with ${code}, ${reason}: ${message}`)
  const text = visibleText(after, target)
  const expected = published ? expectedText(target, content) : visibleText(before, target)
  if (text !== expected) faults.push(`says published: ${published}, and holds:\n${text}`)
  return faults.map((fault) => `${target}: ${fault}`)
}

/** The endings of the names that the program keeps beside a target. */
const ownEnding = /^(\.lock|\.[1-9][0-9]*|-[0-9a-f]{16}(\.foreign)?)$/

/** One lock and one record; what else has a name of ours has been told. */
function leftoverFault(target: string, after: Snapshot, told: string): string | undefined {
  const at = resolved(after, target) ?? target
  const prefix = ownPrefix(at)
  const own = [...after.keys()].filter((path) => parentOf(path) === parentOf(at) && isOwn(path, prefix))
  const endings = own.map((path) => path.slice(prefix.length))
  const records = endings.filter((ending) => /^\.[1-9][0-9]*$/.test(ending))
  const rest = endings.filter((ending) => ending !== '.lock' && !records.includes(ending))
  const untold = rest.filter((ending) => !ending.endsWith('.foreign') && !told.includes(nameOf(prefix + ending)))
  if (records.length !== 1) return `has ${records.length} records: ${told}`
  return untold.length > 0 ? `leaves ${untold.join(', ')}, and does not say so` : undefined
}

/** What belongs to others is as it was: by whatever path it can be reached. */
function faultsBeside({ targets }: Publication, before: Snapshot, after: Snapshot): string[] {
  const isOurs = areaOf(targets, before, after)
  const faults: string[] = []
  for (const [path, seen] of before) {
    if (isOurs(path)) continue
    const now = after.get(path)
    if (now === undefined) faults.push(`${path}, which belongs to somebody else, is gone`)
    else if (differs(seen, now)) faults.push(`${path}, which belongs to somebody else, was changed`)
  }
  for (const path of after.keys()) {
    if (before.has(path) || isOurs(path)) continue
    if (targets.some((target) => isAtOrAbove(path, resolved(after, target) ?? target))) continue
    faults.push(`${path} was left behind`)
  }
  return faults
}

function differs(one: Seen, other: Seen): boolean {
  const sameMode = one.type === 'symlink' || one.mode === other.mode
  const same = sameMode && one.type === other.type && one.uid === other.uid && one.gid === other.gid
  return !same || one.data !== other.data || one.identity !== other.identity
}

/** The targets with what is in them, and the program's own names beside them, by every path that leads there. */
function areaOf(targets: readonly string[], before: Snapshot, after: Snapshot): (path: string) => boolean {
  const prefixes: { at: string; own: string }[] = []
  for (const target of targets) {
    for (const snapshot of [before, after]) {
      const real = resolved(snapshot, target)
      if (real === undefined) continue
      const parent = snapshot.get(parentOf(real))
      for (const [path, { identity, type }] of snapshot) {
        if (type !== 'directory' || identity !== parent?.identity) continue
        const at = under(path, nameOf(target))
        prefixes.push({ at, own: ownPrefix(at) })
      }
    }
  }
  return (path) => prefixes.some(({ at, own }) => isAtOrAbove(at, path) || isWithinOwn(path, own))
}

function isOwn(path: string, prefix: string): boolean {
  return path.startsWith(prefix) && ownEnding.test(path.slice(prefix.length))
}

function isWithinOwn(path: string, prefix: string): boolean {
  return path.startsWith(prefix) && ownEnding.test(path.slice(prefix.length).split('/', 1)[0] ?? '')
}

/** What a power cut may have left at a target. */
export interface Allowed {
  readonly target: string
  /** Contents that it may hold then, as texts ('' for nothing); undefined: whatever was there was not durable, and may be torn. */
  readonly texts: ReadonlySet<string> | undefined
  /** What was being published; undefined: nothing. */
  readonly content: number | undefined
  /** The new content has been visible, so that what is above the target was synced before. */
  readonly wasVisible: boolean
  /** What was there when the call began, and what was durable before, which others may have torn since. */
  readonly before: string
  readonly earlier: readonly string[]
}

export function faultAfterCut(snapshot: Snapshot, allowed: Allowed): string | undefined {
  const { target, texts, content, wasVisible, before, earlier } = allowed
  const text = visibleText(snapshot, target)
  if (texts?.has(text) === true) return undefined
  if (texts !== undefined) {
    return `after the power cut ${target} holds none of what it may hold:\n${text || 'nothing'}\nbut one of these:\n${[...texts].map((one) => one || 'nothing').join('\nor\n')}`
  }
  if (content === undefined || text === expectedText(target, content)) return undefined
  if (wasVisible && text === '' && before !== '')
    return `after the power cut ${target} is missing, though the new content was visible there`
  if (kindOf(target) === 'file' || [before, ...earlier].some((one) => hasPartOf(one, content))) return undefined
  return hasPartOf(text, content) ? `after the power cut ${target} is torn or mixed:\n${text}` : undefined
}
