/**
 * The newest known version of one object, and the rule that it never goes backwards.
 *
 * The floor is the highest resource version that was observed or published. A version below it comes from a lagging
 * cache, or from an etcd that was restored from a backup; only a fresh read decides which. So `offer` refuses it as
 * stale, and the caller comes back with `confirm` and the answer of a read that started after that.
 */
import { compareResourceVersions, isComparable } from './resource-version.js'
import type { Labels } from '../label-selector.js'
import type { ContentBudget } from './content-budget.js'
import { hasObject, isSameContent, isSameState, unloaded } from './same-state.js'
import type { LoadedState, ObjectReference, ObjectVersion, ObservedState, SourceListener } from './types.js'

/** An observation of an object, and as of which resource version. */
export interface ObservedVersion {
  readonly observation: LoadedState
  /** Of the object; for an absence, of the list or of the deletion. Undefined where the server gave none. */
  readonly resourceVersion: string | undefined
  /** The empty string where it is not known; undefined for an absence. */
  readonly uid: string | undefined
  /** Where the source can tell them; an absence has none. */
  readonly labels?: Labels
}

interface Floor {
  readonly resourceVersion: string
  readonly uid: string | undefined
}

export class StoredObject {
  #latest: ObservedState | undefined
  #floor: Floor | undefined
  /** The highest floor of the history that a rewind has undone: a publication out of it is no floor any more. */
  #undone: string | undefined
  #forgotten = false
  #isBehind = false

  constructor(
    readonly reference: ObjectReference,
    private readonly listener: Pick<SourceListener, 'observed' | 'confirmed' | 'told'>,
    private readonly budget?: ContentBudget,
  ) {}

  get latest(): ObservedState | undefined {
    return this.#latest
  }

  /** The source was told of a newer version, and has not read it yet. */
  get isBehind(): boolean {
    return this.#isBehind
  }

  /** Another version than the known one is told, and has yet to be read. */
  tell(): void {
    if (this.#isBehind || this.#forgotten) return
    this.#isBehind = true
    this.listener.told?.(this.reference)
  }

  /** The known version is the newest that was told. */
  caughtUp(): void {
    this.#isBehind = false
  }

  /** Below this, only a fresh read decides. */
  get floor(): ObjectVersion | undefined {
    return this.#floor && { resourceVersion: this.#floor.resourceVersion, uid: this.#floor.uid ?? '' }
  }

  /** Raises the floor. A version that cannot be compared (it was published out of files) is none. */
  published(version: ObjectVersion): void {
    if (this.#latest?.state === 'present' && this.#latest.object.resourceVersion === version.resourceVersion) {
      this.budget?.published(this)
    }
    if (!isComparable(version.resourceVersion)) return
    if (this.#undone !== undefined && !isAbove(version.resourceVersion, this.#undone)) return
    this.#raise(version)
  }

  /** Whether an observation as of this version is older than the known one, so that only a fresh read decides. */
  isAbove(resourceVersion: string | undefined): boolean {
    if (resourceVersion === undefined || !isComparable(resourceVersion)) return true
    return this.#floor !== undefined && isAbove(this.#floor.resourceVersion, resourceVersion)
  }

  /** Takes an observation, unless it is older than the floor or contradicts it: then nothing changes and a fresh read must decide. */
  offer(observed: ObservedVersion): 'accepted' | 'stale' {
    if (this.#isStale(observed)) return 'stale'
    this.#accept(observed, false)
    return 'accepted'
  }

  /** Takes what a fresh read has seen, which accepts no cache. If it is older than the floor, history was rewound. */
  confirm(observed: ObservedVersion): void {
    const { resourceVersion } = observed
    const rewound = resourceVersion !== undefined && isComparable(resourceVersion) && this.#isStale(observed)
    if (rewound && this.#floor !== undefined) {
      if (this.#undone === undefined || isAbove(this.#floor.resourceVersion, this.#undone)) {
        this.#undone = this.#floor.resourceVersion
      }
      this.#floor = undefined
    }
    this.#accept(observed, rewound)
  }

  /** Sets the state without a look at versions: for unreadable objects, and for sources that have no order. */
  say(observation: ObservedState, details = { rewound: false }): void {
    if (this.#forgotten || isSameState(this.#latest, observation)) return
    this.#latest = observation
    if (observation.state === 'present') this.budget?.holds(this, storedSize(observation.object.data))
    else this.budget?.forget(this)
    this.listener.observed(this.reference, observation, details)
  }

  /** The source has confirmed that the last reported state is current. */
  current(): void {
    if (this.#forgotten) return
    this.listener.confirmed(this.reference)
  }

  /** Reports nothing more: work still under way for the object comes to nothing. */
  forget(): void {
    this.#forgotten = true
    this.budget?.forget(this)
  }

  /** Keeps of the content no more than its digest. */
  unload(): void {
    if (this.#latest?.state === 'present') this.#latest = { state: 'unloaded', object: unloaded(this.#latest.object) }
  }

  #accept(observed: ObservedVersion, rewound: boolean): void {
    const { resourceVersion, uid } = observed
    if (resourceVersion !== undefined) this.#raise({ resourceVersion, uid })
    this.say(observed.observation, { rewound })
    this.current()
  }

  #raise(version: Floor): void {
    if (!isComparable(version.resourceVersion)) return
    if (this.#floor !== undefined && !isAbove(version.resourceVersion, this.#floor.resourceVersion)) return
    this.#floor = { resourceVersion: version.resourceVersion, uid: version.uid }
  }

  #isStale({ resourceVersion, uid, observation }: ObservedVersion): boolean {
    if (resourceVersion === undefined || !isComparable(resourceVersion)) return true
    if (this.#floor === undefined) return false
    const order = compareResourceVersions(resourceVersion, this.#floor.resourceVersion) ?? -1
    if (order !== 0) return order < 0
    // The same version of another object, or of other content, comes from another history.
    if (uid !== this.#floor.uid && uid !== '' && this.#floor.uid !== '') return true
    return (
      this.#latest !== undefined &&
      hasObject(this.#latest) &&
      this.#latest.object.resourceVersion === resourceVersion &&
      hasObject(observation) &&
      !isSameContent(this.#latest.object, observation.object)
    )
  }
}

/** Bytes of memory that a key takes beside its name and its value, about: an entry of a map, and the two objects of a buffer. */
const perKey = 256

/** Bytes of memory that content takes, about. */
export function storedSize(data: ReadonlyMap<string, Uint8Array>): number {
  let size = 0
  for (const [key, bytes] of data) size += perKey + key.length + bytes.length
  return size
}

function isAbove(a: string, b: string): boolean {
  return (compareResourceVersions(a, b) ?? 0) > 0
}
