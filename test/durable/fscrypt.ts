/* Encrypted directories, as fscrypt(8) makes them. */
import { closeSync, mkdirSync, openSync } from 'node:fs'
import koffi from 'koffi'

const libc = koffi.load(null)
const ioctl = libc.func('int ioctl(int descriptor, unsigned long request, void *argument)') as (
  descriptor: number,
  request: number,
  argument: Uint8Array,
) => number

/** On something open (linux/fscrypt.h). */
function ask(path: string, request: number, argument: Uint8Array): void {
  const descriptor = openSync(path, 'r')
  const result = ioctl(descriptor, request, argument)
  const errno = koffi.errno()
  closeSync(descriptor)
  if (result !== 0) throw new Error(`ioctl ${request.toString(16)} ${path}: errno ${errno}`)
}

/** Gives a file system a key; answers what names it. */
export function addKey(at: string): Buffer {
  // FS_IOC_ADD_ENCRYPTION_KEY: an identifier is to be answered, of these 64 bytes.
  const key = Buffer.alloc(80 + 64, 7)
  key.fill(0, 0, 80).writeUInt32LE(2, 0)
  key.writeUInt32LE(64, 40)
  ask(at, 0xc0506617, key)
  return key.subarray(8, 24)
}

/** Makes a directory whose content is encrypted with it. */
export function makeEncrypted(path: string, key: Buffer): void {
  mkdirSync(path)
  // FS_IOC_SET_ENCRYPTION_POLICY, version 2: AES-256-XTS, AES-256-CTS, names padded to 16 bytes.
  ask(path, 0x800c6613, Buffer.concat([Buffer.from([2, 1, 4, 2, 0, 0, 0, 0]), key]))
}
