import { checkDescriptor } from './arguments.js'
import { allocate, callNow, declareSystemCall, systemCallNumber } from './libc.js'

const statx = declareSystemCall(['int', 'const char *', 'int', 'unsigned int', 'uint64_t'])
const number = systemCallNumber('statx')

/** AT_EMPTY_PATH | AT_STATX_DONT_SYNC: of the descriptor itself, from the kernel's memory. */
const flags = 0x1000 | 0x4000
const wantMountId = 0x1000
/** Bytes of struct statx (linux/stat.h). */
export const sizeOfStatx = 256
const offsetOfMountId = 144

let answer: { address: bigint; view: DataView } | undefined

/**
 * The ID of the mount that a descriptor is on, as /proc/self/mountinfo has it; undefined where the kernel does not report it (before
 * Linux 5.8, or under a seccomp profile without statx(2)). Never waits for a disk.
 */
export function mountId(fd: number): number | undefined {
  answer ??= allocate(sizeOfStatx)
  const { result } = callNow(statx, number, checkDescriptor(fd), '', flags, wantMountId, answer.address)
  if (result !== 0 || (answer.view.getUint32(0, true) & wantMountId) === 0) return undefined
  return Number(answer.view.getBigUint64(offsetOfMountId, true))
}
