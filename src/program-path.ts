import { constants, promises as fsp } from 'node:fs'

/** The file of a program: a name without a slash is looked for as execvp(3) does; undefined: none of the directories has it. */
export async function programPath(name: string, directories: string): Promise<string | undefined> {
  if (name.includes('/')) return name
  for (const directory of directories.split(':')) {
    const path = `${directory}/${name}`
    const found = await fsp
      .access(path, constants.X_OK)
      .then(() => fsp.stat(path))
      .catch(() => undefined)
    if (found?.isFile() === true) return path
  }
  return undefined
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
