import { readFileSync } from 'node:fs'
import { findingAdvice, type CheckResult, ok, warn } from './findings.js'
import { openedByLists } from '../durable/index.js'
import type { Descriptor, FileSystem } from '../durable/file-system.js'
import { codeOf, messageOf } from '../errors.js'
import { listed } from '../message-text.js'
import { chattrOf } from '../../native/index.js'

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

/** Private files that others may use all the same, by an ACL: holdfast keeps it at each publication. Nothing where there are none. */
export async function checkAccessLists(fs: FileSystem, target: Descriptor, path: string): Promise<CheckResult[]> {
  try {
    const opened = await openedByLists(fs, target)
    const [first] = opened
    if (first === undefined) return []
    const shown = opened.map(({ path: file, named }) => `${file} (${named.join(', ')})`)
    return [
      warn(
        'acl',
        `an ACL opens files that their mode keeps private: ${listed(shown, 3)}`,
        `holdfast keeps ACLs; if it is not meant, take it away with setfacl -b, as of ${path}/${first.path}`,
      ),
    ]
  } catch (error) {
    return [warn('acl', `could not read the ACLs: ${messageOf(error)}`, findingAdvice(codeOf(error) ?? ''))]
  }
}

/** Letters of chattr(1) by their flags (linux/fs.h), but for those that keep a publication out, and those that the file system sets itself. */
const letters = [
  [0x4, 'c'],
  [0x8, 'S'],
  [0x40, 'd'],
  [0x80, 'A'],
  [0x400, 'm'],
  [0x4000, 'j'],
  [0x1_0000, 'D'],
  [0x80_0000, 'C'],
  [0x200_0000, 'x'],
  [0x4000_0000, 'F'],
] as const

/** What chattr(1) has set on a target, and not on its parent, whose attributes new content gets. Nothing where there is none. */
export function checkAttributes(path: string, target: Descriptor, parent: Descriptor): CheckResult[] {
  const [own, above] = [chattrOf(target), chattrOf(parent)]
  if (own === undefined || above === undefined) return []
  const lost = letters.filter(([bit]) => (own.flags & ~above.flags & bit) !== 0).map(([, letter]) => letter)
  const isOther = own.project !== above.project
  if (lost.length === 0 && !isOther) return []
  const found = [
    ...(lost.length > 0 ? [`chattr +${lost.join('')}`] : []),
    ...(isOther ? [`project ${own.project}, and not ${above.project}`] : []),
  ]
  return [
    warn(
      'attributes',
      `${path} has ${found.join(', and ')}: new content gets what its parent passes on, and not this`,
      `set it on the parent${isOther ? ` (chattr +P -p ${own.project})` : ''}, or do without`,
    ),
  ]
}
