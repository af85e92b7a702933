/*
 * From 1 on, as in errno(3) and asm-generic/errno.h, whose numbers x86-64 and arm64 have. Of two names (EWOULDBLOCK and EAGAIN, EOPNOTSUPP
 * and ENOTSUP) that one stands here which POSIX lists first. Node has a list, too: its module takes time to load, and it lacks fifty of
 * these, among them what a damaged file system answers (EUCLEAN).
 */
const names = `
  EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT ENOTBLK EBUSY EEXIST EXDEV
  ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG ENOSPC ESPIPE EROFS EMLINK EPIPE EDOM ERANGE EDEADLK
  ENAMETOOLONG ENOLCK ENOSYS ENOTEMPTY ELOOP - ENOMSG EIDRM ECHRNG EL2NSYNC EL3HLT EL3RST ELNRNG EUNATCH ENOCSI EL2HLT
  EBADE EBADR EXFULL ENOANO EBADRQC EBADSLT - EBFONT ENOSTR ENODATA ETIME ENOSR ENONET ENOPKG EREMOTE ENOLINK EADV
  ESRMNT ECOMM EPROTO EMULTIHOP EDOTDOT EBADMSG EOVERFLOW ENOTUNIQ EBADFD EREMCHG ELIBACC ELIBBAD ELIBSCN ELIBMAX
  ELIBEXEC EILSEQ ERESTART ESTRPIPE EUSERS ENOTSOCK EDESTADDRREQ EMSGSIZE EPROTOTYPE ENOPROTOOPT EPROTONOSUPPORT
  ESOCKTNOSUPPORT ENOTSUP EPFNOSUPPORT EAFNOSUPPORT EADDRINUSE EADDRNOTAVAIL ENETDOWN ENETUNREACH ENETRESET ECONNABORTED
  ECONNRESET ENOBUFS EISCONN ENOTCONN ESHUTDOWN ETOOMANYREFS ETIMEDOUT ECONNREFUSED EHOSTDOWN EHOSTUNREACH EALREADY
  EINPROGRESS ESTALE EUCLEAN ENOTNAM ENAVAIL EISNAM EREMOTEIO EDQUOT ENOMEDIUM EMEDIUMTYPE ECANCELED ENOKEY EKEYEXPIRED
  EKEYREVOKED EKEYREJECTED EOWNERDEAD ENOTRECOVERABLE ERFKILL EHWPOISON
`
  .trim()
  .split(/\s+/)

/** The symbolic name of an errno: `ENOSPC` for 28; `E4711` for what Linux does not have. */
export function errnoName(errno: number): string {
  const name = names[errno - 1]
  return name === undefined || name === '-' ? `E${errno}` : name
}

/** The number of an errno that Linux has. */
export function errnoOf(name: string): number {
  return names.indexOf(name) + 1
}

/** A system call failed. `path`: its argument, or the path of its descriptor, where known. */
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
