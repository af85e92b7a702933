import { objectName } from '../message-text.js'
import type { ObjectKind, ObjectReference } from '../objects/types.js'
import type { CertificateDate, ContentFinding } from '../directories/types.js'
import { dateFindings } from '../directories/validate.js'
import type { Hold, RecordedObject, ReplaceResult } from '../durable/types.js'
import type { Log } from '../log.js'
import type { Reason } from '../reasons.js'
import { withoutPaths, type ConditionState, type PublishedObject, type Rejection } from './conditions.js'
import { type Moving, movingMeaning } from './leaving/moving.js'
import type { QueueResult } from './workqueue.js'
import { describeOrders } from '../durable/index.js'

/** Another program publishes just now, a person wants it so, or the content is at fault: the disk is fine. */
const levels: Partial<Record<Reason, keyof Log>> = {
  Busy: 'info',
  Held: 'warn',
  RolledBack: 'warn',
  AdoptionPending: 'warn',
  AdoptionRefused: 'warn',
  ContentRejected: 'warn',
}

/** What one pass over a directory came to. */
export type PassOutcome =
  /** The source has not reported all of its objects yet. */
  | { readonly kind: 'waiting'; readonly message: string }
  /** Its desired content is unknown, or must not be published. The pass wrote nothing. */
  | { readonly kind: 'incomplete'; readonly findings: readonly ContentFinding[]; readonly unread?: true | undefined }
  | {
      readonly kind: 'published'
      readonly change: ReplaceResult['outcome']
      readonly digest: string
      /** Names the content in the log, as `holdfast history` does: a digest would give a short content away. */
      readonly sequence: number
      readonly objects: readonly RecordedObject[]
      readonly warnings: readonly ContentFinding[]
      readonly certificates: readonly CertificateDate[]
      /** Keys of the hooks that were recorded with a new publication. */
      readonly hooks: readonly string[]
      readonly unproven: boolean
      /** Content that was intact was published again, only to make it durable. */
      readonly repeated?: boolean
    }
  | {
      readonly kind: 'failed'
      readonly reason: Reason
      /** A retry changes nothing: the configuration or the disk has to change first. */
      readonly terminal: boolean
      /** The new content is visible, its durability is unknown. */
      readonly published: boolean
      readonly error: Error
      readonly rejection?: Rejection
    }
  | Moving
  /** The process is to end: the pass stopped before anything was visible. */
  | { readonly kind: 'aborted' }

type OutcomeOf<Kind extends PassOutcome['kind']> = Extract<PassOutcome, { kind: Kind }>
export type PublishedOutcome = OutcomeOf<'published'>

/** What surrounded a pass. Never content. */
export interface Context {
  readonly operation: string
  readonly directory: string
  readonly causes: readonly string[]
  /** Milliseconds from the moment it was due until now. */
  readonly milliseconds: number
  /** The differences between disk and publication; undefined: the pass found none. */
  readonly drift: string | undefined
  /** After the pass, the disk holds what the record says, known to be durable. */
  readonly intact: boolean
  /** An operator holds the directory, by its record. */
  readonly hold: Hold | undefined
  /** Objects that are not published any more. */
  readonly removedObjects: readonly PublishedObject[]
  /** Objects that are published in another version than before, or for the first time. */
  readonly changedObjects: readonly PublishedObject[]
}

/** The result of a publication: its change, `failed` (the target is unchanged), `unknown` (durability), `refused` (it tried nothing). */
export const publishResults = ['created', 'replaced', 'unchanged', 'failed', 'unknown', 'refused'] as const
export type PublishResult = (typeof publishResults)[number]

interface LogLine {
  readonly level: keyof Log
  readonly reason?: Reason
  readonly message: string
  /** Beside those of every line of the pass. */
  readonly fields?: object
}

/** Something for the cluster's events. `place`: the node or the host, as people call it. */
export type EventNote =
  | { readonly on: 'node'; readonly reason: Reason; readonly message: string }
  | {
      readonly on: ObjectReference
      /** undefined: that of the object as the source has it now. */
      readonly uid: string | undefined
      readonly reason: Reason
      readonly message: (place: string) => string
    }

/** What an outcome means, wherever it shows. */
export interface Meaning {
  /** The condition Published after it; undefined: it stays. */
  readonly condition: ConditionState | undefined
  readonly lines: readonly LogLine[]
  readonly events: readonly EventNote[]
  /** The label under which the publication counts; undefined: it does not. */
  readonly result: PublishResult | undefined
  /** What waits for the source or for a person runs again when that changes, everything else after a delay. */
  readonly queue: QueueResult
}

