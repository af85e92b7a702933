import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { codeOf } from '../errors.js'
import { UsageError } from './exit-codes.js'

export interface FileRead {
  readonly content: Uint8Array
  readonly mode: number
}

/**
 * The bytes of a regular file that `--from` leads to. `most`: what is larger is refused as `tooLarge`; `follow`: also through a
 * symbolic link in the path's last part.
 * @throws UsageError for what cannot be read, or is no file
 * @throws Error where somebody wrote to the file meanwhile: its content may be torn
 */
export async function readFrom(
  path: string,
  { most, tooLarge, follow }: { readonly most: number; readonly tooLarge: string; readonly follow: boolean },
): Promise<FileRead> {
  // O_NONBLOCK: a pipe that took the file's place does not hold us up.
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | (follow ? 0 : constants.O_NOFOLLOW)
  const file = await open(path, flags).catch((error: unknown) => refuseUnreadable(path, error))
  try {
    const before = await file.stat()
    if (!before.isFile()) throw new UsageError(`--from: ${path} is not a regular file`)
    if (before.size > most) throw new UsageError(`--from: ${path} is ${tooLarge}`)
    const content = await file.readFile()
    const after = await file.stat()
    if (after.size !== content.length || after.mtimeMs !== before.mtimeMs) {
      throw new Error(
        `another program changed ${path} while holdfast read it: publish from a file that nobody writes to`,
      )
    }
    return { content, mode: before.mode }
  } finally {
    await file.close()
  }
}

/** @throws UsageError */
export function refuseUnreadable(path: string, error: unknown): never {
  const code = codeOf(error) ?? String(error)
  const problems: Readonly<Record<string, string>> = {
    ENOENT: 'no such file or directory',
    EACCES: 'this user may not read it',
  }
  throw new UsageError(`--from: ${path}: ${code}: ${problems[code] ?? 'could not read it'}`)
}
