import type { DirectoryConfiguration } from '../config/types.js'
import { describeReference, type ObjectReference } from '../objects/types.js'
import { referencesOf } from '../config/references.js'
import { DirectoryState } from './directory-state.js'
import { publishOperation } from './operations.js'

/** The directories that the agent keeps, found by path, by operation, and by the objects that they need. */
export class StateRegistry {
  readonly #byOperation = new Map<string, DirectoryState>();

  [Symbol.iterator](): IterableIterator<DirectoryState> {
    return this.#byOperation.values()
  }

  add(configuration: DirectoryConfiguration): DirectoryState {
    const state = new DirectoryState(configuration)
    this.#byOperation.set(publishOperation(configuration.path), state)
    return state
  }

  byPath(path: string): DirectoryState | undefined {
    return this.byOperation(publishOperation(path))
  }

  byOperation(operation: string): DirectoryState | undefined {
    return this.#byOperation.get(operation)
  }

  remove(path: string): void {
    this.#byOperation.delete(publishOperation(path))
  }

  /** The directories that need this object. */
  needing(reference: ObjectReference): DirectoryState[] {
    const name = describeReference(reference)
    return [...this].filter(({ configuration }) =>
      referencesOf(configuration).some((needed) => describeReference(needed) === name),
    )
  }
}
