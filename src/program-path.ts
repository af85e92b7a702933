import { constants, promises as fsp } from 'node:fs'

/** The file of a program: a name without a slash is looked for as execvp(3) does; undefined: none of the directories has it. */
export async function programPath(name: string, directories: string): Promise<string | undefined> {
  if (name.includes('/')) return name
  for (const directory of directories.split(':')) {
    const path = `${directory}/${name}`
    const found = await fsp.access(path, constants.X_OK).then(
      () => fsp.stat(path),
      () => undefined,
    )
    if (found?.isFile() === true) return path
  }
  return undefined
}
