import { isSystemError } from '../errors.js'
import { DurableWriteError, wrapError } from '../durable/errors.js'
import type { FileSystem } from '../durable/file-system.js'
import { lock } from '../durable/lock.js'
import { checkTarget } from '../durable/request.js'
import { openParent, resolve } from '../durable/resolve.js'
import { Scope } from '../durable/scope.js'

export interface Held {
  release(): Promise<void>
}

/**
 * Takes an advisory lock (flock) on a file, which is created, 0600, where it is missing, and stays. Waits up to `timeout`
 * milliseconds for another process. It ends with `release`, or with this process. `state`: what is true of the disk before
 * it is taken, for the message.
 * @throws DurableWriteError, with reason Busy where another process holds it
 */
export async function lockFile(
  fs: FileSystem,
  path: string,
  timeout: number,
  signal: AbortSignal | undefined,
  state: string,
): Promise<Held> {
  const scope = new Scope(fs)
  try {
    const place = await resolve(scope, checkTarget(path))
    const parent = await openParent(scope, place)
    const { device, inode } = parent.attributes
    const leave = await lock(scope, {
      parent: parent.directory,
      name: place.name,
      identity: `${device}:${inode}:lock ${place.name}`,
      target: path,
      timeout,
      signal,
    })
    return {
      release: async () => {
        await scope.closeAll()
        leave()
      },
    }
  } catch (error) {
    await scope.closeAll()
    if (error instanceof DurableWriteError && error.reason === 'Busy') {
      throw new DurableWriteError(`another process holds the lock ${path}`, {
        state,
        advice: 'try again when it is done',
        code: error.code,
        syscall: error.syscall,
        path,
        reason: 'Busy',
      })
    }
    if (isSystemError(error) && error.code === 'EISDIR') {
      throw new DurableWriteError(`the lock ${path} is a directory`, {
        code: error.code,
        syscall: error.syscall,
        path,
        state,
        advice: 'name a file',
        cause: error,
      })
    }
    throw isSystemError(error) ? wrapError(path, error, false, `could not lock ${path}`) : error
  }
}
