import { isDeepStrictEqual } from 'node:util'
import type { AgentConfiguration, DirectoryConfiguration } from '../config/types.js'
import { withOldPaths } from './leaving/moves.js'

/** What a configuration that was read again asks to be done. */
export interface ConfigurationChange {
  readonly added: readonly DirectoryConfiguration[]
  readonly changed: readonly DirectoryConfiguration[]
  /** Paths that are not the agent's any more; what becomes of them is for `onDrop` to say. */
  readonly dropped: readonly string[]
  readonly sourceChanged: boolean
}

/** Compares two configurations. Where a directory stands in the file does not matter. */
export function configurationChange(before: AgentConfiguration, after: AgentConfiguration): ConfigurationChange {
  const [old, directories] = [withOldPaths(before.directories), withOldPaths(after.directories)]
  const known = new Map(old.map((directory) => [directory.path, directory]))
  const paths = new Set(directories.map(({ path }) => path))
  return {
    added: directories.filter(({ path }) => !known.has(path)),
    changed: directories.filter((directory) => {
      const previous = known.get(directory.path)
      return previous !== undefined && !isDeepStrictEqual(withoutPlaces(previous), withoutPlaces(directory))
    }),
    dropped: old.map(({ path }) => path).filter((path) => !paths.has(path)),
    sourceChanged: !isDeepStrictEqual(before.source, after.source),
  }
}

function withoutPlaces(directory: DirectoryConfiguration): object {
  const contents = directory.contents.map((content) => ({ ...content, place: '' }))
  const beforePublish = directory.beforePublish.map((check) => ({ ...check, place: '' }))
  const afterPublish = directory.afterPublish.map((hook) => ({ ...hook, place: '' }))
  return { ...directory, place: '', contents, beforePublish, afterPublish }
}
