const byCode: Readonly<Record<string, string>> = {
  ENOSPC: 'free space or inodes on this file system',
  EDQUOT: 'raise the quota, or free space',
  EROFS: 'mount it read-write: look into the kernel log for an error of the disk',
  EIO: 'the disk failed: look into the kernel log',
  EACCES: 'let this user write there, or add the capability CAP_DAC_OVERRIDE',
  EPERM: 'look for an immutable flag (lsattr), a missing capability or a security module',
  ENOENT: 'make it, or name another path',
  ENOTDIR: 'name a path below directories only',
  ELOOP: 'name the real path',
}

/** What to do about a system call that failed so. */
export function advice(code: string): string {
  return byCode[code] ?? 'look into the kernel log'
}
