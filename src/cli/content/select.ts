import { UsageError } from '../words/exit-codes.js'
import { pathArgument } from '../words/target.js'

/* PATHs of the command line that name directories of the configuration. */

interface Known<Directory> {
  readonly file: string
  readonly directories: readonly Directory[]
}

/** The directory with this path. `otherwise`: advice beside naming a configured one. @throws UsageError */
export function configuredDirectory<Directory extends { readonly path: string }>(
  { file, directories }: Known<Directory>,
  target: string,
  otherwise?: string,
): Directory {
  const found = directories.find(({ path }) => path === target)
  if (found !== undefined) return found
  const known = directories.map(({ path }) => path).join(', ') || 'none'
  const more = otherwise === undefined ? '' : `; ${otherwise}`
  throw new UsageError(`${target} is not a directory of ${file}, which has ${known}${more}`)
}

/** The named directories, each once, in the order of the configuration; all of them where the line names none. @throws UsageError */
export function selected<Directory extends { readonly path: string }>(
  configuration: Known<Directory>,
  paths: readonly string[],
): readonly Directory[] {
  if (paths.length === 0) return configuration.directories
  const named = new Set(paths.map((path) => configuredDirectory(configuration, pathArgument(path))))
  return configuration.directories.filter((directory) => named.has(directory))
}
