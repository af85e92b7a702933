import { constants } from 'node:os'

const names = new Map<number, string>()
// Linux has two names for one number (EWOULDBLOCK and EAGAIN, EOPNOTSUPP and ENOTSUP): Node lists that first which POSIX does.
for (const [name, number] of Object.entries(constants.errno)) {
  if (!names.has(number)) names.set(number, name)
}

/*
 * What Linux has and Node does not list (errno(3); the numbers of asm-generic/errno.h, which x86-64 and arm64 have): a damaged file system
 * answers EUCLEAN, one whose key is gone ENOKEY, bad memory EHWPOISON.
 */
const unlisted = {
  ...{ ENOTBLK: 15, ECHRNG: 44, EL2NSYNC: 45, EL3HLT: 46, EL3RST: 47, ELNRNG: 48, EUNATCH: 49, ENOCSI: 50, EL2HLT: 51 },
  ...{ EBADE: 52, EBADR: 53, EXFULL: 54, ENOANO: 55, EBADRQC: 56, EBADSLT: 57, EBFONT: 59, ENONET: 64, ENOPKG: 65 },
  ...{ EREMOTE: 66, EADV: 68, ESRMNT: 69, ECOMM: 70, EDOTDOT: 73, ENOTUNIQ: 76, EBADFD: 77, EREMCHG: 78, ELIBACC: 79 },
  ...{ ELIBBAD: 80, ELIBSCN: 81, ELIBMAX: 82, ELIBEXEC: 83, ERESTART: 85, ESTRPIPE: 86, EUSERS: 87 },
  ...{ ESOCKTNOSUPPORT: 94, EPFNOSUPPORT: 96, ESHUTDOWN: 108, ETOOMANYREFS: 109, EHOSTDOWN: 112, EUCLEAN: 117 },
  ...{ ENOTNAM: 118, ENAVAIL: 119, EISNAM: 120, EREMOTEIO: 121, ENOMEDIUM: 123, EMEDIUMTYPE: 124, ENOKEY: 126 },
  ...{ EKEYEXPIRED: 127, EKEYREVOKED: 128, EKEYREJECTED: 129, EOWNERDEAD: 130, ENOTRECOVERABLE: 131, ERFKILL: 132 },
  EHWPOISON: 133,
}
for (const [name, number] of Object.entries(unlisted)) names.set(number, name)

/** The symbolic name of an errno: `ENOSPC` for 28; `E4711` for what Linux does not have. */
export function errnoName(errno: number): string {
  return names.get(errno) ?? `E${errno}`
}

/** A system call failed. `path` is the one that it was given, or what its descriptor stands for, where known. */
export class SystemError extends Error {
  override readonly name = 'SystemError'
  readonly code: string

  constructor(
    readonly syscall: string,
    readonly errno: number,
    readonly path: string | undefined,
    options?: ErrorOptions,
  ) {
    const code = errnoName(errno)
    super(`${syscall}${path === undefined ? '' : ` ${path}`}: ${code}`, options)
    this.code = code
  }
}
