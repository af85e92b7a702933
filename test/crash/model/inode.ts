/*
 * An inode of the model disk: its state in the kernel's memory (`now`), its certain state on stable storage (`disk`), and the changes that
 * may have got there since. Immutable: a change makes another one, so that a snapshot of a whole disk is one Map.
 */

export interface Attributes {
  readonly mode: number
  readonly uid: number
  readonly gid: number
  readonly label: string
  /** ACLs and user attributes: access-lists.ts. */
  readonly extended: string
}

export interface State {
  readonly attributes: Attributes
  /** A file's bytes, one character each; a symbolic link's text. */
  readonly data: string
  /** A directory's names. */
  readonly entries: ReadonlyMap<string, number>
}

/**
 * One change of a directory that a power cut takes or leaves as a whole: a creation, a removal, a rename or an exchange.
 * It says what the names are then (undefined: nothing), not how they come to it: what reaches a disk are directory blocks.
 */
export interface EntryChange {
  readonly names: readonly (readonly [name: string, inode: number | undefined])[]
  /** A failed fsync has given it up: a later one does not make it durable. */
  readonly lost: boolean
}

export interface Inode {
  readonly number: number
  readonly type: 'file' | 'directory' | 'symlink'
  readonly now: State
  /** undefined: never synced, so that even its mode is unknown after a power cut. */
  readonly disk: State | undefined
  /** Attributes it has had since the last sync, or since it was made. */
  readonly past: readonly Attributes[]
  /** A directory's changes since the last sync, oldest first. */
  readonly changes: readonly EntryChange[]
  /** Its pages were marked clean after a failed write: no fsync will ever write them. */
  readonly lost: boolean
  /** Failed writes: a descriptor that has not reported each fails its next fsync (errseq_t, lib/errseq.c). */
  readonly failures: number
}

const noEntries: ReadonlyMap<string, number> = new Map()

export function newInode(number: number, type: Inode['type'], attributes: Attributes, data = ''): Inode {
  const now = { attributes, data, entries: noEntries }
  return { number, type, now, disk: undefined, past: [], changes: [], lost: false, failures: 0 }
}

export function withAttributes(inode: Inode, change: Partial<Attributes>): Inode {
  const attributes = { ...inode.now.attributes, ...change }
  return { ...inode, now: { ...inode.now, attributes }, past: [...inode.past, inode.now.attributes] }
}

export function withEntries(inode: Inode, names: EntryChange['names']): Inode {
  return {
    ...inode,
    now: { ...inode.now, entries: applied(inode.now.entries, names) },
    changes: [...inode.changes, { names, lost: false }],
  }
}

export function applied(
  entries: ReadonlyMap<string, number>,
  names: EntryChange['names'],
): ReadonlyMap<string, number> {
  const after = new Map(entries)
  for (const [name, inode] of names) {
    if (inode === undefined) after.delete(name)
    else after.set(name, inode)
  }
  return after
}

/** What fsync does: data and attributes of this inode, and a directory's names; not the name of the inode itself. */
export function synced(inode: Inode): Inode {
  if (inode.type !== 'directory') {
    return inode.lost ? inode : { ...inode, disk: inode.now, past: [], changes: [] }
  }
  let entries = inode.disk?.entries ?? noEntries
  let given: EntryChange[] = []
  for (const change of inode.changes) {
    if (change.lost) {
      given.push(change)
      continue
    }
    entries = applied(entries, change.names)
    // A durable change decides about a name, in spite of earlier losses.
    const decided = new Set(change.names.map(([name]) => name))
    given = given
      .map(({ names, lost }) => ({ names: names.filter(([name]) => !decided.has(name)), lost }))
      .filter(({ names }) => names.length > 0)
  }
  const disk = { attributes: inode.now.attributes, data: '', entries }
  return { ...inode, disk, past: [], changes: given }
}

/** What a failed fsync does where the kernel marks the pages clean: later ones answer 0 and write nothing. */
export function dropped(inode: Inode): Inode {
  if (inode.type === 'directory') {
    return { ...inode, changes: inode.changes.map(({ names }) => ({ names, lost: true })) }
  }
  return { ...inode, lost: true }
}
