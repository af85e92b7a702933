/* Whether an answer is true of the disk: the judge of every scene, with and without a failure in it. */
import { readPublication } from '../../../src/durable/look/index.js'
import { adviceAt, DurableWriteError, OverlappingTargets } from '../../../src/durable/errors.js'
import type { ReplaceResult } from '../../../src/durable/types.js'
import { adviceFor, isSystemError, reasonForErrno } from '../../../src/errors.js'
import { ModelProcess } from '../../crash/model/model-process.js'
import type { ModelDisk } from '../../crash/model/model-disk.js'
import type { Played } from './play.js'
import { Refusal } from './scene.js'
import { isChange } from './recorder.js'
import { differencesOf, saidOf, viewOf } from './readers.js'

type Answer = Played['answer']

/** Results and errors in an answer, in their order. */
export function partsOf(answer: Answer): (ReplaceResult | Error)[] {
  const parts: (ReplaceResult | Error)[] = []
  const collect = (value: unknown): void => {
    if (value instanceof Error) parts.push(value)
    else if (Array.isArray(value)) value.forEach(collect)
    else if (isResult(value)) parts.push(value)
    else if (typeof value === 'object' && value !== null && 'error' in value) collect(value.error)
  }
  collect('thrown' in answer ? answer.thrown : answer.value)
  return parts
}

function isResult(value: unknown): value is ReplaceResult {
  return typeof value === 'object' && value !== null && 'outcome' in value && 'digest' in value && 'path' in value
}

export function errorsIn(answer: Answer): Error[] {
  const errors = partsOf(answer).filter((part): part is Error => part instanceof Error)
  if ('thrown' in answer && errors.length === 0) errors.push(new Error(String(answer.thrown)))
  return errors
}

/** The outcomes and reasons in an answer, as `ends` of a scene has them. */
const endsOf = (answer: Answer): string =>
  partsOf(answer)
    .map((part) => (part instanceof DurableWriteError ? part.reason : part instanceof Error ? part.name : part.outcome))
    .join(', ')

/** The fault of an answer; undefined: it is true. The caller that lets another publisher in between judges that one. */
export async function faultOfAnswer(played: Played): Promise<string | undefined> {
  const { start, end, answer, scene, meanwhile } = played
  const parts = partsOf(answer)
  const [defect] = errorsIn(answer).filter((error) => !isExpected(error))
  if (defect) return `a defect of the program: ${defect.stack ?? defect.message}`
  if (!played.fault && !meanwhile && scene.ends !== undefined && endsOf(answer) !== scene.ends && !played.signal)
    return `it comes to ${endsOf(answer) || 'nothing'}, and not to ${scene.ends}`
  for (const part of parts) {
    const path = part instanceof DurableWriteError ? part.path : 'path' in part ? part.path : undefined
    const same = parts.filter((one) => 'path' in one && one.path === path)
    if (part instanceof DurableWriteError) {
      const fault = faultOfReason(part, played)
      if (fault !== undefined) return fault
    }
    if (path === undefined || same.at(-1) !== part || meanwhile) continue
    const fault =
      part instanceof DurableWriteError
        ? await faultOfError(part, same.length === 1, played)
        : await faultOfResult(part as ReplaceResult, same.length === 1, played)
    if (fault !== undefined) return fault
  }
  if (!meanwhile && errorsIn(answer).length > 0 && errorsIn(answer).every((error) => isUnpublished(error))) {
    const [changed] = differencesOf(viewOf(start), viewOf(end))
    if (changed !== undefined && parts.every((part) => part instanceof Error))
      return `nothing was published, and ${changed} is ${viewOf(end).get(changed) ?? 'gone'}`
  }
  if (errorsIn(answer).length > 0 || isLie(played)) return undefined
  const broken = await scene.promises?.(end, 'value' in answer ? answer.value : undefined)
  return broken === undefined ? undefined : `it answers without an error, and ${broken}`
}

function isExpected(error: Error): boolean {
  if (error instanceof OverlappingTargets || error instanceof Refusal) return true
  if (error instanceof DurableWriteError) return error.code !== 'ENOTRECOVERABLE'
  return error.name === 'AbortError' || isSystemError(error)
}

const isUnpublished = (error: Error): boolean => !(error instanceof DurableWriteError) || !error.published