/** The one place that says what an outcome means: condition, log lines, events, metric, retry. */
const meanings: {
  readonly [Kind in PassOutcome['kind']]: (outcome: OutcomeOf<Kind>, context: Context) => Meaning
} = {
  waiting: ({ message }, { directory, intact }) => ({
    condition: intact ? intactCondition : { status: 'False', reason: 'SourceUnavailable', message },
    lines: [{ level: 'debug', message: `${directory}: ${message}` }],
    events: [],
    result: undefined,
    queue: 'wait',
  }),
  incomplete: (outcome, context) => ({
    condition: incompleteCondition(outcome, context),
    lines: incompleteLines(outcome, context),
    events: incompleteEvents(outcome, context),
    result: 'refused',
    queue: outcome.unread === true ? 'retry' : 'wait',
  }),
  published: (outcome, context) => ({
    condition: publishedCondition(outcome, context),
    lines: publishedLines(outcome, context),
    events: [...publicationEvents(outcome, context), ...expiryEvents(outcome, context)],
    result: outcome.change,
    queue: 'done',
  }),
  failed: ({ reason, terminal, published, error: { message }, error }) => ({
    condition: { status: published ? 'Unknown' : 'False', reason, message },
    lines: [{ level: levels[reason] ?? 'error', reason, message, fields: { published, ...systemFields(error) } }],
    events: [{ on: 'node', reason, message }],
    result: levels[reason] === 'warn' ? 'refused' : published ? 'unknown' : 'failed',
    queue: terminal ? 'wait' : 'retry',
  }),
  moving: movingMeaning,
  aborted: (_, { operation }) => ({
    condition: undefined,
    lines: [{ level: 'info', message: `${operation}: the agent aborted it before anything was visible` }],
    events: [],
    result: undefined,
    queue: 'wait',
  }),
}

export function meaningOf<Kind extends PassOutcome['kind']>(outcome: OutcomeOf<Kind>, context: Context): Meaning {
  const meaning: (outcome: OutcomeOf<Kind>, context: Context) => Meaning = meanings[outcome.kind]
  return meaning(outcome, context)
}

/**
 * The meaning of an operation that has not ended in time. It goes on: nothing ends a call that the kernel keeps. The disk's content counts
 * as intact, but no call can check it.
 */
export function stalledMeaning({ operation, directory, milliseconds, on }: Stall): Meaning {
  const message =
    `${directory}: its operation has not ended after ${Math.round(milliseconds / 1000)} s: ${on} does not answer; ` +
    'the agent goes on by itself once it does'
  return {
    condition: { status: 'Unknown', reason: 'Stalled', message },
    lines: [{ level: 'warn', reason: 'Stalled', message, fields: { operation } }],
    events: [{ on: 'node', reason: 'Stalled', message }],
    result: undefined,
    queue: 'wait',
  }
}

interface Stall extends Pick<Context, 'operation' | 'directory' | 'milliseconds'> {
  /** The file system, as a person looks for it. */
  readonly on: string
}

/** Reasons that say only that the source does not answer now: the content of the disk stays good. */
const sourceReasons: ReadonlySet<Reason> = new Set(['SourceUnavailable', 'AccessDenied'])

/** The directory is incomplete for no other reason than that its source does not answer. */
export function isSourceAway(outcome: PassOutcome): boolean {
  if (outcome.kind === 'waiting') return true
  return outcome.kind === 'incomplete' && outcome.findings.every(({ reason }) => sourceReasons.has(reason))
}

const intactCondition: ConditionState = {
  status: 'True',
  reason: 'Published',
  message: 'the disk holds the content that was published last',
}

/** A source that does not answer takes nothing away from intact content of the disk. */
function incompleteCondition(outcome: OutcomeOf<'incomplete'>, { intact }: Context): ConditionState | undefined {
  if (isSourceAway(outcome) && intact) return intactCondition
  const [first] = outcome.findings
  return first && { status: 'False', reason: first.reason, message: joinedMessages(outcome.findings) }
}

function incompleteLines(outcome: OutcomeOf<'incomplete'>, { directory }: Context): LogLine[] {
  const state = isSourceAway(outcome) ? 'the published content stays as it is' : 'nothing was changed'
  return outcome.findings.map(({ reason, message }) => ({
    level: 'warn',
    reason,
    message: `${directory}: ${message}; ${state}`,
  }))
}

function incompleteEvents({ findings }: OutcomeOf<'incomplete'>, { directory }: Context): EventNote[] {
  const [first] = findings
  if (first === undefined) return []
  const objects = findings.flatMap(({ reason, message, reference }) =>
    // A source that does not answer is nothing about the object, and many nodes may have met it at once.
    reference === undefined || reason === 'SourceUnavailable'
      ? []
      : [onObject(reference, undefined, reason, (place) => `${message} (${directory} on ${place})`)],
  )
  return [{ on: 'node', reason: first.reason, message: `${directory}: ${joinedMessages(findings)}` }, ...objects]
}

