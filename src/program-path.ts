import { constants, promises as fsp } from 'node:fs'
import { resolve } from 'node:path'

/** The file of a program: a name without a slash is looked for as execvp(3) does; undefined: none of the directories has it. */
export async function programPath(name: string, directories: string): Promise<string | undefined> {
  if (name.includes('/')) return name
  for (const directory of directories.split(':')) {
    // An empty one is the working directory (execvp(3)).
    const path = resolve(directory, name)
    const found = await fsp
      .access(path, constants.X_OK)
      .then(() => fsp.stat(path))
      .catch(() => undefined)
    if (found?.isFile() === true) return path
  }
  return undefined
}

/** The absolute directories of a `PATH`: the others depend on the working directory, whose owner would choose the program. */
export function absoluteDirectories(directories = ''): string {
  // Without PATH, or with an empty one, execvp(3) looks in places of its own choice.
  return (
    directories
      .split(':')
      .filter((directory) => directory.startsWith('/'))
      .join(':') || '/bin:/usr/bin'
  )
}

/**
 * The error code of a program that could not be started. execvp(3) answers EACCES where it may not search a directory of `PATH`, as after
 * `su` from root, though no other directory has the program: that is ENOENT here.
 */
export async function startErrorCode(
  code: string | undefined,
  name: string,
  directories: string | undefined,
): Promise<string | undefined> {
  if (code !== 'EACCES') return code
  return (await programPath(name, directories ?? '')) === undefined ? 'ENOENT' : code
}
