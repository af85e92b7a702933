import { closeSync, constants, fstatSync, openSync } from 'node:fs'
import { codeOf } from '../../errors.js'
import { readRegularFile, UnfitFileError } from '../../regular-file.js'
import { NotPublished, UsageError } from '../words/exit-codes.js'

export interface FoundFile {
  readonly mode: number
  readonly size: number
}

/*
 * These short calls are synchronous: the process has nothing else to do, and each hop to a thread costs it more than the call.
 */

/** Mode and size of a regular file that `--from` leads to, and that this process may read. @throws UsageError for any other */
export function examineFrom(path: string): FoundFile {
  // O_NONBLOCK: a pipe that took the file's place does not hold us up.
  const descriptor = orRefuse(path, () => openSync(path, constants.O_RDONLY | constants.O_NONBLOCK))
  const status = fstatSync(descriptor)
  closeSync(descriptor)
  if (status.isFile()) return { mode: status.mode, size: status.size }
  throw new UsageError(`--from: ${path} is not a regular file`)
}

/**
 * The bytes of a regular file, at most `most`, for those who need them in memory.
 * @throws UsageError for a path that is unreadable, no file, or larger
 * @throws NotPublished, of `target`, where another process wrote to the file meanwhile: its content may be torn
 */
export async function readFrom(path: string, target: string, most: number): Promise<Uint8Array> {
  const { size } = examineFrom(path)
  if (size > most) throw new UsageError(`--from: ${path} is larger than ${most / 1024 / 1024} MiB`)
  try {
    return await readRegularFile(path, most, { steady: true })
  } catch (error) {
    // It was a small regular file.
    if (!(error instanceof UnfitFileError)) return refuseUnreadable(path, error)
    throw new NotPublished(
      `another program changed ${path} while holdfast read it: publish from a file that nobody writes to`,
      target,
    )
  }
}

/** The answer of a look at a path of `--from`. @throws UsageError where it fails */
export function orRefuse<T>(path: string, look: () => T): T {
  try {
    return look()
  } catch (error) {
    return refuseUnreadable(path, error)
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