function publishedCondition({ warnings: [warning] }: PublishedOutcome, { directory, hold }: Context): ConditionState {
  if (hold !== undefined) return heldCondition(directory, hold)
  return warning ? { status: 'True', reason: warning.reason, message: warning.message } : intactCondition
}

function publishedLines(outcome: PublishedOutcome, { directory, drift, removedObjects }: Context): LogLine[] {
  const { change, sequence, objects, warnings } = outcome
  const repaired = change === 'unchanged' ? undefined : drift
  const reason = change === 'unchanged' ? 'Unchanged' : repaired === undefined ? 'Published' : 'DriftRepaired'
  const fields = { outcome: change, sequence, objects: objects.map(withoutPaths) }
  return [
    { level: 'info', reason, message: publishedMessage(directory, outcome, repaired), fields },
    ...removedObjects.map((object) => ({ level: 'info', ...removalNote(directory, object) }) as const),
    ...warnings.map(({ reason, message }) => ({ level: 'warn', reason, message: `${directory}: ${message}` }) as const),
  ]
}

/** The result of a publication, for people; `drift`: the repaired differences. Says "durably" only on a proven file system. */
function publishedMessage(
  directory: string,
  { change, unproven }: PublishedOutcome,
  drift: string | undefined,
): string {
  if (drift !== undefined) return `${directory} is repaired; on the disk these differed: ${drift}`
  if (change === 'unchanged') return `${directory} already holds this content${unproven ? '' : ', durably'}`
  return `${directory} is ${change}, ${unproven ? 'but durability is not proven here' : 'and durable'}`
}

function removalNote(directory: string, object: PublishedObject) {
  const message = `${directory}: ${objectName(referenceOf(object))} is no longer published`
  return { reason: 'Removed', message } as const
}

function publicationEvents(outcome: PublishedOutcome, context: Context): EventNote[] {
  const { directory, drift, hold, removedObjects, changedObjects } = context
  if (outcome.change === 'unchanged') return heldEvents(directory, hold)
  return [
    {
      on: 'node',
      reason: drift === undefined ? 'Published' : 'DriftRepaired',
      message: publishedMessage(directory, outcome, drift),
    },
    ...changedObjects.map((object) => {
      const version = `resourceVersion ${object.resourceVersion} is published to ${directory}`
      return onObject(referenceOf(object), object.uid, 'Published', (place) => `${version} on ${place}`)
    }),
    ...removedObjects.flatMap((object): EventNote[] => {
      const note = (place: string) => `it is no longer published in ${directory} on ${place}`
      return [
        onObject(referenceOf(object), object.uid, 'Removed', note),
        { on: 'node', ...removalNote(directory, object) },
      ]
    }),
  ]
}

/** Each certificate that has expired: on the Node, and on the object that it came from. */
function expiryEvents({ warnings, certificates, objects }: PublishedOutcome, { directory }: Context): EventNote[] {
  if (warnings.length === 0) return []
  const now = new Date()
  return [
    ...warnings.map(({ reason, message }) => ({ on: 'node', reason, message: `${directory}: ${message}` }) as const),
    ...objects.flatMap((object) => {
      const { paths, combined = [] } = object
      const own = certificates.filter(({ file }) => paths.includes(file) || combined.includes(file))
      return dateFindings(own, now).map(({ reason, message }) =>
        onObject(referenceOf(object), object.uid, reason, (place) => `${message} (${directory} on ${place})`),
      )
    }),
  ]
}

function onObject(
  on: ObjectReference,
  uid: string | undefined,
  reason: Reason,
  message: (place: string) => string,
): EventNote {
  return { on, uid, reason, message }
}

function joinedMessages(findings: readonly ContentFinding[]): string {
  return findings.map(({ message }) => message).join('; ')
}

function referenceOf({ kind, namespace, name }: PublishedObject): ObjectReference {
  return { kind: kind as ObjectKind, namespace, name }
}

function systemFields(error: Error): object {
  const { code, syscall, path } = error as Partial<Record<'code' | 'syscall' | 'path', unknown>>
  return { code, syscall, path }
}

/* The conditions of a directory that an operator holds, while the source has nothing newer: the agent refused nothing. */

function heldCondition(directory: string, hold: Hold): ConditionState {
  return { status: 'True', reason: 'Held', message: `${heldText(directory, hold)}; nothing newer is known` }
}

function heldEvents(directory: string, hold: Hold | undefined) {
  if (hold === undefined) return []
  return [{ on: 'node', reason: 'Held', message: heldText(directory, hold) } as const]
}

function heldText(directory: string, hold: Hold): string {
  return describeOrders(directory, { hold }).join('; ')
}
