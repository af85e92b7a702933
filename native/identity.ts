import { sizeOfStatx } from './mount-id.js'
import { checkText, workingDirectory } from './arguments.js'
import { SystemError } from './errno.js'
import { callOnThread, declareSystemCall, systemCallNumber } from './libc.js'

const statx = declareSystemCall(['int', 'const char *', 'int', 'unsigned int', 'void *'])
const number = systemCallNumber('statx')

/** AT_STATX_DONT_SYNC: a file system that caches attributes answers from memory. */
const flags = 0x4000
const wantInode = 0x100
const offsetOfInode = 32
const offsetOfMajor = 136
const offsetOfMinor = 140

/** What names a file: numbers as stat(2) has them. */
export interface FileIdentity {
  readonly device: number
  readonly inode: bigint
}

/**
 * statx(2) of a path, whose last part is followed where it is a link. A network file system may ask its server all the same, which takes as
 * long as that does. Throws SystemError.
 */
export async function identityAt(path: string): Promise<FileIdentity> {
  const answer = new Uint8Array(sizeOfStatx)
  const { result, errno } = await callOnThread(
    statx,
    number,
    workingDirectory,
    checkText(path),
    flags,
    wantInode,
    answer,
  )
  if (result !== 0) throw new SystemError('statx', errno, path)
  const view = new DataView(answer.buffer)
  const device = makeDevice(view.getUint32(offsetOfMajor, true), view.getUint32(offsetOfMinor, true))
  return { device, inode: view.getBigUint64(offsetOfInode, true) }
}

/** As glibc, musl and libuv put the two together (makedev(3)). */
function makeDevice(major: number, minor: number): number {
  const [high, low] = [BigInt(major), BigInt(minor)]
  return Number(((high & ~0xfffn) << 32n) | ((high & 0xfffn) << 8n) | ((low & ~0xffn) << 12n) | (low & 0xffn))
}
