/*
 * The rules that hold in every played scene, for any steps: each rule says what it protects, and answers the call at which it is broken.
 * Rules ask the trace and the model disk; the judge of answers is in answers.ts.
 */
import { dirname, join } from 'node:path'
import { faultOfContent } from '../../crash/judge/contents.js'
import { isKind, nameBeside, ownPrefix } from '../../crash/judge/names.js'
import { find, textOf } from '../../crash/model/content.js'
import type { Inode } from '../../crash/model/inode.js'
import { deviceOf, type ModelDisk, rootInode } from '../../crash/model/model-disk.js'
import { powerCut } from '../../crash/model/power-cut.js'
import { errorsIn, faultOfAnswer, hasWarned, isLie } from './judge-answers.js'
import type { Played } from './play.js'
import { beyondLinksOfOthers } from './links.js'
import { differencesOf, lastingOf, saidOf, targetsOn, viewOf, visibleInodes } from './readers.js'
import { type Call, isChange, isOnDisk } from './recorder.js'

/** Where a rule is broken: at this call, or by the state of the disk at the end. */
export interface Breach {
  readonly at?: Call | undefined
  readonly what: string
}

type Check = (played: Played) => Breach | undefined | Promise<Breach | undefined>

const isOwnName = (name: string): boolean => name.startsWith('.holdfast-')
const nameIn = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
const isRecord = (name: string | undefined): boolean => name !== undefined && nameBeside(name).kind === 'record'
/** A lock stays for ever, and readers see nothing of it. */
const hasChanged = (call: Call): boolean => isChange(call) && isDone(call) && call.name !== 'openLock'

const isDone = ({ failed }: Call): boolean => failed === undefined

/** A rename that readers see. */
const isVisibleRename = ({ name, to, path }: Call): boolean =>
  name === 'rename' && to !== undefined && !(isOwnName(to.entry) && isOwnName(nameIn(path)))

/** The directory whose sync makes a change of a name durable: of a rename its target directory. */
const directoryOf = (call: Call): number | undefined => (call.name === 'rename' ? call.on.at(-1) : call.on[0])

const syncOf = (calls: readonly Call[], inode: number | undefined, from: number, to: number): Call | undefined =>
  calls
    .slice(from, to)
    .find((call) => call.name === 'sync' && isDone(call) && inode !== undefined && call.on.includes(inode))

const descriptorsClosed: Check = ({ open }) => {
  return open === 0 ? undefined : { what: `${open} descriptors are open after the answer` }
}

/** The locks of all targets that a path can belong to: of each part of it, and of the target whose names holdfast keeps beside it. */
function locksOf(path: string): string[] {
  const locks: string[] = []
  for (let at = path; at !== '/' && at !== ''; at = dirname(at)) {
    const { prefix } = nameBeside(nameIn(at))
    locks.push(`${prefix === undefined ? ownPrefix(at) : join(dirname(at), prefix)}.lock`)
  }
  return locks
}

/** holdfast makes, or opens up, a directory above a target before there is a place for the lock. */
const isAncestor = ({ name, path }: Call): boolean =>
  (name === 'createDirectory' || name === 'setMode') && !path.split('/').some((part) => isOwnName(part))

const lockedAtEachChange: Check = ({ calls }) => {
  const held = new Map<number, string>()
  for (const call of calls) {
    if (call.name === 'tryLock' && isDone(call) && call.descriptor !== undefined) held.set(call.descriptor, call.path)
    if (call.name === 'close' && call.descriptor !== undefined) held.delete(call.descriptor)
    if (!isChange(call) || call.name === 'openLock' || isAncestor(call)) continue
    const locks = new Set(held.values())
    // A record is locked by itself where only a line is added to it.
    if (locks.has(call.path) || locksOf(call.path).some((lock) => locks.has(lock))) continue
    return { at: call, what: `is made without a lock of ${call.path}; held: ${[...locks].join(', ') || 'none'}` }
  }
  return undefined
}

/** The last lock that was taken in a directory before this call. */
function lockBefore(calls: readonly Call[], directory: string, before: Call): Call | undefined {
  return calls
    .slice(0, before.index)
    .findLast((call) => call.name === 'tryLock' && isDone(call) && dirname(call.path) === directory)
}

