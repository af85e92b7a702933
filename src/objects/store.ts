/** The objects that a source follows, and the newest known version of each. */
import { objectName } from '../message-text.js'
import type { ContentBudget } from './content-budget.js'
import { StoredObject } from './stored-object.js'
import type {
  LoadedState,
  ObjectReference,
  ObjectVersion,
  ObservedState,
  SourceListener,
  DesiredObject,
} from './types.js'

export interface Following {
  readonly added: readonly StoredObject[]
  readonly dropped: readonly StoredObject[]
}

/** Objects that are not followed any more, of which the newest known version is still known. */
const mostLeft = 10_000

export class ObjectStore {
  readonly #objects = new Map<string, StoredObject>()
  /** An object that a selector matches again must not come back older than it went, unless history was rewound, and the report says so. */
  readonly #left = new Map<string, ObjectVersion>()
  readonly #subscribers = new Set<() => void>()
  readonly #listener: Pick<SourceListener, 'observed' | 'confirmed' | 'told'>

  /** Without a budget all content stays in memory. */
  constructor(
    listener: SourceListener,
    private readonly budget?: ContentBudget,
  ) {
    this.#listener = {
      observed: (reference, observation, details) => {
        listener.observed(reference, observation, details)
        for (const subscriber of this.#subscribers) subscriber()
      },
      confirmed: (reference) => listener.confirmed(reference),
      told: (reference) => listener.told?.(reference),
    }
  }

  /** Keeps these and forgets all others; a published version raises the floor of an object that stays, too. */
  follow(desired: readonly DesiredObject[]): Following {
    const keys = new Set(desired.map(({ reference }) => objectName(reference)))
    const dropped = [...this.#objects.values()].filter(({ reference }) => !keys.has(objectName(reference)))
    for (const stored of dropped) this.#forget(stored)
    const added: StoredObject[] = []
    for (const { reference, published } of desired) {
      const key = objectName(reference)
      let stored = this.#objects.get(key)
      if (stored === undefined) {
        stored = new StoredObject(reference, this.#listener, this.budget)
        const left = this.#left.get(key)
        if (left !== undefined) stored.published(left)
        this.#left.delete(key)
        this.#objects.set(key, stored)
        added.push(stored)
      }
      if (published !== undefined) stored.published(published)
    }
    return { added, dropped }
  }

  latest(reference: ObjectReference): ObservedState | undefined {
    return this.#objects.get(objectName(reference))?.latest
  }

  /** The same, unless its content is not in memory. */
  loaded(reference: ObjectReference): LoadedState | undefined {
    const latest = this.latest(reference)
    return latest?.state === 'unloaded' || latest?.state === 'selected' ? undefined : latest
  }

  find(reference: ObjectReference): StoredObject | undefined {
    return this.#objects.get(objectName(reference))
  }

  published(reference: ObjectReference, version: ObjectVersion): void {
    this.#objects.get(objectName(reference))?.published(version)
  }

  values(): IterableIterator<StoredObject> {
    return this.#objects.values()
  }

  /** Forgets all: the listener hears nothing more. */
  close(): void {
    for (const stored of this.#objects.values()) stored.forget()
  }

  #forget(stored: StoredObject): void {
    stored.forget()
    const key = objectName(stored.reference)
    this.#objects.delete(key)
    if (stored.floor === undefined) return
    this.#left.set(key, stored.floor)
    const [oldest] = this.#left.keys()
    if (this.#left.size > mostLeft && oldest !== undefined) this.#left.delete(oldest)
  }

  /** Calls back after each change of an observation, until the function that it returns is called. */
  subscribe(changed: () => void): () => void {
    this.#subscribers.add(changed)
    return () => void this.#subscribers.delete(changed)
  }
}
