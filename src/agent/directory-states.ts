import { expand, needs, referencesOf, selectionsOf } from '../config/references.js'
import type { DirectoryConfiguration } from '../config/types.js'
import { objectName } from '../object-name.js'
import type { ObjectReference, Source } from '../objects/types.js'
import { DirectoryState, hooksOperationOf, publishOperationOf } from './directory-state.js'

/** The directories that the agent keeps, found by path, by operation, and by the objects that they need. */
export class DirectoryStates {
  readonly #byOperation = new Map<string, DirectoryState>()
  /** What each directory is configured to need, until one comes, goes, or is configured in another way. */
  #needed: { readonly byName: ReadonlyMap<string, DirectoryState[]>; readonly selecting: DirectoryState[] } | undefined;

  [Symbol.iterator](): IterableIterator<DirectoryState> {
    return this.#byOperation.values()
  }

  add(configuration: DirectoryConfiguration): DirectoryState {
    const state = new DirectoryState(configuration, () => (this.#needed = undefined))
    this.#byOperation.set(state.publishOperation, state)
    this.#needed = undefined
    return state
  }

  byPath(path: string): DirectoryState | undefined {
    return this.byOperation(publishOperationOf(path))
  }

  byOperation(operation: string): DirectoryState | undefined {
    return this.#byOperation.get(operation)
  }

  byHooksOperation(operation: string): DirectoryState | undefined {
    return this.byPath(operation.slice(hooksOperationOf('').length))
  }

  remove(path: string): void {
    this.byPath(path)?.end()
    this.#byOperation.delete(publishOperationOf(path))
    this.#needed = undefined
  }

  /** The old path of the directory at this one, during the move. */
  following(path: string): DirectoryState | undefined {
    return [...this].find(({ configuration }) => configuration.follows === path)
  }

  /** The directories that need this object, or this selection, by what their selections match now. */
  needing(reference: ObjectReference, latest: Source['latest']): DirectoryState[] {
    this.#needed ??= neededBy(this)
    const { byName, selecting } = this.#needed
    const named = byName.get(objectName(reference)) ?? []
    const selected = selecting.filter(
      (state) => !named.includes(state) && needs(expand(state.configuration, latest), reference),
    )
    return [...named, ...selected]
  }
}

/** Each report of a source looks up the directories that need its object, among hundreds: most need the objects that they name. */
function neededBy(states: Iterable<DirectoryState>) {
  const byName = new Map<string, DirectoryState[]>()
  const selecting: DirectoryState[] = []
  for (const state of states) {
    const { configuration } = state
    // What follows another path gets its content from there.
    if (configuration.follows !== undefined) continue
    if (selectionsOf(configuration).length > 0) selecting.push(state)
    for (const reference of referencesOf(configuration)) {
      const name = objectName(reference)
      byName.set(name, [...(byName.get(name) ?? []), state])
    }
  }
  return { byName, selecting }
}

/** Whether the directory holds something that is not optional: only such a one counts for readiness, and no old path. */
export function hasRequired(configuration: DirectoryConfiguration): boolean {
  return configuration.follows === undefined && configuration.contents.some(({ optional }) => !optional)
}
