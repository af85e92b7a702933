/*
 * POSIX access control lists, as the attributes `system.posix_acl_access` and `system.posix_acl_default` hold them: a version, then
 * entries of tag, permission bits and user or group, in the kernel's order, little-endian (include/uapi/linux/posix_acl_xattr.h).
 *
 * Where an inode has one, the group bits of its st_mode are the list's mask (acl(5)): so what a list says of the owning group is in the
 * list alone, and chmod(2) changes the mask, which limits all that the list names.
 */

const headerSize = 4
const entrySize = 8
const version = 2

const userObject = 0x01
const groupObject = 0x04
const mask = 0x10
const other = 0x20
/** By how many bits each is shifted in a mode. */
const shifts = new Map([
  [userObject, 6],
  [groupObject, 3],
  [other, 0],
])
const names = new Map<number, 'user' | 'group'>([
  [0x02, 'user'],
  [0x08, 'group'],
])

interface AccessEntry {
  readonly tag: number
  /** 0 to 7. */
  readonly permissions: number
  readonly id: number
}

/** The entries; undefined where these bytes are no list of the known version. */
function entriesOf(list: Uint8Array): AccessEntry[] | undefined {
  const view = viewOf(list)
  if (list.length < headerSize || view.getUint32(0, true) !== version) return undefined
  if ((list.length - headerSize) % entrySize !== 0) return undefined
  return Array.from({ length: (list.length - headerSize) / entrySize }, (_, index) => {
    const at = headerSize + index * entrySize
    return {
      tag: view.getUint16(at, true),
      permissions: view.getUint16(at + 2, true) & 7,
      id: view.getUint32(at + 4, true),
    }
  })
}

function viewOf(list: Uint8Array): DataView {
  return new DataView(list.buffer, list.byteOffset, list.byteLength)
}

/** The same list with other permission bits. */
function withPermissions(list: Uint8Array, change: (entry: AccessEntry) => number): Uint8Array {
  const changed = Uint8Array.from(list)
  const view = viewOf(changed)
  entriesOf(list)?.forEach((entry, index) => {
    view.setUint16(headerSize + index * entrySize + 2, change(entry), true)
  })
  return changed
}

/** What an inode's mode is, whose st_mode is `mode`: of owner, owning group and others what the list says, without its mask. */
export function modeByList(list: Uint8Array | undefined, mode: number): number {
  const entries = list === undefined ? [] : (entriesOf(list) ?? [])
  let found = mode
  for (const { tag, permissions } of entries) {
    const shift = shifts.get(tag)
    if (shift !== undefined) found = (found & ~(7 << shift)) | (permissions << shift)
  }
  return found
}

/** The list for an inode that is to have this mode: who else is named, and the mask, stay as they are. */
export function listWithMode(list: Uint8Array, mode: number): Uint8Array {
  return withPermissions(list, ({ tag, permissions }) => {
    const shift = shifts.get(tag)
    return shift === undefined ? permissions : (mode >> shift) & 7
  })
}

/**
 * The access list of a new file with this mode in a directory with this default list; undefined where the mode says all. Its mask grants no
 * more than the mode grants its group, as the kernel does for each new file (posix_acl_create_masq in fs/posix_acl.c): a default list opens
 * no file of mode 0600.
 */
export function inheritedList(defaultList: Uint8Array, mode: number): Uint8Array | undefined {
  if (!(entriesOf(defaultList) ?? []).some(({ tag }) => tag === mask)) return undefined
  return withPermissions(listWithMode(defaultList, mode), ({ tag, permissions }) =>
    tag === mask ? permissions & (mode >> 3) : permissions,
  )
}

/** Whom a list lets in beside owner, owning group and others, within its mask: `user:1000:r--`, by numbers. */
export function namedIn(list: Uint8Array): string[] {
  return effectiveIn(list).map(({ kind, id, permissions }) => `${kind}:${id}:${shown(permissions)}`)
}

/** Whom of them it lets write. */
export function writersBy(list: Uint8Array): { readonly kind: 'user' | 'group'; readonly id: number }[] {
  return effectiveIn(list).filter(({ permissions }) => (permissions & 2) !== 0)
}

function effectiveIn(list: Uint8Array): { kind: 'user' | 'group'; id: number; permissions: number }[] {
  const entries = entriesOf(list) ?? []
  const limit = entries.find(({ tag }) => tag === mask)?.permissions ?? 7
  return entries.flatMap(({ tag, permissions, id }) => {
    const kind = names.get(tag)
    const effective = permissions & limit
    return kind === undefined || effective === 0 ? [] : [{ kind, id, permissions: effective }]
  })
}

function shown(permissions: number): string {
  return ['r', 'w', 'x'].map((letter, index) => (permissions & (4 >> index) ? letter : '-')).join('')
}
