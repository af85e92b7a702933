import { parseSelector, selects, type Labels, type LabelSelector } from '../../label-selector.js'
import type { StoredObject } from '../../objects/stored-object.js'
import { field } from './api-error.js'

/** Which objects of a collection match the followed selectors: of all others, this keeps nothing. */
export class Selections {
  readonly #matches: readonly Match[]

  /** @param stored the selections themselves */
  constructor(stored: Iterable<StoredObject>) {
    this.#matches = [...stored].map((selection) => ({
      selection,
      selector: parseSelector(selection.reference.selector ?? ''),
      names: new Set(),
    }))
  }

  get any(): boolean {
    return this.#matches.length > 0
  }

  has(name: string): boolean {
    return this.#matches.some(({ names }) => names.has(name))
  }

  /** Each selector, with the names that match it. */
  get matches(): readonly { readonly selector: string; readonly names: ReadonlySet<string> }[] {
    return this.#matches.map(({ selection, names }) => ({ selector: selection.reference.selector ?? '', names }))
  }

  /** A list starts: objects that it does not bring do not match. */
  clear(): void {
    for (const { names } of this.#matches) names.clear()
  }

  /** Takes the present state of an object. `labels`: undefined where it does not exist. Answers whether that changes the matches. */
  set(name: string, labels: Labels | undefined): boolean {
    let changed = false
    for (const { selector, names } of this.#matches) {
      const matches = labels !== undefined && selects(selector, labels)
      if (matches === names.has(name)) continue
      changed = true
      if (matches) names.add(name)
      else names.delete(name)
    }
    return changed
  }

  /** Reports what matches: more or fewer objects may be followed when this returns. */
  report(): void {
    for (const { selection, names } of this.#matches) {
      selection.say({ state: 'selected', names: [...names].sort() })
      selection.current()
    }
  }
}

interface Match {
  readonly selection: StoredObject
  readonly selector: LabelSelector
  readonly names: Set<string>
}

/** metadata.labels, as the API server gives them. */
export function objectLabels(object: unknown): Labels {
  const labels = field(field(object, 'metadata'), 'labels')
  const entries = typeof labels === 'object' && labels !== null ? Object.entries(labels) : []
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
}
