import { objectName } from '../message-text.js'
import type { ObjectReference, ObservedState, Source } from '../objects/types.js'
import type { Content, DirectoryConfiguration, ObjectContent, SelectedContent } from './types.js'

/**
 * The objects and the selections that a directory observes, each once, in the order of the configuration. The objects that a
 * selection matches are among them once it is expanded.
 */
export function referencesOf(directory: Contents): ObjectReference[] {
  return [...byName(directory).values()]
}

/** Whether the directory observes this object or selection. */
export function needs(directory: DirectoryConfiguration, reference: ObjectReference): boolean {
  return byName(directory).has(objectName(reference))
}

type Contents = Pick<DirectoryConfiguration, 'contents'>

const references = new WeakMap<Contents, ReadonlyMap<string, ObjectReference>>()

/** Made once: each report of a source asks every directory, and a selector may match thousands. */
function byName(directory: Contents): ReadonlyMap<string, ObjectReference> {
  const known = references.get(directory)
  if (known !== undefined) return known
  const found = new Map<string, ObjectReference>()
  references.set(directory, found)
  for (const content of directory.contents) {
    for (const reference of referencesIn(content)) {
      const name = objectName(reference)
      if (!found.has(name)) found.set(name, reference)
    }
  }
  return found
}

/** What one content observes; of several parts, each. */
export function referencesIn(content: Content): readonly ObjectReference[] {
  return content.type === 'combine' ? content.from.map(({ reference }) => reference) : [content.reference]
}

/** The contents of a directory that select objects by their labels. */
export function selectionsOf(directory: Contents): SelectedContent[] {
  return directory.contents.filter((content) => content.type === 'selector')
}

interface Expansion {
  readonly states: readonly (ObservedState | undefined)[]
  readonly directory: DirectoryConfiguration
}

const expansions = new WeakMap<DirectoryConfiguration, Expansion>()

/**
 * The directory with a content for each object that a selection matches now, beside the selection itself. It is the same object each time
 * until an answer about one of its selections changes.
 */
export function expand(directory: DirectoryConfiguration, latest: Source['latest']): DirectoryConfiguration {
  const selections = selectionsOf(directory)
  if (selections.length === 0) return directory
  const states = selections.map(({ reference }) => latest(reference))
  const known = expansions.get(directory)
  if (known?.states.every((state, index) => state === states[index])) return known.directory
  const contents = directory.contents.flatMap((content): readonly Content[] =>
    content.type === 'selector' ? [content, ...membersOf(content, latest(content.reference))] : [content],
  )
  const expanded = { ...directory, contents }
  expansions.set(directory, { states, directory: expanded })
  return expanded
}

function membersOf(content: SelectedContent, state: ObservedState | undefined): ObjectContent[] {
  if (state?.state !== 'selected') return []
  const { place, reference, optional } = content
  const { kind, namespace } = reference
  return state.names.map((name) => ({
    type: 'object',
    place,
    reference: { kind, namespace, name },
    into: withName(content.into, name),
    optional,
    items: content.items?.map((item) => ({ ...item, path: withName(item.path, name) })),
    selected: true,
  }))
}

function withName(pattern: string, name: string): string {
  return pattern.replaceAll(placeholder, name)
}

/** In a path, the name of an object that a selector matches. */
export const placeholder = '{name}'
