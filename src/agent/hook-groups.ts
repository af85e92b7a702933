import type { DirectoryState } from './directory-state.js'

/**
 * Which directories run their hooks together: those of one file system that share a hook, by its action, so that it runs once for all of
 * them. Answers the group of each directory's operation; directories of several file systems never wait for one another.
 */
export function hookGroups(
  states: Iterable<DirectoryState>,
  fileSystemOf: (path: string) => string,
): (operation: string) => string {
  const groups = new Map<string, Set<DirectoryState>>()
  const ofState = new Map<DirectoryState, Set<DirectoryState>>()
  for (const state of states) {
    let group = new Set([state])
    for (const { key } of state.configuration.afterPublish) {
      const hook = `${fileSystemOf(state.path)} ${key}`
      const other = groups.get(hook)
      if (other !== undefined && other !== group) group = merged(group, other, groups)
      groups.set(hook, group)
    }
    for (const member of group) ofState.set(member, group)
  }
  const names = new Map<string, string>()
  for (const [state, group] of ofState) {
    const operations = [...group].map(({ hooksOperation }) => hooksOperation).sort()
    names.set(state.hooksOperation, operations[0] ?? '')
  }
  return (operation) => names.get(operation) ?? operation
}

function merged<T>(a: Set<T>, b: Set<T>, groups: Map<string, Set<T>>): Set<T> {
  const both = new Set([...a, ...b])
  for (const [hook, group] of groups) if (group === a || group === b) groups.set(hook, both)
  return both
}
