import type { Descriptor, ExtendedAttributes, FileSystem } from '../file-system.js'
import { setExtended } from './kept-attributes.js'
import type { Owner } from '../types.js'

/** What something new is to have. */
export interface Metadata {
  /** Of the target, for messages, and the path in it. */
  readonly target: string
  readonly path?: string
  readonly owner?: Owner | undefined
  readonly mode: number
  readonly label?: Uint8Array | undefined
  readonly extended?: ExtendedAttributes | undefined
}

/**
 * Owner, mode, label and attributes of what is new, and has no attributes yet. The owner comes before the mode, since chown(2) takes
 * set-user-ID bits away, and the mode before the ACL, whose mask chmod(2) would change.
 */
export async function setMetadata(fs: FileSystem, descriptor: Descriptor, metadata: Metadata): Promise<void> {
  const { owner: desired = fs.user, mode, label, extended, target } = metadata
  const shown = metadata.path ? `${target}/${metadata.path}` : target
  await setExtended(fs, descriptor, extended, 'before', shown)
  // A parent with the set-group-ID bit hands its group down.
  const now = await fs.attributes(descriptor)
  const disowned = now.uid !== desired.uid || now.gid !== desired.gid
  if (disowned) await fs.setOwner(descriptor, desired.uid, desired.gid)
  if (disowned || now.mode !== mode) await fs.setMode(descriptor, mode)
  // Even to set a label that is equal takes the right to relabel (selinux_inode_setxattr).
  if (label && !isEqual(await fs.label(descriptor), label)) await fs.setLabel(descriptor, label)
  await setExtended(fs, descriptor, extended, 'after', shown)
}

function isEqual(a: Uint8Array | undefined, b: Uint8Array): boolean {
  return a !== undefined && Buffer.compare(a, b) === 0
}