const recordsReadUnderTheLock: Check = ({ calls }) => {
  for (const call of calls) {
    if (call.name !== 'createFile' || !isRecord(call.entry) || !isDone(call)) continue
    const directory = dirname(call.path)
    const lock = lockBefore(calls, directory, call)
    if (lock === undefined || call.before === undefined || call.on[0] === undefined) continue
    const since = calls.slice(lock.index, call.index)
    const listed = since.some((one) => (one.name === 'list' || one.name === 'entries') && one.on[0] === call.on[0])
    if (!listed) return { at: call, what: `follows no list of ${directory} under its lock` }
    const prefix = nameIn(call.path).replace(/[0-9]+$/, '')
    const records = [...call.before.inode(call.on[0]).now.entries.keys()].filter(
      (name) => isRecord(name) && name.startsWith(prefix),
    )
    const unread = records.find(
      (name) =>
        !since.some(
          (one) =>
            /^(openFile|openAppend|createFile)$/.test(one.name) && one.entry === name && one.on[0] === call.on[0],
        ),
    )
    if (unread !== undefined) return { at: call, what: `is made though ${unread} was not read under the lock` }
  }
  return undefined
}

const stagedDurableBeforeVisible: Check = ({ calls }) => {
  for (const call of calls) {
    if (!isVisibleRename(call) || isOwnName(call.to?.entry ?? '') || !isDone(call)) continue
    const [first] = call.unsynced
    if (first !== undefined) return { at: call, what: `makes ${first} visible, which is not on stable storage` }
    if (call.before === undefined) continue
    const lock = lockBefore(calls, dirname(call.to?.path.replace(/\/\.\.data$/, '') ?? ''), call)
    for (const made of calls.slice(lock?.index ?? 0, call.index)) {
      if (made.name !== 'createFile' || !isRecord(made.entry) || !isDone(made)) continue
      const [directory] = made.on
      const now = directory === undefined ? undefined : call.before.inode(directory)
      const record = made.entry === undefined ? undefined : now?.now.entries.get(made.entry)
      if (record === undefined || made.entry === undefined) continue
      const isNamed = now?.disk?.entries.get(made.entry) === record
      if (!isNamed || !isOnDisk(call.before.inode(record)))
        return { at: call, what: `comes before the record ${made.path} is on stable storage` }
    }
  }
  return undefined
}

/** Inodes below a name. */
function below(disk: ModelDisk, root: number | undefined, found = new Set<number>()): Set<number> {
  if (root === undefined || found.has(root)) return found
  found.add(root)
  for (const child of disk.inode(root).now.entries.values()) below(disk, child, found)
  return found
}

/** All of a disk that a person may go back to: readers' content, records, earlier and retired contents. */
function oldInodes(disk: ModelDisk): Set<number> {
  const old = new Set<number>(visibleInodes(disk).keys())
  for (const path of targetsOn(disk)) {
    const parent = find(disk, dirname(path))
    if (!parent) continue
    for (const [name, number] of parent.now.entries) if (isKind('record', 'generation')(name)) below(disk, number, old)
  }
  return old
}

/** What a call takes the last name from. */
const removed = (call: Call): number | undefined =>
  call.name === 'removeFile' || call.name === 'removeDirectory' ? call.found : undefined

const oldStaysUntilTheSecondBarrier: Check = ({ calls, start }) => {
  const old = oldInodes(start)
  let steps: Call[] = []
  for (const call of calls) {
    if (call.name === 'sync' && isDone(call)) steps = steps.filter((step) => !call.on.includes(directoryOf(step) ?? -1))
    const gone = removed(call)
    if (gone !== undefined && isDone(call) && old.has(gone)) {
      const [waiting] = steps
      if (waiting) return { at: call, what: `removes what was there before "${waiting.words()}" is durable` }
    }
    if (isStep(call)) steps.push(call)
    // A staged record that is removed again leaves no step behind.
    if (call.name === 'removeFile') steps = steps.filter((step) => step.path !== call.path)
  }
  return undefined
}

const visibleIsNeverTakenApart: Check = ({ calls }) => {
  for (const call of calls) {
    const gone = removed(call)
    if (gone === undefined || !isDone(call) || call.before === undefined) continue
    const path = visibleInodes(call.before).get(gone)
    if (path === undefined) continue
    const inode = call.before.inode(gone)
    // Of the symlink form: a link whose file the new content has no more.
    const holder = call.on[0]
    const isDangling = inode.type === 'symlink' && holder !== undefined && !leads(call.before, holder, inode.now.data)
    if (!isDangling) return { at: call, what: `removes ${path}, which readers see` }
  }
  return undefined
}

