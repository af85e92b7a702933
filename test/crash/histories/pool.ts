/** All that was ever at the paths of a life, with its records and earlier contents; and another program that has it at hand. */
import type { Deed } from './life.js'
import type { Change } from './operations.js'
import { textOf } from '../judge/directory.js'
import { isKind, nameBeside, ownPrefix } from '../judge/names.js'
import type { Ground } from './play.js'
import { below, nameOf, parentOf, type Seen, type Snapshot, under } from './snapshot.js'

interface Item {
  readonly tree: ReadonlyMap<string, Seen>
  /** By name beside the path, or below such a name: records and earlier contents. */
  readonly own: ReadonlyMap<string, Seen>
}

const isRecord = isKind('record')
const aside = 'b/moved'
const isDirectory = ({ type }: Seen): boolean => type === 'directory'

/** Names of its records, the newest last. */
function recordsOf(snapshot: Snapshot, path: string): string[] {
  const prefix = ownPrefix(path)
  const sequenceOf = (name: string): number => nameBeside(nameOf(name)).sequence ?? 0
  const found = [...snapshot.keys()].filter((name) => name.startsWith(prefix) && isRecord(nameOf(name)))
  return found.sort((one, other) => sequenceOf(one) - sequenceOf(other))
}

function itemAt(snapshot: Snapshot, path: string): Item {
  const prefix = ownPrefix(path)
  const own = [...snapshot].filter(([name]) => name.startsWith(`${prefix}.`) && name !== `${prefix}.lock`)
  const parent = parentOf(path)
  return { tree: below(snapshot, path), own: new Map(own.map(([name, seen]) => [name.slice(parent.length + 1), seen])) }
}

/** Deeds that change what is beside the target, and not the target alone. */
export const touchesRecords: ReadonlySet<string> = new Set([
  'bring',
  'restore',
  'mount',
  'forget',
  'thin',
  'tear',
  'unmount',
])

export class Pool {
  readonly #items = new Map<string, Map<string, Item>>()
  #mounts = 0
  readonly #mounted: string[] = []

  constructor(readonly ground: Ground) {}

  /** What is there now was there. */
  note(path: string, snapshot: Snapshot): void {
    const item = itemAt(snapshot, path)
    if (item.tree.size + item.own.size === 0) return
    const items = this.#items.get(path) ?? new Map<string, Item>()
    const text = `${textOf(item.tree)}\n${textOf(item.own)}`
    items.delete(text)
    items.set(text, item)
    this.#items.set(path, items)
  }

  do({ do: what, path, item: back }: Deed): void {
    const items = [...(this.#items.get(path)?.values() ?? [])].reverse()
    const item = items[(back + 1) % Math.max(items.length, 1)]
    const snapshot = this.ground.look()
    const parent = parentOf(path)
    const records = recordsOf(snapshot, path)
    const change = (operation: Change): void => this.ground.change(operation)
    const remove = (one: string | undefined): void =>
      one === undefined ? undefined : change({ do: 'remove', path: one })
    if (what === 'edit') change({ do: 'write', path: isAFile(snapshot, path) ? path : `${path}/key`, text: 'edited\n' })
    if (what === 'drop') remove(path)
    if (what === 'forget') remove(records.at(-1))
    if (what === 'thin')
      remove(
        [...itemAt(snapshot, path).own.keys()]
          .filter((name) => /\.[0-9]+-[^/]*$/.test(name))
          .map((name) => under(parent, name))[0],
      )
    if (what === 'aside') change({ do: 'rename', from: path, to: aside })
    if (what === 'back' && !snapshot.has(path)) change({ do: 'rename', from: aside, to: path })
    if (what === 'tear') this.#tear(records.at(-1), snapshot, back)
    if (item === undefined) return
    if (what === 'put' || what === 'restore') remove(path)
    if (what === 'restore')
      for (const name of itemAt(snapshot, path).own.keys()) if (!name.includes('/')) remove(under(parent, name))
    if (what === 'put' || what === 'copy' || what === 'restore') this.#write(path, item.tree)
    if (what === 'restore' || what === 'bring')
      this.#write(parent, what === 'restore' ? item.own : onlyRecords(item.own))
    if (what === 'mount') this.#mount(parent, nameOf(path), item)
  }

  unmount(): void {
    for (const path of this.#mounted.splice(0)) this.ground.change({ do: 'unmount', path })
  }

  /** Another disk, with what was there then. */
  #mount(parent: string, name: string, { tree, own }: Item): void {
    if (parent.startsWith('o/')) return
    const from = `o/b/disk${++this.#mounts}`
    this.ground.change({ do: 'mkdir', path: from })
    this.#write(`${from}/${name}`, tree)
    this.#write(from, own)
    void this.ground.sync()
    this.ground.change({ do: 'mount', from, to: parent })
    this.#mounted.unshift(parent)
  }

  #write(root: string, entries: ReadonlyMap<string, Seen>): void {
    const change = (operation: Change): void => this.ground.change(operation)
    for (const [name, seen] of [...entries].sort(([one], [other]) => (one < other ? -1 : 1))) {
      const path = name === '' ? root : under(root, name)
      if (!isDirectory(seen)) change({ do: 'remove', path })
      if (isDirectory(seen)) change({ do: 'mkdir', path })
      else if (seen.type === 'file') change({ do: 'write', path, text: seen.data })
      else change({ do: 'symlink', from: under(parentOf(path), seen.data), to: path })
      if (seen.type !== 'symlink') change({ do: 'chmod', path, mode: seen.mode })
    }
  }

  /** The record's last line is cut short, or half of another one follows it, as a full disk leaves it. */
  #tear(record: string | undefined, snapshot: Snapshot, back: number): void {
    const seen = record === undefined ? undefined : snapshot.get(record)
    if (record === undefined || seen === undefined) return
    if (back % 2 === 0) {
      this.ground.change({ do: 'write', path: record, text: seen.data.slice(0, 40) })
      return
    }
    const lines = seen.data.trimEnd().lastIndexOf('\n')
    // The first line of a record is durable before anything is visible: a crash tears what was appended.
    if (lines === -1) return
    const torn = seen.data.slice(0, lines + 1 + 20 * back)
    this.#write(parentOf(record), new Map([[nameOf(record), { ...seen, data: torn }]]))
  }
}

function isAFile(snapshot: Snapshot, path: string): boolean {
  return snapshot.get(path)?.type === 'file'
}

function onlyRecords(own: ReadonlyMap<string, Seen>): ReadonlyMap<string, Seen> {
  return new Map([...own].filter(([name]) => isRecord(name)))
}
