import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { codeOf } from '../errors.js'
import { NotPublished, UsageError } from './exit-codes.js'

export interface FoundFile {
  readonly mode: number
  readonly size: number
}

/**
 * Opens a regular file that `--from` leads to. `follow`: also through a symbolic link in the path's last part.
 * @throws UsageError for what cannot be read, or is no file
 */
async function openFrom(path: string, follow: boolean): Promise<{ file: FileHandle } & FoundFile> {
  // O_NONBLOCK: a pipe that took the file's place does not hold us up.
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | (follow ? 0 : constants.O_NOFOLLOW)
  const file = await open(path, flags).catch((error: unknown) => refuseUnreadable(path, error))
  const status = await file.stat()
  if (status.isFile()) return { file, mode: status.mode, size: status.size }
  await file.close()
  throw new UsageError(`--from: ${path} is not a regular file`)
}

/** Mode and size of a regular file that this process may read. @throws UsageError for any other */
export async function examineFrom(path: string): Promise<FoundFile> {
  const { file, ...found } = await openFrom(path, false)
  await file.close()
  return found
}

/**
 * The bytes of a regular file, at most `most`.
 * @throws UsageError for what cannot be read, is no file, or is larger
 * @throws NotPublished, of `target`, where somebody wrote to the file meanwhile: its content may be torn
 */
export async function* readFrom(path: string, target: string, most = Infinity): AsyncIterable<Uint8Array> {
  const { file } = await openFrom(path, true)
  try {
    const before = await file.stat({ bigint: true })
    if (Number(before.size) > most) throw new UsageError(`--from: ${path} is larger than ${most / 1024 / 1024} MiB`)
    let size = 0n
    for await (const chunk of file.createReadStream({ autoClose: false }) as AsyncIterable<Uint8Array>) {
      size += BigInt(chunk.length)
      yield chunk
    }
    const after = await file.stat({ bigint: true })
    if (after.size !== size || after.mtimeNs !== before.mtimeNs || after.ctimeNs !== before.ctimeNs) {
      throw new NotPublished(
        `another program changed ${path} while holdfast read it: publish from a file that nobody writes to`,
        target,
      )
    }
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
