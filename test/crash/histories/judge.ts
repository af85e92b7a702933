/** What the program promises, asked of what can be seen before and after a call. After a power cut: judge-cut.ts. */
import { OverlappingTargets } from '../../../src/durable/errors.js'
import type { PublishOutcome } from '../../../src/durable/publish/publish.js'
import {
  contentOf,
  expectedTexts,
  generationsKept,
  keepsHistory,
  kindOf,
  linkFault,
  visibleText,
  visibleTree,
} from './contents.js'
import type { Publication } from './operations.js'
import { textOf } from '../judge/directory.js'
import { faultOfAnswer } from '../judge/answers.js'
import { leftBeside } from '../judge/leftovers.js'
import { type NameBeside, nameBeside, ownPrefix } from '../judge/names.js'
import {
  below,
  isAtOrAbove,
  nameOf,
  parentOf,
  resolved,
  resolvedOrMade,
  type Seen,
  type Snapshot,
  under,
} from './snapshot.js'

/** Of one target. */
export type CallOutcome =
  PublishOutcome | { readonly outcome: 'removed' | 'rolledBack' | 'moved' | 'waits' | 'unchanged' }

/** What a call answered. */
export interface Answer {
  readonly outcomes: readonly CallOutcome[]
  /** Its log, as one text. */
  readonly told: string
  /** Instead of an answer: it rejected, which only malformed requests may do. */
  readonly rejected?: Error | undefined
  /** Once another program had come between, where one did. */
  readonly meanwhile?: Snapshot | undefined
}

/** Reasons for which a target may be left alone. */
const refusals = new Set(['TargetForeign', 'TargetUnfit', 'AdoptionPending', 'AdoptionRefused'])

/** What could be seen before a call, once another program had come between, and after it. */
export interface Views {
  readonly before: Snapshot
  readonly meanwhile: Snapshot
  readonly after: Snapshot
}

/** The faults of a call's answer. */
export function faultsOfCall(publication: Publication, views: Views, answer: Answer): string[] {
  const { targets, content } = publication
  const { before, after } = views
  const beside = [...faultsBeside(publication, views), ...lostMeanwhile(publication, views)]
  if (content === 'moved') return [...faultsOfMove(publication, views, answer), ...beside]
  if (answer.rejected) {
    return answer.rejected instanceof OverlappingTargets ? beside : [`rejects: ${answer.rejected.stack}`]
  }
  const faults = targets.flatMap((target, index) => {
    const outcome = answer.outcomes[index]
    if (outcome === undefined) return [`${target}: no answer`]
    if ('error' in outcome) return faultsOfError(target, publication, views, outcome.error)
    // Unchanged content at its reading may have changed since.
    if (outcome.outcome === 'unchanged' && publication.meanwhile) return []
    const text = visibleText(after, target)
    const isNew = expectedTexts(target, content).includes(text)
    const found = [faultOfAnswer(outcome, { isNew, isOld: visibleText(before, target) === text, shown: `\n${text}` })]
    if (!publication.meanwhile) found.push(listFault(before, after, target))
    if (publication.adopting && outcome.outcome === 'replaced')
      found.push(adoptedFault(after, target, adopted(before, target)))
    found.push(linkFault(after, target, content), leftoverFault(target, after, answer.told, content !== 'none'))
    return found.flatMap((fault) => (fault === undefined ? [] : [`${target}: ${fault}`]))
  })
  return [...faults, ...beside]
}

/** With any answer, the moving content is at one of the two paths, and whole. */
function faultsOfMove({ targets }: Publication, { before, after }: Views, answer: Answer): string[] {
  const [to = '', from = ''] = targets
  const [outcome] = answer.outcomes
  if (outcome === undefined) return [`${from}: no answer`]
  const [newBefore, oldBefore] = [visibleText(before, to), visibleText(before, from)]
  const [newText, oldText] = [visibleText(after, to), visibleText(after, from)]
  const faults: (string | undefined)[] = []
  if ('error' in outcome) {
    const { reason, code, message, published } = outcome.error
    // In a directory that was removed under a mount of it, nothing can be made.
    const isGone = code === 'ENOENT' && !published
    if (!refusals.has(reason) && reason !== 'RolledBack' && !isGone)
      faults.push(`fails with ${code}, ${reason}: ${message}`)
  } else if (outcome.outcome === 'unchanged' && !hasRecord(before, from)) {
    // The move is over. New content at the old path since then is another program's, even where it was the new path's before.
    if (oldText !== oldBefore || newText !== newBefore) faults.push('says unchanged, and was not the same')
  } else if (outcome.outcome !== 'waits') {
    if (oldText !== '') faults.push(`says ${outcome.outcome}, and holds:\n${oldText}`)
    if (newText === '') faults.push(`says ${outcome.outcome}, and ${to} holds nothing`)
    if (outcome.outcome === 'unchanged' && newText !== newBefore) faults.push('says unchanged, and was not the same')
    // At the new path, older records that may name staged content stay until the next publication.
    if (oldBefore !== '') faults.push(leftoverFault(from, after, answer.told, false))
  }
  if (![newBefore, oldBefore].includes(newText)) faults.push(`moves, and ${to} holds:\n${newText}`)
  if (!['', oldBefore, newText].includes(oldText)) faults.push(`moves, and holds:\n${oldText}`)
  if (oldText === '' && oldBefore !== '' && newText === '') faults.push(`moves, and ${to} holds nothing`)
  return faults.flatMap((fault) => (fault === undefined ? [] : [`${from}: ${fault}`]))
}