function leads(disk: ModelDisk, holder: number, text: string): boolean {
  let at: number | undefined = holder
  for (const part of text.split('/')) {
    const inode: Inode | undefined = at === undefined ? undefined : disk.child(at, part)
    const target: Inode | undefined = inode?.type === 'symlink' ? disk.child(at ?? 0, inode.now.data) : inode
    at = target?.number
  }
  return at !== undefined
}

/** A rename that readers see, or a new record. */
const isStep = (call: Call): boolean =>
  isDone(call) && (isVisibleRename(call) || (call.name === 'createFile' && isRecord(call.entry)))

/** A call that only syncs, under a lock, what another one has changed: an aborted journal answers 0 there, too. */
function breachOfSyncAlone(calls: readonly Call[]): Breach | undefined {
  const lock = calls.find((call) => call.name === 'tryLock' && isDone(call))
  const synced = lock && calls.slice(lock.index).find((call) => call.name === 'sync' && isDone(call))
  if (synced === undefined || calls.some(hasChanged)) return undefined
  return { at: synced, what: 'is followed by no change: an aborted journal answers 0, too' }
}

const parentSyncedBeforeTheAnswer: Check = (played) => {
  const { calls } = played
  if (errorsIn(played.answer).length > 0) return undefined
  if (!calls.some(isStep)) return breachOfSyncAlone(calls)
  for (const call of calls) {
    if (!isStep(call)) continue
    const directory = directoryOf(call)
    const synced = syncOf(calls, directory, call.index, calls.length)
    if (synced === undefined) return { at: call, what: `is not followed by a sync of its directory` }
    if (call.name !== 'rename') continue
    // The mark of the commit does not count: its failure is no failure of the call.
    const next = calls.slice(synced.index).find((one) => isChange(one) && isDone(one))
    if (next === undefined || next.name === 'write')
      return { at: synced, what: 'is followed by no change of a name: an aborted journal answers 0, too' }
  }
  return undefined
}

/** Leaves out directories above a target that this user may not open: another user made them. */
const isForbidden = ({ fault, calls }: Played): boolean =>
  fault?.code === 'EACCES' && calls[fault.index]?.name === 'openPath'

const ancestorsSynced: Check = (played) => {
  const { calls, end } = played
  if (errorsIn(played.answer).length > 0 || isForbidden(played)) return undefined
  for (const call of calls) {
    if (!isStep(call) || call.to?.path.includes('/..')) continue
    const parent = dirname(call.to?.path ?? call.path)
    const device = deviceOf(find(end, parent)?.number ?? 0)
    for (let above = dirname(parent); ; above = dirname(above)) {
      const inode = find(end, above)
      if (inode === undefined || deviceOf(inode.number) !== device) break
      if (!calls.some((one) => one.name === 'sync' && isDone(one) && one.on.includes(inode.number)))
        return { at: call, what: `is answered before ${above} is synced, which another program may have renamed` }
      if (above === '/') break
    }
  }
  return undefined
}

/** A power cut that loses all data without a sync. */
const loseAll = (options: number): number => options - 1

const answerOutlivesAPowerCut: Check = async (played) => {
  const { start, end, scene, user } = played
  // A run that finds all done answers for what its predecessor left, too.
  const { calls } = played.undisturbed ?? played
  if (
    errorsIn(played.answer).length > 0 ||
    isForbidden(played) ||
    isLie(played) ||
    !calls.some((call) => isChange(call) && call.name !== 'openLock')
  )
    return undefined
  const after = powerCut(end, loseAll)
  const [lost] = differencesOf(viewOf(end), viewOf(after))
  if (lost !== undefined) return { what: `${lost} is ${viewOf(after).get(lost) ?? 'gone'} after a power cut` }
  for (const path of targetsOn(end, targetsOn(start))) {
    const [before, now] = [await saidOf(end, path, user), await saidOf(after, path, user)].map((said) =>
      JSON.stringify(lastingOf(said)),
    )
    if (before !== now) return { what: `${path} is said to be\n  ${now}\nafter a power cut, and was\n  ${before}` }
  }
  const broken = await scene.promises?.(after, 'value' in played.answer ? played.answer.value : undefined)
  return broken === undefined ? undefined : { what: `after a power cut: ${broken}` }
}

/** What readers find of a target, as one text: of the symlink form through `..data`, since its other links come and go one by one. */
function wholeText(disk: ModelDisk, path: string): string {
  const here = [...viewOf(disk)].filter(([at]) => at === path || at.startsWith(`${path}/`))
  const through = here.filter(([at]) => at.startsWith(`${path}/..data`))
  const read = through.length > 0 ? through : here
  return [path, ...read.map((one) => one.join(' ')).sort()].join('\n')
}

