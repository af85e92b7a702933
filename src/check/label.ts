import { readFileSync } from 'node:fs'
import { ok, warn, type CheckResult } from './findings.js'

export interface SecurityModule {
  /** The SELinux context of this process. */
  readonly context: string
}

/** undefined where SELinux is off. The kernel lists its file system only where it is on (security/selinux/selinuxfs.c). */
export function seLinux(): SecurityModule | undefined {
  try {
    if (!/^nodev\s+selinuxfs$/m.test(readFileSync('/proc/filesystems', 'utf8'))) return undefined
    return { context: plain(readFileSync('/proc/self/attr/current')) }
  } catch {
    return { context: 'unknown' }
  }
}

/** A label as people read it: without the NUL at its end. */
function plain(label: Uint8Array): string {
  return Buffer.from(label).toString('latin1').replace(/\0+$/, '').trim()
}

/** The label that the target has, or will get: staged files inherit their directory's label, and keep the old target's labels. */
export function checkLabel(
  { context }: SecurityModule,
  labels: { readonly target: Uint8Array | undefined; readonly parent: Uint8Array | undefined },
): CheckResult {
  const label = labels.target ?? labels.parent
  if (label === undefined) {
    return warn(
      'label',
      `SELinux is on (this process: ${context}), but the file system has no labels`,
      'run restorecon -R on the parent, or mount the file system with a context= option',
    )
  }
  const whose = labels.target === undefined ? 'inherited from the parent' : "the target's, kept"
  const found = `${plain(label)}, ${whose}; this process: ${context}`
  if (/:(?:unlabeled_t|file_t)(?::|$)/.test(plain(label))) {
    return warn(
      'label',
      found,
      'run restorecon -R on the parent: SELinux may deny consumers access to unlabelled files',
    )
  }
  return ok('label', found)
}
