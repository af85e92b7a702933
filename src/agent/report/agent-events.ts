import { hostname } from 'node:os'
import type { Log } from '../../log.js'
import type { EventDraft } from '../../kubernetes/events/event-body.js'
import type { EventRecorder } from '../../kubernetes/events/event-recorder.js'
import { hasObject } from '../../objects/same-state.js'
import type { ObjectReference, ObservedState, Source } from '../../objects/types.js'
import type { Meaning } from '../outcome.js'
import { draftsOf, onNode, onObject, type Reporter } from './report-events.js'

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
    uid: (reference) => uidOf(source.latest(reference)),
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
    this.#record(() => [onObject(reference, uidOf(observation), 'HistoryRewound', message)])
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

function uidOf(observation: ObservedState | undefined): string | undefined {
  return observation && hasObject(observation) ? observation.object.uid : undefined
}
