import { createHash } from 'node:crypto'
import { Digest, type EntryHead } from './digest.js'
import type { Attributes, Descriptor, FileSystem } from './file-system.js'
import { compareBytes, type DirectoryPlan, type PlannedFile } from './request.js'
import { Scope } from './scope.js'
import type { Owner } from './types.js'

/** One entry of a directory tree; the target itself has the empty path. */
export interface TreeEntry extends EntryHead {
  /** Hex SHA-256 of a file's content or a link's text; empty for everything else. */
  readonly sha256: string
  readonly label?: Uint8Array
}

/** What a target holds, or is to hold: entries in byte order of their paths, and the digest over them. */
export interface Tree {
  readonly entries: readonly TreeEntry[]
  readonly digest: string
}

/** Reads a directory as it is on the disk. With `labels`, each entry's SELinux label too. */
export async function readTree(fs: FileSystem, root: Descriptor, labels: boolean): Promise<Tree> {
  const scope = new Scope(fs)
  try {
    const found: Found[] = [{ path: '', attributes: await fs.attributes(root), parent: root, name: '' }]
    await walk(scope, root, '', found)
    found.sort((a, b) => compareBytes(a.path, b.path))
    const digest = new Digest()
    const entries: TreeEntry[] = []
    for (const entry of found) entries.push(await readEntry(scope, entry, digest, labels))
    return { entries, digest: digest.text() }
  } finally {
    await scope.closeAll()
  }
}

/** Reads a single file as a tree of one entry. */
export async function readFileTree(fs: FileSystem, parent: Descriptor, name: string): Promise<Tree> {
  const scope = new Scope(fs)
  try {
    const file = await scope.keep(fs.openFile(parent, name))
    const digest = new Digest()
    const attributes = await fs.attributes(file)
    const entry = await readFile(fs, file, { path: '', attributes, parent, name }, digest, true)
    return { entries: [entry], digest: digest.text() }
  } finally {
    await scope.closeAll()
  }
}

/** What the directory will be once the plan is published. */
export function treeOf(plan: DirectoryPlan, user: Owner): Tree {
  const owner = plan.owner ?? user
  const items: (PlannedFile | { path: string; bytes?: undefined; mode: number })[] = [
    ...['', ...plan.directories].map((path) => ({ path, mode: plan.mode })),
    ...plan.files,
  ]
  items.sort((a, b) => compareBytes(a.path, b.path))
  return treeOfItems(items, owner)
}

/** What a single file will be once it is published. */
export function treeOfFile(bytes: Uint8Array, mode: number, owner: Owner): Tree {
  return treeOfItems([{ path: '', bytes, mode }], owner)
}

function treeOfItems(
  items: { path: string; bytes?: Uint8Array | undefined; mode: number }[],
  owner: Owner,
): Tree {
  const digest = new Digest()
  const entries = items.map(({ path, bytes, mode }): TreeEntry => {
    const type = bytes === undefined ? 'directory' : 'file'
    const head: EntryHead = { type, path, mode, uid: owner.uid, gid: owner.gid }
    digest.entry(head, bytes?.length ?? 0)
    if (bytes) digest.content(bytes)
    return { ...head, sha256: bytes ? createHash('sha256').update(bytes).digest('hex') : '' }
  })
  return { entries, digest: digest.text() }
}

interface Found {
  path: string
  attributes: Attributes
  /** The directory that holds it, and its name there. */
  parent: Descriptor
  name: string
}

async function walk(scope: Scope, directory: Descriptor, path: string, found: Found[]): Promise<void> {
  for (const name of await scope.fs.list(directory)) {
    const attributes = await scope.fs.look(directory, name)
    if (attributes === undefined) continue
    const entry = { path: path === '' ? name : `${path}/${name}`, attributes, parent: directory, name }
    found.push(entry)
    if (attributes.type === 'directory') {
      await walk(scope, await scope.keep(scope.fs.openDirectory(directory, name)), entry.path, found)
    }
  }
}

async function readEntry(scope: Scope, found: Found, digest: Digest, labels: boolean): Promise<TreeEntry> {
  const { fs } = scope
  const head = headOf(found)
  switch (found.attributes.type) {
    case 'file': {
      const file = await scope.keep(fs.openFile(found.parent, found.name))
      const entry = await readFile(fs, file, found, digest, labels)
      await scope.close(file)
      return entry
    }
    case 'symlink': {
      const text = Buffer.from(await fs.readLink(found.parent, found.name))
      digest.entry(head, text.length)
      digest.content(text)
      return { ...head, sha256: createHash('sha256').update(text).digest('hex') }
    }
    case 'directory': {
      digest.entry(head, 0)
      if (!labels) return { ...head, sha256: '' }
      const opened = found.name === '' ? found.parent : await fs.openDirectory(found.parent, found.name)
      try {
        const label = await fs.label(opened)
        return { ...head, sha256: '', ...(label && { label }) }
      } finally {
        if (found.name !== '') await fs.close(opened)
      }
    }
    case 'other':
      digest.entry(head, 0)
      return { ...head, sha256: '' }
  }
}

async function readFile(
  fs: FileSystem,
  file: Descriptor,
  found: Found,
  digest: Digest,
  labels: boolean,
): Promise<TreeEntry> {
  const head = headOf(found)
  digest.entry(head, found.attributes.size)
  const hash = createHash('sha256')
  for await (const piece of fs.read(file)) {
    digest.content(piece)
    hash.update(piece)
  }
  const label = labels ? await fs.label(file) : undefined
  return { ...head, sha256: hash.digest('hex'), ...(label && { label }) }
}

function headOf({ path, attributes }: Found): EntryHead {
  return { type: attributes.type, path, mode: attributes.mode, uid: attributes.uid, gid: attributes.gid }
}
