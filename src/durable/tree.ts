import { createHash, hash } from 'node:crypto'
import { Digest, type EntryHead } from './digest.js'
import type { Attributes, Descriptor, EntryType, ExtendedAttributes, FileSystem } from './file-system.js'
import { modeOf } from './kept-attributes.js'
import { entriesBelow, nameOf, OpenDirectories, parentOf } from './open-directories.js'
import { type Identity, identityOf } from './place.js'
import { Scope } from './scope.js'

/** One entry of a directory tree; the target itself has the empty path. */
export interface TreeEntry extends EntryHead {
  /** Hex SHA-256 of a file's content or a link's text; empty for everything else. */
  readonly sha256: string
  readonly label?: Uint8Array
  /** ACLs and user attributes, of what was read from the disk and has any. `mode` is by its ACL. */
  readonly extended?: ExtendedAttributes
  /** When the inode was changed last, of what was read from the disk. */
  readonly changed?: bigint
  /** Bytes of a file that was read from the disk. */
  readonly size?: number
}

/** What a target holds, or is to hold: entries in byte order of their paths, and the digest over them. */
export interface Tree {
  readonly entries: readonly TreeEntry[]
  readonly digest: string
  /** Of the inode that holds it; undefined of what is not on the disk yet. */
  readonly identity?: Identity
}

/** What is at a target now. */
export interface Current {
  readonly attributes: Attributes
  /** What it holds; undefined where its form is broken. */
  readonly tree: Tree | undefined
}

/** Reads a directory as it is on the disk. With `labels`, each entry's SELinux label too. */
export async function readTree(fs: FileSystem, root: Descriptor, labels: boolean): Promise<Tree> {
  const directories = new OpenDirectories(fs, root)
  try {
    const digest = new Digest()
    const entries: TreeEntry[] = [await readDirectory(fs, root, '', digest, labels)]
    for await (const { path, type } of entriesBelow(directories)) {
      const read = await readEntry(directories, path, type, digest, labels)
      if (read) entries.push(read)
    }
    return { entries, digest: digest.text(), identity: identityOf(await fs.attributes(root)) }
  } finally {
    await directories.closeAll()
  }
}

/** Reads a single file as a tree of one entry. */
export async function readFileTree(fs: FileSystem, parent: Descriptor, name: string): Promise<Tree> {
  const scope = new Scope(fs)
  try {
    const digest = new Digest()
    const file = await scope.keep(fs.openFile(parent, name))
    const entry = await readFile(fs, file, '', digest, true)
    return { entries: [entry], digest: digest.text(), identity: identityOf(await fs.attributes(file)) }
  } finally {
    await scope.closeAll()
  }
}

/** What is open is asked for its attributes: that costs next to nothing, and cannot be another entry. */
async function readEntry(
  directories: OpenDirectories,
  path: string,
  type: EntryType,
  digest: Digest,
  labels: boolean,
): Promise<TreeEntry | undefined> {
  const { fs } = directories
  if (type === 'directory') {
    return directories.use(path, (directory) => readDirectory(fs, directory, path, digest, labels))
  }
  if (type !== 'file') return directories.use(parentOf(path), (parent) => readOther(fs, parent, path, digest))
  const file = await directories.use(parentOf(path), (parent) => fs.openFile(parent, nameOf(path)))
  try {
    return await readFile(fs, file, path, digest, labels)
  } finally {
    await fs.close(file)
  }
}

async function readDirectory(
  fs: FileSystem,
  directory: Descriptor,
  path: string,
  digest: Digest,
  labels: boolean,
): Promise<TreeEntry> {
  const attributes = await fs.attributes(directory)
  const extended = await fs.extendedAttributes(directory)
  const head = headOf(path, attributes, extended)
  digest.entry(head, 0)
  const label = labels ? await fs.label(directory) : undefined
  return { ...head, sha256: '', changed: attributes.changed, ...(label && { label }), ...(extended && { extended }) }
}

async function readFile(
  fs: FileSystem,
  file: Descriptor,
  path: string,
  digest: Digest,
  labels: boolean,
): Promise<TreeEntry> {
  const attributes = await fs.attributes(file)
  const extended = await fs.extendedAttributes(file)
  const head = headOf(path, attributes, extended)
  digest.entry(head, attributes.size)
  const content = createHash('sha256')
  for await (const piece of fs.read(file, attributes.size)) {
    digest.content(piece)
    content.update(piece)
  }
  const label = labels ? await fs.label(file) : undefined
  const { changed, size } = attributes
  return {
    ...head,
    sha256: content.digest('hex'),
    changed,
    size,
    ...(label && { label }),
    ...(extended && { extended }),
  }
}

/** A link, a socket, a device: it is not opened. undefined where it has gone meanwhile. */
async function readOther(
  fs: FileSystem,
  parent: Descriptor,
  path: string,
  digest: Digest,
): Promise<TreeEntry | undefined> {
  const name = nameOf(path)
  const attributes = await fs.look(parent, name)
  if (attributes === undefined) return undefined
  const head = headOf(path, attributes)
  if (attributes.type !== 'symlink') {
    digest.entry(head, 0)
    return { ...head, sha256: '', changed: attributes.changed }
  }
  const text = Buffer.from(await fs.readLink(parent, name))
  digest.entry(head, text.length)
  digest.content(text)
  return { ...head, sha256: hash('sha256', text), changed: attributes.changed }
}

function headOf(path: string, { type, mode, uid, gid }: Attributes, extended?: ExtendedAttributes): EntryHead {
  return { type, path, mode: modeOf(mode, extended), uid, gid }
}

/** A whole file, copied piece by piece: the file system uses its buffer again. `size`: its bytes, where they are known. */
export async function readWhole(fs: FileSystem, file: Descriptor, size?: number): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of fs.read(file, size)) pieces.push(Buffer.from(piece))
  return Buffer.concat(pieces)
}