/** The content that an adoption has to keep, as one text: a foreign directory. undefined: none. */
function adopted(before: Snapshot, target: string): string | undefined {
  const at = resolved(before, target)
  if (at === undefined || before.get(at)?.type !== 'directory') return undefined
  const isPublished = hasRecord(before, at)
  const isEmpty = ![...before.keys()].some((path) => parentOf(path) === at)
  return isPublished || isEmpty ? undefined : visibleText(before, target)
}

/** Whether a publication of this target left a record. */
function hasRecord(snapshot: Snapshot, target: string): boolean {
  const prefix = ownPrefix(resolved(snapshot, target) ?? target)
  return [...snapshot.keys()].some((path) => isRecord(path) && path.startsWith(prefix))
}

/** What adoptions have kept of the target: the contents 0 of its history. */
function takenOver(snapshot: Snapshot, target: string): string[] {
  const prefix = `${ownPrefix(resolved(snapshot, target) ?? target)}.0-`
  return [...snapshot.keys()]
    .filter((path) => path.startsWith(prefix) && nameOf(path) === nameOf(target))
    .map((path) => textOf(below(snapshot, path)))
}

/**
 * Whether a rollback may lead to what an adoption took over as another program had left it. It is right to, and to none of the contents that
 * the judges know.
 */
export function mayLeadElsewhere({ content, targets }: Publication, now: Snapshot): boolean {
  const isElsewhere = (target: string): boolean =>
    takenOver(now, target).some((text) => contentOf(target, text) === undefined)
  return content === 'earlier' && targets.some(isElsewhere)
}

function adoptedFault(after: Snapshot, target: string, kept: string | undefined): string | undefined {
  return kept === undefined || takenOver(after, target).includes(kept)
    ? undefined
    : `has taken over what was there, and does not keep it:\n${kept}`
}

/**
 * An access list stays with its path, and an entry without one gets none. What a former owner of the entry may have set does not stay; of an
 * owner who is to own it again it may stay, or not: only the record says who has made the entry.
 */
function listFault(before: Snapshot, after: Snapshot, target: string): string | undefined {
  // The first content in the form of links is a directory that has no older one: its list is what it inherits.
  if (kindOf(target) === 'links' && !before.has(`${resolved(before, target)}/..data`)) return undefined
  const then = visibleTree(before, target)
  const now = visibleTree(after, target)
  for (const [path, { type, lists, uid }] of now) {
    const old = then.get(path)
    if (old?.type !== type) continue
    const isFormer = old.uid !== 0 && old.uid !== uid
    const inherits = path !== '' && now.get(parentOf(path))?.lists.includes('default') === true
    if (isFormer && lists !== '' && !inherits) return `${path || 'it'} keeps the list of a former owner: '${lists}'`
    if (isFormer || old.lists === lists || (old.uid !== 0 && lists === '')) continue
    return `${path || 'it'} had the access list '${old.lists}', and has '${lists}'`
  }
  return undefined
}

function faultsOfError(
  target: string,
  { content, meanwhile, targets }: Publication,
  { before, meanwhile: between, after }: Views,
  { published, reason, message, code }: Extract<PublishOutcome, { error: unknown }>['error'],
): string[] {
  // After a move of the target itself, its path proves nothing.
  if (meanwhile?.do === 'rename') return []
  const faults: string[] = []
  // No process can make an entry in a removed directory under a mount.
  const isGone = code === 'ENOENT' && !published
  if (!refusals.has(reason) && !isGone) faults.push(`fails with ${code}, ${reason}: ${message}`)
  // A mount at the target may hold another target of the same call, which is published.
  const isAnothers = areaOf(
    targets.filter((other) => other !== target),
    [before, between, after],
  )
  const left = (snapshot: Snapshot): string => {
    const path = resolved(snapshot, target) ?? target
    return textOf(new Map([...visibleTree(snapshot, target)].filter(([name]) => !isAnothers(under(path, name)))))
  }
  const text = visibleText(after, target)
  const isOld = [before, between].map(left).includes(left(after))
  const found = { isNew: expectedTexts(target, content).includes(text), isOld, shown: `\n${text}` }
  const untrue = faultOfAnswer({ error: { published, message } }, found)
  if (untrue !== undefined) faults.push(untrue)
  if (!published && content !== 'none') faults.push(...lostRecords(target, before, after))
  return faults.map((fault) => `${target}: ${fault}`)
}