/** The fault of a target that holds none of these whole contents. */
export function faultOfWhole(disk: ModelDisk, path: string, known: ReadonlySet<string>): string | undefined {
  const allowed = [...known].filter((text) => text.startsWith(`${path}\n`) || text === path)
  return faultOfContent(path, wholeText(disk, path), new Map(allowed.map((text, index) => [`content ${index}`, text])))
}

/** All that a target is at any instant, as long as the power stays. */
const wholeTargets = new WeakMap<Played, Set<string>>()

export function wholeIn(played: Played): Set<string> {
  const known = wholeTargets.get(played)
  if (known) return known
  const { start, end, calls, fault, undisturbed } = played
  const found = new Set(undisturbed ? wholeIn(undisturbed) : [])
  const disks = calls.slice(fault?.index ?? 0).flatMap(({ before }) => before ?? [])
  for (const disk of [start, ...disks, end])
    for (const path of targetsOn(end, targetsOn(start))) found.add(wholeText(disk, path))
  wholeTargets.set(played, found)
  return found
}

const wholeAtEachInstant: Check = (played) => {
  const { calls, start, end, fault } = played
  const targets = targetsOn(end, targetsOn(start))
  const known = wholeIn(played)
  const judged = new Set<string>()
  // Up to the failure it is as it was without it.
  for (const call of calls.slice(fault?.index ?? 0)) {
    if (call.before === undefined) continue
    const after = powerCut(call.before, loseAll)
    // Most changes leave on stable storage what the one before has left there.
    const left = textOf(after, after.inode(rootInode))
    if (judged.has(left)) continue
    judged.add(left)
    for (const path of targets) {
      const fault = faultOfWhole(after, path, known)
      if (fault !== undefined) return { at: call, what: `after a power cut ${fault}` }
    }
  }
  return undefined
}

/** What all records of one target have in common. */
const familyOf = (record: string): string => record.replace(/[0-9]+$/, '')

const nothingStagedIsLeft: Check = (played) => {
  const { start, end, calls, fault, logged } = played
  if (errorsIn(played.answer).length > 0 || hasWarned(logged)) return undefined
  // What a call says is not there, or not to be touched, stays.
  const untouched = fault && fault.code !== 'EIO' ? calls[fault.index]?.path : undefined
  const names = (disk: ModelDisk): Map<string, string> => {
    const found = new Map<string, string>()
    for (const path of new Set([...targetsOn(disk), ...targetsOn(start)].map((target) => dirname(target)))) {
      const parent = find(disk, path)
      for (const [name] of parent?.now.entries ?? [])
        if (isOwnName(name)) found.set(`${path}/${name}`, disk.child(parent?.number ?? 0, name)?.now.data ?? '')
    }
    return found
  }
  const before = names(start)
  const after = names(end)
  for (const path of after.keys()) if (untouched?.startsWith(path)) after.delete(path)
  const recorded = [...after].filter(([path]) => isRecord(nameIn(path))).map(([, text]) => text)
  for (const path of after.keys()) {
    if (before.has(path) || path.endsWith('.lock') || isRecord(nameIn(path))) continue
    if (!recorded.some((text) => text.includes(nameIn(path))))
      return { what: `${path} is left, and no record names it` }
  }
  const records = [...after.keys()].filter((path) => isRecord(nameIn(path)) && !before.has(path))
  const twice = records.find((path, index) => records.findIndex((one) => familyOf(one) === familyOf(path)) !== index)
  if (twice !== undefined) return { what: `two records of this call are left: ${records.join(', ')}` }
  for (const path of records) {
    const own = familyOf(path)
    const older = [...before.keys()].find(
      (one) => one.startsWith(own) && isRecord(nameIn(one)) && after.has(one) && /"name":/.test(before.get(one) ?? ''),
    )
    if (older !== undefined) return { what: `${older} is left beside its successor ${path}` }
  }
  return undefined
}

const answersAreTrue: Check = async (played) => {
  const what = await faultOfAnswer(played)
  return what === undefined ? undefined : { what }
}

const nothingBeyondLinksOfOthers: Check = ({ calls, start, end }) => {
  const beyond = new Map([...beyondLinksOfOthers(start), ...beyondLinksOfOthers(end)])
  if (beyond.size === 0) return undefined
  for (const call of calls) {
    const link = call.on.map((inode) => beyond.get(inode)).find((one) => one !== undefined)
    if (link !== undefined) return { at: call, what: `works on what only the link ${link} of another user leads to` }
  }
  return undefined
}

