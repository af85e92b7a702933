/*
 * Extended attributes of the model's inodes, and what the kernel does with the two that are ACLs (posix_acl_chmod, posix_acl_create and
 * posix_acl_update_mode in fs/posix_acl.c): written for the model alone, so that it does not believe what the core believes of them.
 */

/** All of an inode as one text, `{"name":"bytes"}` with one character for each byte; '' for none. */
export type Extended = string

export const access = 'system.posix_acl_access'
export const byDefault = 'system.posix_acl_default'

export function decoded(extended: Extended): Map<string, string> {
  return new Map(extended === '' ? [] : Object.entries(JSON.parse(extended) as Record<string, string>))
}

export function encoded(values: ReadonlyMap<string, string>): Extended {
  return values.size === 0 ? '' : JSON.stringify(Object.fromEntries([...values].sort()))
}

const tags = { owner: 0x01, user: 0x02, group: 0x04, mask: 0x10, other: 0x20 } as const

/** The bytes of a list that lets in user 1000 beside those of the mode. */
export function listOf(owner: number, user: number, group: number, mask: number, other: number): string {
  const list = Buffer.alloc(4 + 5 * 8)
  list.writeUInt32LE(2)
  const rows = [
    [tags.owner, owner, 0xffffffff],
    [tags.user, user, 1000],
    [tags.group, group, 0xffffffff],
    [tags.mask, mask, 0xffffffff],
    [tags.other, other, 0xffffffff],
  ] as const
  rows.forEach(([tag, permissions, id], index) => {
    list.writeUInt16LE(tag, 4 + 8 * index)
    list.writeUInt16LE(permissions, 6 + 8 * index)
    list.writeUInt32LE(id, 8 + 8 * index)
  })
  return list.toString('latin1')
}

/** The list with each entry's permissions made anew from its tag and its old permissions. */
function mapped(text: string, change: (tag: number, permissions: number) => number): string {
  const list = Buffer.from(text, 'latin1')
  for (let at = 4; at < list.length; at += 8) {
    list.writeUInt16LE(change(list.readUInt16LE(at), list.readUInt16LE(at + 2)), at + 2)
  }
  return list.toString('latin1')
}

/** The mode that stat(2) gives with this list: the model's lists all have a mask. */
function modeOf(text: string): number {
  let mode = 0
  mapped(text, (tag, permissions) => {
    if (isOfMode(tag)) mode |= permissions << shiftOf(tag)
    return permissions
  })
  return mode
}

function isOfMode(tag: number): boolean {
  return tag === tags.owner || tag === tags.mask || tag === tags.other
}

function shiftOf(tag: number): number {
  return tag === tags.owner ? 6 : tag === tags.mask ? 3 : 0
}

function partOf(tag: number, mode: number): number {
  return (mode >> shiftOf(tag)) & 7
}

interface Permissions {
  readonly mode: number
  readonly extended: Extended
}

export interface Listed {
  /** As the list has it: of the owning group what the list says, and not its mask. */
  readonly mode: number
  /** Who else is let in, and the mask. */
  readonly others: string
}

/** What an access list, or none, makes of the mode that stat(2) gives. */
export function listed(text: string | undefined, statMode: number): Listed {
  let mode = statMode
  const others: string[] = []
  mapped(text ?? '', (tag, permissions) => {
    const shift = tag === tags.group ? 3 : shiftOf(tag)
    if (tag === tags.user || tag === tags.mask) others.push(`${tag}:${permissions}`)
    else mode = (mode & ~(7 << shift)) | (permissions << shift)
    return permissions
  })
  return { mode, others: others.join(' ') }
}

/** What chmod(2) changes: with a list, its mask and not its group. */
export function changeMode({ extended }: Permissions, mode: number): Permissions {
  const values = decoded(extended)
  const list = values.get(access)
  if (list !== undefined) {
    values.set(
      access,
      mapped(list, (tag, permissions) => (isOfMode(tag) ? partOf(tag, mode) : permissions)),
    )
  }
  return { mode, extended: encoded(values) }
}

/** What setxattr(2) and removexattr(2) change: an access list changes the mode with it. */
export function changeExtended({ mode, extended }: Permissions, name: string, value: string | undefined): Permissions {
  const values = decoded(extended)
  if (value === undefined) values.delete(name)
  else values.set(name, value)
  const isAccess = name === access && value !== undefined
  return { mode: isAccess ? (mode & 0o7000) | modeOf(value) : mode, extended: encoded(values) }
}

/** The list and mode with which a new entry of a directory begins. */
export function inherit(parent: Extended, isDirectory: boolean, mode: number): Permissions {
  const list = decoded(parent).get(byDefault)
  if (list === undefined) return { mode, extended: '' }
  const own = mapped(list, (tag, permissions) => (isOfMode(tag) ? permissions & partOf(tag, mode) : permissions))
  const values = new Map([[access, own]])
  if (isDirectory) values.set(byDefault, list)
  return { mode: (mode & 0o7000) | modeOf(own), extended: encoded(values) }
}
