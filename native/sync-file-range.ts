import { checkDescriptor } from './arguments.js'
import { SystemError } from './errno.js'
import { callAsync, callOnThread, declare } from './libc.js'

const syncFileRange = declare('sync_file_range', 'int', ['int', 'int64_t', 'int64_t', 'unsigned int'])

const waitBefore = 1
const write = 2
const waitAfter = 4

/**
 * sync_file_range(2) over the whole file: starts the write-out of its dirty pages (SYNC_FILE_RANGE_WRITE), and with
 * `wait` waits for it, on a thread. Neither metadata nor a device flush: a hint that lets later fsyncs share a commit, never a
 * barrier. An error consumes the file's write error, so that it counts as a failed fsync. Throws SystemError.
 */
export async function startWriteOut(fd: number, wait: boolean): Promise<void> {
  const [call, flags] = wait ? [callOnThread, waitBefore | write | waitAfter] : [callAsync, write]
  const { result, errno } = await call(syncFileRange, checkDescriptor(fd), 0, 0, flags)
  if (result !== 0) throw new SystemError('sync_file_range', errno, undefined)
}