interface Rule {
  /** What would be lost without it. */
  readonly protects: string
  readonly check: Check
  /** It says something of calls that change nothing, too. */
  readonly looks?: true
}

export const rules = {
  'each descriptor is closed': {
    protects:
      'an agent that publishes for years runs out of descriptors, and a lock that stays open keeps everybody out',
    check: descriptorsClosed,
    looks: true,
  },
  'the lock is held at each change': {
    protects: 'two publishers mix their contents, or clean up what the other one stages',
    check: lockedAtEachChange,
  },
  'records are read under the lock': {
    protects: 'a new record that is made from an outdated one loses a hold, a pin or a generation of another caller',
    check: recordsReadUnderTheLock,
  },
  'staged content is durable before it is visible': {
    protects: 'a power cut behind the exchange leaves torn or empty files under the target',
    check: stagedDurableBeforeVisible,
  },
  'nothing old goes before barrier 2': {
    protects: 'a power cut takes the exchange back, and the old content is gone already',
    check: oldStaysUntilTheSecondBarrier,
  },
  'what readers see is never taken apart': {
    protects: 'a reader finds half of a content',
    check: visibleIsNeverTakenApart,
  },
  'the parent is synced before the answer': {
    protects: 'a power cut takes back what was answered as done',
    check: parentSyncedBeforeTheAnswer,
    looks: true,
  },
  'the directories above are synced': {
    protects: 'a rename above the target that nobody synced takes all that is below with it',
    check: ancestorsSynced,
  },
  'the answer outlives a power cut': {
    protects: 'a hold, a content or a removal that was answered is undone',
    check: answerOutlivesAPowerCut,
    looks: true,
  },
  'a power cut at any change leaves a whole target': {
    protects: 'a target that is torn, or mixed of two contents',
    check: wholeAtEachInstant,
  },
  'nothing staged is left': {
    protects: 'private keys stay beside the target, and a directory fills up',
    check: nothingStagedIsLeft,
  },
  'nothing is opened through a link of others': {
    protects: "another user's link has root publish into, or remove from, a directory of that user's choice",
    check: nothingBeyondLinksOfOthers,
    looks: true,
  },
  'the answer is true of the disk': {
    protects: 'a caller acts on what did not happen',
    check: answersAreTrue,
    looks: true,
  },
} as const satisfies Record<string, Rule>

export type RuleName = keyof typeof rules
export const ruleNames = Object.keys(rules) as RuleName[]

/** The first breach of a rule, as a text with the scene, the call and the calls before it; undefined where it holds. */
export async function breachOf(rule: RuleName, played: Played): Promise<string | undefined> {
  if (!('looks' in rules[rule]) && !played.calls.some(hasChanged)) return undefined
  const breach = await rules[rule].check(played)
  return breach && shown(rule, played, breach)
}

/** The breaches of those of these rules that hold in its scene in spite of a failure, or of what comes between. */
export async function breachesOfRules(
  played: Played,
  names: readonly RuleName[] = ruleNames,
): Promise<(string | undefined)[]> {
  const { exempt, exemptFailing } = played.scene
  const asked = names.filter((name) => (exempt?.[name] ?? exemptFailing?.[name]) === undefined)
  const breaches: (string | undefined)[] = []
  for (const name of asked) breaches.push(await breachOf(name, played))
  return breaches
}

/** Calls that a report shows before the one that breaks a rule. */
const callsShown = 25

export function shown(rule: string, { scene, calls, fault, meanwhile }: Played, { at, what }: Breach): string {
  const end = at === undefined ? calls.length : at.index + 1
  const failed = fault && `${fault.code} from call ${fault.index}, ${calls[fault.index]?.words().slice(0, 120) ?? '?'}`
  const other = meanwhile && `before call ${meanwhile.index}, ${calls[meanwhile.index]?.words().slice(0, 120) ?? '?'}`
  return [
    `${rule}: broken in the scene "${scene.name}"${failed ? `, with ${failed}` : ''}${other ? `, disturbed ${other}` : ''}`,
    `${at === undefined ? '' : `call ${at.index}, ${at.words().slice(0, 200)}: `}${what}`,
    ...calls
      .slice(Math.max(0, end - callsShown), end)
      .map(
        (call) =>
          `  ${call.index} ${call.words().slice(0, 160)}${call.failed === undefined ? '' : ` (${call.failed})`}`,
      ),
  ].join('\n')
}
