import { hostname } from 'node:os'
import type { Log } from '../../log.js'
import type { EventDraft, EventSubject } from '../../kubernetes/events/event-body.js'
import type { EventRecorder } from '../../kubernetes/events/event-recorder.js'
import { hasObject } from '../../objects/same-state.js'
import type { ObjectReference, ObservedState, Source } from '../../objects/types.js'
import type { Meaning, EventNote } from '../outcome.js'
import type { Reason } from '../../reasons.js'

/*
 * Which events report an outcome. An event about one object is on that object, in its namespace; an event about this node's disk, or about
 * a directory that cannot be published, is on the Node. `kubectl describe node` shows how the node stands, and the events of an object show
 * which nodes have it.
 */

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

/** Milliseconds at the end for unsent events. */
const closeTimeout = 2_000

/** Reports to the cluster. Calls return at once, and never throw. */
export interface AgentEvents {
  pass(meaning: Pick<Meaning, 'events'>): void
  /** A fresh read has confirmed an older version as current. */
  rewound(reference: ObjectReference, observation: ObservedState, message: string): void
  hookFailed(message: string): void
  configurationInvalid(message: string): void
  /** After a reload of the configuration: the API server may now allow what it denied before. */
  reloaded(): void
  /** Sends what waits, for two seconds at most. */
  close(): Promise<void>
}

/** For sources without a cluster, and for commands that end at once. */
export const noEvents: AgentEvents = {
  pass() {},
  rewound() {},
  hookFailed() {},
  configurationInvalid() {},
  reloaded() {},
  close: () => Promise.resolve(),
}

interface EventsOptions {
  readonly log: Log
  /** This node's name in the cluster; the empty string where it is unknown. */
  readonly node: string
}

/** Events to the API server that the source asks, if it asks one; their code is loaded only then. */
export async function openEvents(source: Source, { log, node }: EventsOptions): Promise<AgentEvents> {
  if (source.api === undefined) return noEvents
  // eslint-disable-next-line no-restricted-syntax -- the start comes here
  const { EventRecorder } = await import('../../kubernetes/events/event-recorder.js')
  const instance = node === '' ? hostname() : node
  const reporter: Reporter = {
    node,
    place: node === '' ? `host ${instance}` : `node ${node}`,
    uid: (reference) => observedUid(source.latest(reference)),
  }
  return new ClusterEvents(new EventRecorder(source.api, { log, instance }), reporter, log)
}

class ClusterEvents implements AgentEvents {
  constructor(
    private readonly recorder: EventRecorder,
    private readonly reporter: Reporter,
    private readonly log: Log,
  ) {}

  pass(meaning: Pick<Meaning, 'events'>): void {
    this.#record(() => draftsOf(meaning, this.reporter))
  }

  rewound(reference: ObjectReference, observation: ObservedState, message: string): void {
    this.#record(() => [objectEvent(reference, observedUid(observation), 'HistoryRewound', message)])
  }

  hookFailed(message: string): void {
    this.#record(() => onNode('HookFailed', message, this.reporter))
  }

  configurationInvalid(message: string): void {
    this.#record(() => onNode('ConfigurationInvalid', message, this.reporter))
  }

  reloaded(): void {
    this.recorder.retryDenied()
  }

  close(): Promise<void> {
    return this.recorder.close(closeTimeout)
  }

  /** Events are no reason to fail: an error here is logged, and nothing else comes of it. */
  #record(drafts: () => readonly EventDraft[]): void {
    try {
      for (const draft of drafts()) this.recorder.record(draft)
    } catch (error) {
      this.log.error({}, `an internal error of holdfast, in its events: ${String(error)}`)
    }
  }
}

function observedUid(observation: ObservedState | undefined): string | undefined {
  return observation && hasObject(observation) ? observation.object.uid : undefined
}

/** @internal */
export interface Reporter {
  /** The Node's name; the empty string where it is unknown: then the Node gets no events. */
  readonly node: string
  /** For people: `node n1`, `host h1`. */
  readonly place: string
  /** metadata.uid of the object as the source has it. */
  uid(reference: ObjectReference): string | undefined
}

/** The events of one pass over a directory. @internal */
export function draftsOf({ events }: Pick<Meaning, 'events'>, reporter: Reporter): EventDraft[] {
  return events.flatMap((note) => draftsOfNote(note, reporter))
}

function draftsOfNote(note: EventNote, reporter: Reporter): EventDraft[] {
  if (note.on === 'node') return onNode(note.reason, note.message, reporter)
  return [objectEvent(note.on, note.uid ?? reporter.uid(note.on), note.reason, note.message(reporter.place))]
}

/** An event on this Node; none where its name is not known. */
function onNode(reason: Reason, note: string, { node }: Reporter): EventDraft[] {
  if (node === '' || never.has(reason)) return []
  // As kubelet names its own Node in events (pkg/kubelet/kubelet.go, nodeRef): `kubectl describe node` looks for this uid, too.
  return [draft({ kind: 'Node', namespace: '', name: node, uid: node }, reason, note)]
}

/** An event on an object. `uid`: undefined where there is no such object, or no readable one. */
function objectEvent(
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

/** Names of staging, records and earlier contents differ with each try, and would make each try another event. */
function withoutChance(note: string): string {
  return note
    .replace(/(\.holdfast-[0-9a-f]{16}[-.])[0-9a-f]+/g, '$1…')
    .replace(/\.\.[1-9][0-9]{0,14}-[0-9a-f]{16}/g, '..…')
}