async function faultOfResult(
  { outcome, path, digest }: ReplaceResult,
  isOnly: boolean,
  played: Played,
): Promise<string | undefined> {
  const { start, end, user, logged } = played
  const seen = await readPublication(Object.assign(new ModelProcess(end.fork()), { user }), path)
  if (seen?.digest !== digest || seen.actual !== digest)
    return `says ${outcome} with ${digest}, and ${path} has a record of ${seen?.digest} and holds ${seen?.actual}`
  const isWarned = hasWarned(logged) || isLie(played)
  const [difference] = seen.differences
  if (difference && !(isWarned && difference.problem === 'unexpected'))
    return `says ${outcome}, and ${path}/${difference.path} differs: ${difference.problem}`
  if (!seen.durable && !isWarned) return `says ${outcome}, and ${path} is not known to be durable`
  if (!isOnly) return undefined
  const isAt = (disk: ModelDisk): boolean => [...viewOf(disk).keys()].includes(path)
  if (outcome === 'created' && isAt(start)) return `says created, and ${path} was there`
  if (outcome === 'replaced' && !isAt(start) && !isLinked(path, start)) return `says replaced, and there was no ${path}`
  const [changed] = differencesOf(viewOf(start), viewOf(end)).filter(
    (one) => one === path || one.startsWith(`${path}/`),
  )
  return outcome === 'unchanged' && changed !== undefined ? `says unchanged, and ${changed} has changed` : undefined
}

/**
 * A call answers falsely that an entry is missing, is a link, or is not for this user: the program's answer then proves nothing against it.
 */
export const isLie = ({ fault, calls }: Played): boolean =>
  fault !== undefined && ['ENOENT', 'ELOOP', 'EACCES'].includes(fault.code) && calls[fault.index]?.found !== undefined

/** The program logs each file that it leaves to the next run. */
export const hasWarned = (logged: Played['logged']): boolean => logged.some(({ level }) => level === 'warn')

const isLinked = (path: string, disk: ModelDisk): boolean => !viewOf(disk).has(path.slice(0, path.lastIndexOf('/')))

async function faultOfError(
  { published, path, message }: DurableWriteError,
  isOnly: boolean,
  played: Played,
): Promise<string | undefined> {
  const { start, end, user, calls, logged, undisturbed } = played
  const isHere = (one: string): boolean => one === path || one.startsWith(`${path}/`)
  if (published) {
    if (!isOnly || undisturbed === undefined || !message.includes('holds the new content')) return undefined
    const isLink = (one: string): boolean =>
      (viewOf(end).get(one) ?? viewOf(undisturbed.end).get(one) ?? '').startsWith('s ')
    // Links of the symlink form come and go behind the exchange.
    const [other] = differencesOf(viewOf(undisturbed.end), viewOf(end)).filter((one) => isHere(one) && !isLink(one))
    return other === undefined ? undefined : `says that ${path} holds the new content, and ${other} is not of it`
  }
  const changed = differencesOf(viewOf(start), viewOf(end)).filter(isHere)
  if (!isOnly) return undefined
  if (changed.length > 0) return `says that nothing was published, and ${changed.join(', ')} has changed: ${message}`
  if (!calls.some((call) => isChange(call) && call.failed === undefined)) return undefined
  const [before, after] = [await saidOf(start, path, user), await saidOf(end, path, user)].map((said) =>
    JSON.stringify(said),
  )
  // What cannot be taken back is logged.
  return before === after || hasWarned(logged) || isLie(played)
    ? undefined
    : `says that nothing was published (${message}), and readers of ${path} are told\n  ${after}\nthat was\n  ${before}`
}

/** Reasons that the table of errors in src/errors.ts lacks, since the failing call has another rule. */
const ownReasons: Readonly<Record<string, string>> = {
  'rename EINVAL': 'TargetUnfit',
  'rename ENOSYS': 'TargetUnfit',
  'rename EEXIST': 'TargetForeign',
  'openFile ENOENT': 'TargetUnfit',
}

/** Whose errors have an advice of their own. */
const ownAdvice = /^(rename E(INVAL|NOSYS|EXIST)|setExtendedAttribute .*|openLock EISDIR|openFile ENOENT)$/

function faultOfReason(error: DurableWriteError, { fault, calls }: Played): string | undefined {
  const { published, reason, code, message, advice, path, syscall } = error
  if (typeof path !== 'string' || typeof syscall !== 'string') return `says neither where nor what failed: ${message}`
  if (published && !['DurabilityUnknown', 'TargetForeign', 'InUse', 'TargetUnfit'].includes(reason))
    return `is published with the reason ${reason}: ${message}`
  if (!published && reason === 'DurabilityUnknown')
    return `nothing was published, with the reason ${reason}: ${message}`
  if (fault === undefined || code !== fault.code) return undefined
  const { name = '' } = calls[fault.index] ?? {}
  const call = `${name} ${code}`
  const expected = published ? 'DurabilityUnknown' : reasonForErrno(code)
  if (reason !== expected && reason !== ownReasons[call])
    return `has the reason ${reason}, and not ${expected}: ${message}`
  const known = [adviceAt(path, code), adviceFor(code), adviceFor(code, 'read')].filter((one) => one !== undefined)
  if (!ownAdvice.test(call) && known.length > 0 && !known.some((one) => advice?.includes(one)))
    return `does not say what to do about ${code}: ${message}`
  return undefined
}
