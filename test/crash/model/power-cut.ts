import { access, changeExtended, decoded } from './access-lists.js'
import type { Choose } from './choices.js'
import { applied, type Attributes, type Inode, type State } from './inode.js'
import { durable, type ModelDisk, rootInode } from './model-disk.js'

/** Disks write this many bytes at once, or not at all. */
const sectorSize = 512

/** What the next boot finds, by these choices. Only what can be reached from the root is decided, and kept. */
export function powerCut(disk: ModelDisk, choose: Choose): ModelDisk {
  const survivors = new Map<number, Inode>()
  const waiting = [rootInode]
  let meetsAgain = false
  for (let number = waiting.pop(); number !== undefined; number = waiting.pop()) {
    if (survivors.has(number)) {
      meetsAgain ||= disk.inode(number).type === 'directory'
      continue
    }
    const survivor = survivingInode(disk.inode(number), choose)
    survivors.set(number, survivor)
    for (const child of survivor.now.entries.values()) waiting.push(child)
  }
  if (meetsAgain) cutLoops(survivors, rootInode, new Set())
  return disk.rebooted(survivors)
}

/**
 * Of two renames the later can be there without the earlier, here, and then a directory may lie in itself. No file system leaves that,
 * since it orders its changes of directories: the name that closes the loop goes.
 */
function cutLoops(survivors: Map<number, Inode>, number: number, above: Set<number>): void {
  const inode = survivors.get(number)
  if (inode?.type !== 'directory') return
  above.add(number)
  const entries = new Map([...inode.now.entries].filter(([, child]) => !above.has(child)))
  if (entries.size < inode.now.entries.size)
    survivors.set(number, durable({ ...inode, now: { ...inode.now, entries } }))
  for (const child of entries.values()) cutLoops(survivors, child, above)
  above.delete(number)
}

interface Survivals {
  /** The number of options at each choice: earlier choices do not change it. */
  readonly options: readonly number[]
  /** By its choices. */
  readonly known: Map<string, Inode>
}

/** Inodes are immutable, and the same ones survive millions of power cuts. */
const survivals = new WeakMap<Inode, Survivals>()

function survivingInode(inode: Inode, choose: Choose): Inode {
  let survival = survivals.get(inode)
  if (survival === undefined) survivals.set(inode, (survival = { options: optionsOf(inode), known: new Map() }))
  const choices = survival.options.map((options) => choose(options))
  const key = choices.join()
  let survivor = survival.known.get(key)
  if (survivor === undefined) {
    const left = choices.values()
    const now = survivingState(inode, () => left.next().value ?? 0)
    survivor = durable(now === inode.now ? inode : { ...inode, now })
    survival.known.set(key, survivor)
  }
  return survivor
}

function optionsOf(inode: Inode): number[] {
  const asked: number[] = []
  survivingState(inode, (options) => {
    asked.push(options)
    return 0
  })
  return asked
}

function survivingState(inode: Inode, choose: Choose): State {
  const { disk, now, past } = inode
  if (disk === now && inode.changes.length === 0) return now
  // open() of a link gives ELOOP, so no sync reaches it: its text comes with its name.
  if (inode.type === 'symlink') return now
  const attributes = survivingAttributes(inode.disk?.attributes, past, now.attributes, choose)
  if (inode.type === 'directory') return { attributes, data: '', entries: survivingEntries(inode, choose) }
  const contents = possibleContents(disk?.data ?? '', now.data)
  return { attributes, data: contents[choose(contents.length)] ?? now.data, entries: now.entries }
}

/** What an inode that was never written is: a block of zeroes. */
const zeroed: Attributes = { mode: 0, uid: 0, gid: 0, label: '', extended: '' }

/** Each field on its own: any value since the last sync, and zero where there was none. */
function survivingAttributes(
  synced: Attributes | undefined,
  past: readonly Attributes[],
  now: Attributes,
  choose: Choose,
): Attributes {
  if (past.length === 0 && synced) return now
  const all = [now, ...[...past].reverse(), synced ?? zeroed]
  const field = <Key extends keyof Attributes>(key: Key): Attributes[Key] => {
    const values = [...new Set(all.map((attributes) => attributes[key]))]
    return values.length === 1 ? now[key] : (values[choose(values.length)] ?? now[key])
  }
  const [mode, uid, gid, label, extended] = [
    field('mode'),
    field('uid'),
    field('gid'),
    field('label'),
    field('extended'),
  ]
  const list = decoded(extended).get(access)
  // A file system changes a mode and the access list that it comes from in one transaction.
  if (list !== undefined) return { ...changeExtended({ mode, extended }, access, list), uid, gid, label }
  const plain = all.filter((attributes) => !decoded(attributes.extended).has(access))
  const before = plain.some((attributes) => attributes.mode === mode) ? mode : (plain[0]?.mode ?? mode)
  return { mode: before, extended, uid, gid, label }
}

/** Any subset of the changes, in their order. */
function survivingEntries({ disk, changes, now }: Inode, choose: Choose): State['entries'] {
  let entries = disk?.entries ?? new Map<string, number>()
  let all = true
  for (const { names } of changes) {
    if (choose(2) === 0) entries = applied(entries, names)
    else all = false
  }
  return all ? now.entries : entries
}

/**
 * Newest first: everything; the new size with zeroes or garbage; sectors that came and sectors that did not; the beginning, cut at a sector
 * or anywhere; the synced bytes. A file only ever grows.
 */
function possibleContents(synced: string, now: string): readonly string[] {
  if (synced === now) return [now]
  const added = now.length - synced.length
  const contents = [now, synced + '\0'.repeat(added), synced + garbage(added)]
  const sectors: number[] = []
  for (let at = sectorSize * Math.ceil((synced.length + 1) / sectorSize); at < now.length; at += sectorSize)
    sectors.push(at)
  for (const at of sectors) {
    contents.push(now.slice(0, at) + '\0'.repeat(now.length - at), now.slice(0, at))
    contents.push(synced + garbage(at - synced.length) + now.slice(at))
    // A sector in the middle that did not come, over any older one.
    const end = Math.min(at + sectorSize, now.length)
    contents.push(now.slice(0, at) + garbage(end - at) + now.slice(end))
    contents.push(now.slice(0, at) + '\0'.repeat(end - at) + now.slice(end))
  }
  contents.push(now.slice(0, synced.length + Math.ceil(added / 2)), synced)
  return [...new Set(contents)]
}

function garbage(length: number): string {
  return '\u00a5'.repeat(length)
}
