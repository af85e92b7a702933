import { codeOf } from '../errors.js'
import { foreign, unfit } from './errors.js'
import type { Mount, RenameMode } from './file-system.js'

/** What a rename that did not make the new content visible is to be told as. */
export function renameFault(path: string, { type }: Mount, mode: RenameMode, failure: Error): Error {
  const code = codeOf(failure)
  if (code === 'EEXIST' && mode === 'noreplace') {
    return foreign(`${path} was created by another program meanwhile`, path, { state: 'it was left alone' })
  }
  // Both names are in one directory and neither is above the other, so EINVAL can only mean the flag (rename(2)).
  if ((code === 'EINVAL' || code === 'ENOSYS') && mode !== 'replace') {
    return unfit(
      `the file system ${type} cannot ${mode === 'exchange' ? 'exchange two names in one step (RENAME_EXCHANGE)' : 'rename without replacing (RENAME_NOREPLACE)'}`,
      {
        code,
        syscall: 'renameat2',
        path,
        state: `${path} is unchanged`,
        advice: 'put it on ext4, xfs or btrfs',
        cause: failure,
      },
    )
  }
  return failure
}
