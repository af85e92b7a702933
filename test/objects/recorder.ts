/** A listener that remembers its reports, so that a test can wait for one. */
import { performance } from 'node:perf_hooks'
import { clearTimeout, setTimeout } from 'node:timers'
import { objectName } from '../../src/message-text.js'
import type {
  ObjectKind,
  ObjectReference,
  ObservedState,
  SourceListener,
  UnknownState,
  WatchRestartReason,
} from '../../src/objects/types.js'
import { busyness } from '../until.js'

export interface Reported {
  readonly object: string
  readonly observation: ObservedState
  readonly rewound: boolean
}

/** Milliseconds after which something that was waited for is not coming: more than any starved machine needs. */
const patience = 60_000
/** Milliseconds between looks at what no call of a listener tells. */
const glance = 20

export class Recorder implements SourceListener {
  readonly reported: Reported[] = []
  readonly heartbeats: string[] = []
  readonly restarts: WatchRestartReason[] = []
  /** Why each watch was lost; undefined where its time was over. */
  readonly losses: (UnknownState | undefined)[] = []
  readonly #waiting = new Set<() => void>()

  observed(reference: ObjectReference, observation: ObservedState, { rewound }: { rewound: boolean }): void {
    this.reported.push({ object: objectName(reference), observation, rewound })
    this.#wake()
  }

  confirmed(reference: ObjectReference): void {
    this.heartbeats.push(objectName(reference))
    this.#wake()
  }

  watchRestarted(reason: WatchRestartReason, _: readonly ObjectReference[], lost?: UnknownState): void {
    this.restarts.push(reason)
    this.losses.push(lost)
    this.#wake()
  }

  /** The last thing that was reported of an object. */
  last(reference: ObjectReference): Reported | undefined {
    return this.reported.findLast(({ object }) => object === objectName(reference))
  }

  /** Resolves as soon as the condition holds: it checks after each report, and meanwhile. */
  async until(what: string, condition: () => boolean): Promise<void> {
    const late = performance.now() + patience * busyness()
    while (!condition()) {
      if (performance.now() > late)
        throw new Error(`in vain: ${what}; reported: ${JSON.stringify(this.reported.slice(-5))}`)
      await new Promise<void>((resolve) => {
        const end = () => {
          clearTimeout(timer)
          this.#waiting.delete(end)
          resolve()
        }
        const timer = setTimeout(end, glance)
        this.#waiting.add(end)
      })
    }
  }

  /** Resolves when the last that was reported of the object has this state; `content`: the text under its key `a`. */
  async untilState(reference: ObjectReference, state: ObservedState['state'], content?: string): Promise<Reported> {
    await this.until(`${objectName(reference)} ${state} ${content ?? ''}`, () => {
      const last = this.last(reference)
      return last?.observation.state === state && (content === undefined || contentOf(last.observation) === content)
    })
    const last = this.last(reference)
    if (!last) throw new Error('nothing was reported')
    return last
  }

  #wake(): void {
    for (const wake of this.#waiting) wake()
  }
}

/** The text under the key `a`. */
export function contentOf(observation: ObservedState | undefined): string | undefined {
  if (observation?.state !== 'present') return undefined
  const bytes = observation.object.data.get('a')
  return bytes && Buffer.from(bytes).toString()
}

export function reference(name: string, kind: ObjectKind = 'Secret', namespace = 'kube-system'): ObjectReference {
  return { kind, namespace, name }
}
