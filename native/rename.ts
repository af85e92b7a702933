import { checkDirectory, checkText } from './arguments.js'
import { SystemError } from './errno.js'
import { callAsync, declareSystemCall, systemCallNumber } from './libc.js'

const renameat2 = declareSystemCall(['int', 'const char *', 'int', 'const char *', 'unsigned int'])
const number = systemCallNumber('renameat2')

const flags = { replace: 0, noreplace: 1, exchange: 2 } as const

export type RenameMode = keyof typeof flags

/**
 * renameat2(2). `replace`: as rename(2). `noreplace`: EEXIST if the new name exists. `exchange`: the two names change places in one step;
 * both must exist. Throws SystemError.
 */
export async function rename(
  fromDirectory: number,
  from: string,
  toDirectory: number,
  to: string,
  mode: RenameMode,
): Promise<void> {
  const { result, errno } = await callAsync(
    renameat2,
    number,
    checkDirectory(fromDirectory),
    checkText(from),
    checkDirectory(toDirectory),
    checkText(to),
    flags[mode],
  )
  if (result !== 0) throw new SystemError('renameat2', errno, from)
}