/** A call that says it published nothing leaves every reader's answer: each record says the same, or more. */
function lostRecords(target: string, before: Snapshot, after: Snapshot): string[] {
  const prefix = ownPrefix(resolved(before, target) ?? target)
  return [...before].flatMap(([path, { data }]) => {
    if (!isRecord(path) || !path.startsWith(prefix) || after.get(path)?.data.startsWith(data) === true) return []
    return [`says published: false, and ${nameOf(path)} ${after.has(path) ? 'says less' : 'is gone'}`]
  })
}

/** What another program wrote after the target had been read is somewhere. */
function lostMeanwhile({ meanwhile }: Publication, views: Views): string[] {
  if (meanwhile?.do !== 'write' || views.meanwhile === views.before) return []
  const holds = (snapshot: Snapshot): boolean =>
    [...snapshot.values()].some(({ data }) => data.endsWith(meanwhile.text))
  if (!holds(views.meanwhile) || holds(views.after)) return []
  return [`${meanwhile.path}: what another program wrote there meanwhile is lost`]
}

const isRecord = (path: string): boolean => nameBeside(nameOf(path)).kind === 'record'

/** One lock, and a record of the published content; the log has named any other file of ours. */
function leftoverFault(target: string, after: Snapshot, told: string, isThere: boolean): string | undefined {
  const at = resolved(after, target) ?? target
  const names = [...after.keys()].flatMap((path) => (parentOf(path) === parentOf(at) ? [nameOf(path)] : []))
  // A rollback that may have to be repeated keeps one more than was asked for.
  const generations = isThere ? (keepsHistory(target) ? generationsKept + 1 : 0) + 1 : 0
  const isExcused = ({ name, kind }: NameBeside): boolean =>
    kind === 'foreign' || kind === 'other' || told.includes(name)
  const fault = leftBeside(at, names, { records: [isThere ? 1 : 0], generations, isExcused })
  return fault && `${fault}, and it says ${told || 'nothing'}`
}

/** Other programs' files are unchanged, by each path that leads to them. */
function faultsBeside(
  { targets, meanwhile }: Publication,
  { before: first, meanwhile: before, after }: Views,
): string[] {
  const resolvedFirst = targets.flatMap((target) => [target, resolvedOrMade(first, target)])
  const moved =
    meanwhile?.do === 'rename' ? resolvedFirst.map((target) => target.replace(meanwhile.from, meanwhile.to)) : []
  const isOurs = areaOf([...targets, ...moved], [first, before, after])
  const faults: string[] = []
  // A record with a second name is still ours, and gets appended lines.
  const records = new Set([...before].filter(([path]) => isRecord(path)).map(([, { identity }]) => identity))
  for (const [path, seen] of before) {
    if (isOurs(path) || records.has(seen.identity)) continue
    const now = after.get(path)
    if (now === undefined) faults.push(`${path}, which belongs to somebody else, is gone`)
    else if (differs(seen, now)) faults.push(`${path}, which belongs to somebody else, was changed`)
  }
  const madeAbove = new Set(targets.flatMap((target) => above(after, target)))
  for (const path of after.keys()) {
    if (before.has(path) || isOurs(path)) continue
    if (madeAbove.has(after.get(path)?.identity)) continue
    faults.push(`${path} was left behind`)
  }
  return faults
}

/** The directories above a target, by their identities: each may have several paths. */
function above(snapshot: Snapshot, target: string): (string | undefined)[] {
  const found: (string | undefined)[] = []
  for (let path = parentOf(resolved(snapshot, target) ?? ''); path !== ''; path = parentOf(path)) {
    found.push(snapshot.get(path)?.identity)
  }
  return found
}

function differs(one: Seen, other: Seen): boolean {
  const sameMode = one.type === 'symlink' || one.mode === other.mode
  const same =
    sameMode && one.lists === other.lists && one.type === other.type && one.uid === other.uid && one.gid === other.gid
  return !same || one.data !== other.data || one.identity !== other.identity
}

/** The targets with their entries, and the program's own names beside them, by every path that leads there. */
function areaOf(targets: readonly string[], snapshots: readonly Snapshot[]): (path: string) => boolean {
  const prefixes: { at: string; own: string }[] = []
  for (const target of targets) {
    // By the links of each of them: another program may have moved one since.
    const paths = new Set(snapshots.map((snapshot) => parentOf(resolvedOrMade(snapshot, target))))
    const parents = snapshots.flatMap((snapshot) => [...paths].map((path) => snapshot.get(path)?.identity))
    for (const [path, { identity, type }] of snapshots.flatMap((snapshot) => [...snapshot])) {
      if (type !== 'directory' || !parents.includes(identity)) continue
      const at = under(path, nameOf(target))
      prefixes.push({ at, own: ownPrefix(at) })
    }
  }
  return (path) => prefixes.some(({ at, own }) => isAtOrAbove(at, path) || isWithinOwn(path, own))
}

function isWithinOwn(path: string, prefix: string): boolean {
  if (!path.startsWith(prefix)) return false
  const [ending = ''] = path.slice(prefix.length).split('/', 1)
  return nameBeside(nameOf(prefix) + ending).kind !== 'other'
}
