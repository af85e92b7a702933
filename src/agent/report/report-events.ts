/*
 * Which events report an outcome. An event about one object is on that object, in its namespace; an event about this node's disk, or about
 * a directory that cannot be published, is on the Node. `kubectl describe node` shows how the node stands, and the events of an object show
 * which nodes have it.
 */
import type { EventDraft, EventSubject } from '../../kubernetes/events/event-body.js'
import type { ObjectReference } from '../../objects/types.js'
import type { Reason } from '../../reasons.js'
import type { EventNote, Meaning } from '../outcome.js'

export interface Reporter {
  /** The Node's name; the empty string where it is unknown: then the Node gets no events. */
  readonly node: string
  /** For people: `node n1`, `host h1`. */
  readonly place: string
  /** metadata.uid of the object as the source has it. */
  uid(reference: ObjectReference): string | undefined
}

const normal: ReadonlySet<Reason> = new Set([
  'Published',
  'Removed',
  'DriftRepaired',
  'Relocating',
  'Relocated',
  'Dropped',
])
const never: ReadonlySet<Reason> = new Set(['Unchanged', 'Busy'])

const actions: Partial<Record<Reason, string>> = {
  Removed: 'Remove',
  DriftRepaired: 'Repair',
  Relocating: 'Relocate',
  Relocated: 'Relocate',
  HookFailed: 'RunHook',
  HistoryRewound: 'Watch',
  ConfigurationInvalid: 'Reload',
  DropPending: 'Remove',
  Dropped: 'Remove',
}

/** The events of one pass over a directory. */
export function draftsOf({ events }: Pick<Meaning, 'events'>, reporter: Reporter): EventDraft[] {
  return events.flatMap((note) => draftsOfNote(note, reporter))
}

function draftsOfNote(note: EventNote, reporter: Reporter): EventDraft[] {
  if (note.on === 'node') return onNode(note.reason, note.message, reporter)
  return [onObject(note.on, note.uid ?? reporter.uid(note.on), note.reason, note.message(reporter.place))]
}

/** An event on this Node; none where its name is not known. */
export function onNode(reason: Reason, note: string, { node }: Reporter): EventDraft[] {
  if (node === '' || never.has(reason)) return []
  // As kubelet names its own Node in events (pkg/kubelet/kubelet.go, nodeRef): `kubectl describe node` looks for this uid, too.
  return [draft({ kind: 'Node', namespace: '', name: node, uid: node }, reason, note)]
}

/** An event on an object. `uid`: undefined where there is no such object, or no readable one. */
export function onObject(
  { kind, namespace, name }: ObjectReference,
  uid: string | undefined,
  reason: Reason,
  note: string,
): EventDraft {
  return draft({ kind, namespace, name, uid }, reason, note)
}

function draft(subject: EventSubject, reason: Reason, note: string): EventDraft {
  const type = normal.has(reason) ? 'Normal' : 'Warning'
  return { subject, type, reason, action: actions[reason] ?? 'Publish', note: withoutChance(note) }
}

/** Names of staging, records and generations differ with each try, and would make each try another event. */
function withoutChance(note: string): string {
  return note
    .replace(/(\.holdfast-[0-9a-f]{16}[-.])[0-9a-f]+/g, '$1…')
    .replace(/\.\.[1-9][0-9]{0,14}-[0-9a-f]{16}/g, '..…')
}
