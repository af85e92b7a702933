import { describeReference, type ObjectReference } from '../objects/types.js'
import type { DirectoryConfiguration } from './types.js'

/** The objects that a directory is made of, each once, in the order of the configuration. */
export function referencesOf(directory: DirectoryConfiguration): ObjectReference[] {
  const found = new Map<string, ObjectReference>()
  for (const content of directory.contents) {
    const references = content.type === 'object' ? [content.reference] : content.from.map(({ reference }) => reference)
    for (const reference of references) {
      const name = describeReference(reference)
      if (!found.has(name)) found.set(name, reference)
    }
  }
  return [...found.values()]
}
