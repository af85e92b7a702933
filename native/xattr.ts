import { checkDescriptor, checkPath } from './arguments.js'
import { errnoName, SystemError } from './errno.js'
import { callAsync, declare } from './libc.js'

const fgetxattr = declare('fgetxattr', 'long', ['int', 'const char *', 'void *', 'size_t'])
const fsetxattr = declare('fsetxattr', 'int', ['int', 'const char *', 'const void *', 'size_t', 'int'])

/** Most values are short. */
const usualValue = 256
/** An SELinux context has at most a page. */
const maximumValue = 4096

/** fgetxattr(2): undefined where the file or the file system has no such attribute. Throws SystemError. */
export async function getAttribute(fd: number, name: string): Promise<Uint8Array | undefined> {
  return readAttribute(fd, name, usualValue)
}

async function readAttribute(fd: number, name: string, size: number): Promise<Uint8Array | undefined> {
  const value = new Uint8Array(size)
  const { result, errno } = await callAsync(fgetxattr, checkDescriptor(fd), checkPath(name), value, size)
  if (result >= 0) return value.slice(0, result)
  const code = errnoName(errno)
  if (['ENODATA', 'ENOTSUP', 'EOPNOTSUPP'].includes(code)) return undefined
  if (code === 'ERANGE' && size < maximumValue) return readAttribute(fd, name, maximumValue)
  throw new SystemError('fgetxattr', errno, undefined)
}

/** fsetxattr(2). Throws SystemError. */
export async function setAttribute(fd: number, name: string, value: Uint8Array): Promise<void> {
  const { result, errno } = await callAsync(fsetxattr, checkDescriptor(fd), checkPath(name), value, value.length, 0)
  if (result !== 0) throw new SystemError('fsetxattr', errno, undefined)
}
