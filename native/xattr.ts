import { isUtf8 } from 'node:buffer'
import { checkDescriptor, checkText } from './arguments.js'
import { errnoName, errnoOf, SystemError } from './errno.js'
import { callAsync, type CallResult, declare } from './libc.js'

const lgetxattr = declare('lgetxattr', 'long', ['const char *', 'const char *', 'void *', 'size_t'])
const fgetxattr = declare('fgetxattr', 'long', ['int', 'const char *', 'void *', 'size_t'])
const flistxattr = declare('flistxattr', 'long', ['int', 'void *', 'size_t'])
const fremovexattr = declare('fremovexattr', 'int', ['int', 'const char *'])
const fsetxattr = declare('fsetxattr', 'int', ['int', 'const char *', 'const void *', 'size_t', 'int'])

/** Most values are short. */
const usualValue = 256
/** The kernel's own bound of a value and of a list of names: XATTR_SIZE_MAX and XATTR_LIST_MAX (include/uapi/linux/limits.h). */
const maximumValue = 65_536

/** fgetxattr(2): undefined where the file or the file system has no such attribute. Throws SystemError. */
export async function getAttribute(fd: number, name: string): Promise<Uint8Array | undefined> {
  return readValue('fgetxattr', usualValue, (value, size) =>
    callAsync(fgetxattr, checkDescriptor(fd), checkText(name), value, size),
  )
}

/** lgetxattr(2): the same by a path, whose last part may be a symbolic link. Throws SystemError. */
export async function getAttributeAt(path: string, name: string): Promise<Uint8Array | undefined> {
  return readValue('lgetxattr', usualValue, (value, size) =>
    callAsync(lgetxattr, checkText(path), checkText(name), value, size),
  )
}

async function readValue(
  syscall: string,
  size: number,
  read: (value: Uint8Array, size: number) => Promise<CallResult>,
): Promise<Uint8Array | undefined> {
  const value = new Uint8Array(size)
  const { result, errno } = await read(value, size)
  if (result >= 0) return value.slice(0, result)
  const code = errnoName(errno)
  if (['ENODATA', 'ENOTSUP'].includes(code)) return undefined
  if (code === 'ERANGE' && size < maximumValue) return readValue(syscall, maximumValue, read)
  throw new SystemError(syscall, errno, undefined)
}

/** flistxattr(2): the names, which must be UTF-8 (EILSEQ), of all attributes that this process may see; none where the file system has no attributes. Throws SystemError. */
export async function listAttributes(fd: number): Promise<string[]> {
  return readNames(fd, usualValue)
}

async function readNames(fd: number, size: number): Promise<string[]> {
  const names = new Uint8Array(size)
  const { result, errno } = await callAsync(flistxattr, checkDescriptor(fd), names, size)
  if (result >= 0) {
    const bytes = Buffer.from(names.buffer, 0, result)
    // JavaScript could not name such an attribute in a later call.
    if (!isUtf8(bytes)) throw new SystemError('flistxattr', errnoOf('EILSEQ'), undefined)
    const text = bytes.toString('utf8')
    return text.split('\0').filter((name) => name !== '')
  }
  const code = errnoName(errno)
  if (code === 'ENOTSUP') return []
  if (code === 'ERANGE' && size < maximumValue) return readNames(fd, maximumValue)
  throw new SystemError('flistxattr', errno, undefined)
}

/** fsetxattr(2). Throws SystemError. */
export async function setAttribute(fd: number, name: string, value: Uint8Array): Promise<void> {
  const { result, errno } = await callAsync(fsetxattr, checkDescriptor(fd), checkText(name), value, value.length, 0)
  if (result !== 0) throw new SystemError('fsetxattr', errno, undefined)
}

/** fremovexattr(2); a missing attribute is no failure. Throws SystemError. */
export async function removeAttribute(fd: number, name: string): Promise<void> {
  const { result, errno } = await callAsync(fremovexattr, checkDescriptor(fd), checkText(name))
  if (result !== 0 && errnoName(errno) !== 'ENODATA') throw new SystemError('fremovexattr', errno, undefined)
}
