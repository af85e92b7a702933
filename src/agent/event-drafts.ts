/*
 * Which events tell of what. What is about one object is told on the object, in its namespace; what is about this node's disk,
 * and all that keeps a directory from being published, on the Node. `kubectl describe node` shows how the node stands, and the
 * events of an object show which nodes have it.
 */
import { dateFindings } from '../directories/validate.js'
import type { CertificateDate, Finding } from '../directories/types.js'
import type { RecordedObject } from '../durable/types.js'
import type { EventDraft, EventSubject } from '../objects/kubernetes/event-body.js'
import { describeReference, type ObjectKind, type ObjectReference } from '../objects/types.js'
import type { Reason } from '../reasons.js'
import type { Attempt } from './attempt.js'
import type { PublishedObject } from './directory-state.js'
import { sentence, type Circumstances } from './tell.js'

export interface Reporter {
  /** The Node's name; the empty string where nobody says: then nothing is told on it. */
  readonly node: string
  /** For people: `node n1`, `host h1`. */
  readonly place: string
  /** metadata.uid of the object as the source has it. */
  uid(reference: ObjectReference): string | undefined
}

const normal: ReadonlySet<Reason> = new Set(['Published', 'Removed', 'DriftRepaired'])
const never: ReadonlySet<Reason> = new Set(['Unchanged', 'Busy'])

const actions: Partial<Record<Reason, string>> = {
  Removed: 'Remove',
  DriftRepaired: 'Repair',
  HookFailed: 'RunHook',
  HistoryRewound: 'Watch',
  ConfigurationInvalid: 'Reload',
}

/** The events of one attempt to publish a directory. */
export function eventsOf(attempt: Attempt, circumstances: Circumstances, reporter: Reporter): EventDraft[] {
  switch (attempt.kind) {
    case 'waiting':
    case 'abandoned':
      return []
    case 'failed':
      return onNode(attempt.reason, attempt.error.message, reporter)
    case 'incomplete':
      return refused(attempt.findings, circumstances.directory, reporter)
    case 'published':
      return [...publication(attempt, circumstances, reporter), ...expired(attempt, circumstances.directory, reporter)]
  }
}

/** An event on this Node; none where its name is not known. */
export function onNode(reason: Reason, note: string, { node }: Reporter): EventDraft[] {
  if (node === '' || never.has(reason)) return []
  // As kubelet names its own Node in events (pkg/kubelet/kubelet.go, nodeRef): `kubectl describe node` looks for this uid, too.
  return [draft({ kind: 'Node', namespace: '', name: node, uid: node }, reason, note)]
}

/** An event on an object. `uid`: undefined where there is no such object, or none that could be read. */
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

function publication(
  attempt: Extract<Attempt, { kind: 'published' }>,
  { directory, drift, removed, changed }: Circumstances,
  reporter: Reporter,
): EventDraft[] {
  if (attempt.outcome === 'unchanged') return []
  const { place } = reporter
  const reason = drift === undefined ? 'Published' : 'DriftRepaired'
  const objects = changed.map((object) => {
    const note = `resourceVersion ${object.resourceVersion} is published to ${directory} on ${place}`
    return onObject(referenceOf(object), object.uid, 'Published', note)
  })
  const gone = removed.flatMap((object) => {
    const reference = referenceOf(object)
    const note = `it is published no more in ${directory} on ${place}`
    const nodeNote = `${directory}: ${describeReference(reference)} is published no more`
    return [onObject(reference, object.uid, 'Removed', note), ...onNode('Removed', nodeNote, reporter)]
  })
  return [...onNode(reason, sentence(directory, attempt, drift), reporter), ...objects, ...gone]
}

function refused(findings: readonly Finding[], directory: string, reporter: Reporter): EventDraft[] {
  const [first] = findings
  if (first === undefined) return []
  const messages = findings.map(({ message }) => message).join('; ')
  const objects = findings.flatMap(({ reason, message, reference }) =>
    // A source that does not answer is nothing about the object, and many nodes may have met it at once.
    reference === undefined || reason === 'SourceUnavailable'
      ? []
      : [onObject(reference, reporter.uid(reference), reason, `${message} (${directory} on ${reporter.place})`)],
  )
  return [...onNode(first.reason, `${directory}: ${messages}`, reporter), ...objects]
}

/** Each certificate that has expired: on the Node, and on the object that it came from. */
function expired(
  { warnings, certificates, objects }: Extract<Attempt, { kind: 'published' }>,
  directory: string,
  reporter: Reporter,
): EventDraft[] {
  if (warnings.length === 0) return []
  const now = new Date()
  return [
    ...warnings.flatMap(({ reason, message }) => onNode(reason, `${directory}: ${message}`, reporter)),
    ...objects.flatMap((object) =>
      dateFindings(certificatesOf(object, certificates), now).map(({ reason, message }) =>
        onObject(referenceOf(object), object.uid, reason, `${message} (${directory} on ${reporter.place})`),
      ),
    ),
  ]
}

function certificatesOf(
  { paths, combined = [] }: RecordedObject,
  certificates: readonly CertificateDate[],
): CertificateDate[] {
  return certificates.filter(({ file }) => paths.includes(file) || combined.includes(file))
}

function referenceOf({ kind, namespace, name }: PublishedObject): ObjectReference {
  return { kind: kind as ObjectKind, namespace, name }
}
