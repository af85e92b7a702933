import { checkDescriptor } from './arguments.js'
import { allocate, callNow, declareSystemCall, systemCallNumber } from './libc.js'

const statx = declareSystemCall(['int', 'const char *', 'int', 'unsigned int', 'uint64_t'])
const number = systemCallNumber('statx')

/** AT_EMPTY_PATH | AT_STATX_DONT_SYNC: about the descriptor itself, from the kernel's memory. */
const flags = 0x1000 | 0x4000
const wantMountId = 0x1000
/** Bytes of struct statx (linux/stat.h). */
export const sizeOfStatx = 256
const offsetOfMountId = 144

let answer: { address: bigint; view: DataView } | undefined

/** statx(2) of a descriptor, valid until the next call; undefined where the call fails. Never waits for a disk. */
export function statxOf(fd: number, want: number): DataView | undefined {
  answer ??= allocate(sizeOfStatx)
  const { result } = callNow(statx, number, checkDescriptor(fd), '', flags, want, answer.address)
  return result === 0 ? answer.view : undefined
}

/**
 * The ID of the mount that a descriptor is on, as /proc/self/mountinfo has it; undefined where the kernel does not report it (before
 * Linux 5.8, or under a seccomp profile without statx(2)). Never waits for a disk.
 */
export function mountId(fd: number): number | undefined {
  const view = statxOf(fd, wantMountId)
  if (view === undefined || (view.getUint32(0, true) & wantMountId) === 0) return undefined
  return Number(view.getBigUint64(offsetOfMountId, true))
}
