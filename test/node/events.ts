/** The events that the agents of a cluster have recorded. */
import type { Cluster } from '../e2e/cluster.js'
import { until } from '../until.js'

/** An event of events.k8s.io/v1; only what the tests look at. */
export interface RecordedEvent {
  readonly type: string
  readonly reason: string
  readonly note: string
  readonly metadata: { readonly namespace: string }
  readonly reportingController: string
  readonly reportingInstance: string
  readonly regarding: { readonly kind: string; readonly name: string; readonly namespace?: string }
}

/** Waits for an event with this reason about an object: `Node/node-1`, `Secret/serving`. */
export function recordedEvent(
  { api }: Cluster,
  reason: string,
  object: string,
  found: (event: RecordedEvent) => boolean = () => true,
): Promise<RecordedEvent> {
  return until(
    `an event ${reason} about ${object}`,
    async () => {
      const list = await api.admin.demand('GET', '/apis/events.k8s.io/v1/events')
      const all = (list as unknown as { items: RecordedEvent[] }).items.filter(
        ({ regarding }) => `${regarding.kind}/${regarding.name}` === object,
      )
      const event = all.find((each) => each.reason === reason && found(each))
      if (event) return event
      throw new Error(all.map((each) => `${each.reason}: ${each.note}`).join('; ') || 'none at all')
    },
    { within: 90_000, every: 100 },
  )
}
