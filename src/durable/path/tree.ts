import { nameOf, parentOf } from '../../relative-path.js'
import { createHash, hash, type Hash } from 'node:crypto'
import { codeOf } from '../../errors.js'
import { type DurableWriteError, unfit } from '../errors.js'
import type { Attributes, Descriptor, EntryType, ExtendedAttributes, FileSystem } from '../file-system.js'
import { modeOf } from './kept-attributes.js'
import { type Bound, entriesBelow, inTree, type OpenDirectories } from './open-directories.js'
import { inOrder } from '../../parallel.js'
import { type Identity, identityOf } from './place.js'
import { inScope, type Scope } from './scope.js'

/*
 * The digest of a publication: SHA-256 over its entries in byte order of their paths, the target itself first, as the
 * empty path. Each entry is one byte of type ('d' or 'f', 'l' for a symbolic link, 'o' for anything else), then the path
 * with its length before it, mode, uid, gid, and for files and links the content with its length before it. Lengths are
 * 64 bits, mode, uid and gid 32 bits, all little-endian. Printed as `sha256:` and 64 hex digits.
 */

export interface EntryHead {
  readonly type: 'file' | 'directory' | 'symlink' | 'other'
  readonly path: string
  readonly mode: number
  readonly uid: number
  readonly gid: number
}

const typeBytes = { file: 'f', directory: 'd', symlink: 'l', other: 'o' } as const

/** 64 bits, in two halves: a BigInt would allocate an object, and this runs twice for each file. */
function writeLength(bytes: Buffer, length: number, at: number): number {
  const low = length % 2 ** 32
  return bytes.writeUInt32LE((length - low) / 2 ** 32, bytes.writeUInt32LE(low, at))
}

export class Digest {
  readonly #hash: Hash = createHash('sha256')

  /** Adds an entry; the content of a file or link follows through `content`, `size` bytes in all. */
  entry(head: EntryHead, size: number): void {
    const path = Buffer.from(head.path, 'utf8')
    const hasContent = head.type === 'file' || head.type === 'symlink'
    // In one piece: each update of a hash is a call out of JavaScript.
    const bytes = Buffer.allocUnsafe(1 + 8 + path.length + 12 + (hasContent ? 8 : 0))
    let at = bytes.write(typeBytes[head.type], 'latin1')
    at = writeLength(bytes, path.length, at)
    at += path.copy(bytes, at)
    for (const number of [head.mode, head.uid, head.gid]) at = bytes.writeUInt32LE(number, at)
    if (hasContent) writeLength(bytes, size, at)
    this.#hash.update(bytes)
  }

  content(bytes: Uint8Array): void {
    this.#hash.update(bytes)
  }

  text(): string {
    return `sha256:${this.#hash.digest('hex')}`
  }
}

/** One entry of a directory tree; the target itself has the empty path. */
export interface TreeEntry extends EntryHead {
  /** Hex SHA-256 of a file's content or a link's text; empty for everything else. */
  readonly sha256: string
  readonly label?: Uint8Array
  /** ACLs and user attributes that the disk has for it. `mode` is by its ACL. */
  readonly extended?: ExtendedAttributes
  /** When the inode changed last, of an entry on the disk. */
  readonly changed?: bigint
  /** Bytes of a file. */
  readonly size?: number
  /** As of Attributes; absent where there are none. */
  readonly flags?: number
}

/** What a target holds, or is to hold: entries in byte order of their paths, and the digest over them. */
export interface Tree {
  readonly entries: readonly TreeEntry[]
  readonly digest: string
  /** Of its inode; undefined before the entry is on the disk. */
  readonly identity?: Identity
  /** It holds more: see Bound. The digest is no content's, and what was not read has no SHA-256. */
  readonly isCut?: true
}

/** The content of a target now. */
export interface Current {
  readonly attributes: Attributes
  /** undefined where its form is broken. */
  readonly tree: Tree | undefined
}

/** Bytes below which a reader reads files ahead of their turn: so much of each stays in memory meanwhile. */
const readAhead = 16 * 1024

/**
 * Reads a directory as it is on the disk, as far as the bound goes. With `labels`, each entry's SELinux label too. `known`: its attributes,
 * where the caller has just asked.
 */
export async function readTree(
  fs: FileSystem,
  root: Descriptor,
  labels: boolean,
  bound?: Bound,
  known?: Attributes,
): Promise<Tree> {
  const digest = new Digest()
  const attributes = known ?? (await fs.attributes(root))
  const { device } = attributes
  const readRoot = await beginDirectory(fs, root, attributes, '', labels)
  const entries: TreeEntry[] = [await readRoot(digest)]
  const readBelow = async (directories: OpenDirectories, files: Scope): Promise<void> => {
    const reading = inOrder(entriesBelow(directories, bound), fs.callsAtATime, ({ path, type }) =>
      beginEntry(directories, files, path, type, device, labels, bound),
    )
    for await (const read of reading) {
      const entry = await read?.(digest)
      if (entry) entries.push(entry)
    }
  }
  await inTree(fs, root, (directories) => inScope(fs, (files) => readBelow(directories, files)))
  return { entries, ...endOf(digest, bound), identity: identityOf(attributes) }
}

function endOf(digest: Digest, bound: Bound | undefined): Pick<Tree, 'digest' | 'isCut'> {
  if (bound?.isCut !== true) return { digest: digest.text() }
  digest.content(Buffer.from('and more'))
  return { digest: digest.text(), isCut: true }
}

/** Reads a single file as a tree of one entry. */
export async function readFileTree(fs: FileSystem, parent: Descriptor, name: string, bound?: Bound): Promise<Tree> {
  return inScope(fs, async (scope) => {
    const digest = new Digest()
    const file = await openUnlessLeased(scope, parent, name, bound)
    const read =
      file === undefined ? await beginOther(fs, parent, name, '') : await beginFile(fs, file, '', true, bound)
    const entry = await read?.(digest)
    const attributes = file === undefined ? await fs.look(parent, name) : await fs.attributes(file)
    const identity = attributes && identityOf(attributes)
    return { entries: entry ? [entry] : [], ...endOf(digest, bound), ...(identity && { identity }) }
  })
}

/** undefined where its owner has a lease of it (fcntl(2)), and can keep it for ever. */
async function openUnlessLeased(
  files: Scope,
  parent: Descriptor,
  name: string,
  bound: Bound | undefined,
): Promise<Descriptor | undefined> {
  try {
    return await files.keep(files.fs.openFile(parent, name))
  } catch (error) {
    if (bound === undefined || codeOf(error) !== 'EAGAIN') throw error
    bound.leftOut()
    return undefined
  }
}

/** Adds one entry to the digest, in its turn. */
type Read = (digest: Digest) => TreeEntry | Promise<TreeEntry>

/** Asks the open descriptor for its attributes: that costs next to nothing, and cannot be another entry. */
async function beginEntry(
  directories: OpenDirectories,
  files: Scope,
  path: string,
  type: EntryType,
  device: number,
  labels: boolean,
  bound: Bound | undefined,
): Promise<Read | undefined> {
  const { fs } = directories
  if (type === 'directory') {
    return directories.use(path, async (directory) => {
      const attributes = await fs.attributes(directory)
      if (attributes.device !== device) throw otherDevice(path)
      return beginDirectory(fs, directory, attributes, path, labels)
    })
  }
  const name = nameOf(path)
  const open = (parent: Descriptor) => openUnlessLeased(files, parent, name, bound)
  const file = type === 'file' ? await directories.use(parentOf(path), open) : undefined
  if (file === undefined) return directories.use(parentOf(path), (parent) => beginOther(fs, parent, name, path))
  const read = await beginFile(fs, file, path, labels, bound)
  return async (digest) => {
    const entry = await read(digest)
    await files.close(file)
    return entry
  }
}

async function beginDirectory(
  fs: FileSystem,
  directory: Descriptor,
  attributes: Attributes,
  path: string,
  labels: boolean,
): Promise<Read> {
  const extended = await fs.extendedAttributes(directory)
  const label = labels ? await fs.label(directory) : undefined
  return (digest) => {
    const head = headOf(path, attributes, extended)
    digest.entry(head, 0)
    return { ...head, sha256: '', ...ownOf(attributes, label, extended) }
  }
}

async function beginFile(
  fs: FileSystem,
  file: Descriptor,
  path: string,
  labels: boolean,
  bound?: Bound,
): Promise<Read> {
  const attributes = await fs.attributes(file)
  const extended = await fs.extendedAttributes(file)
  const label = labels ? await fs.label(file) : undefined
  const isRead = bound?.reads(path, attributes.size) ?? true
  const pieces = fs.read(file, attributes.size)[Symbol.asyncIterator]() as Pieces
  const first = isRead && attributes.size < readAhead ? await pieces.next() : undefined
  return async (digest) => {
    const head = headOf(path, attributes, extended)
    const { size } = attributes
    digest.entry(head, size)
    return {
      ...head,
      sha256: isRead ? await addContent(digest, pieces, first, size) : '',
      size,
      ...ownOf(attributes, label, extended),
    }
  }
}

/** What the digest does not cover. */
function ownOf(
  { changed, flags }: Attributes,
  label: Uint8Array | undefined,
  extended: ExtendedAttributes | undefined,
): Pick<TreeEntry, 'changed' | 'flags' | 'label' | 'extended'> {
  return { changed, ...(flags !== 0 && { flags }), ...(label && { label }), ...(extended && { extended }) }
}

/** A btrfs subvolume is no mount, and openat2 lets it pass: its device number tells it. holdfast leaves it alone, as it does a mount. */
function otherDevice(path: string): DurableWriteError {
  return unfit(`${path} in it is not on its device (as the root of a btrfs subvolume is)`, {
    code: 'EXDEV',
    syscall: 'fstat',
    path,
    advice: 'move it away, delete the subvolume (btrfs subvolume delete), or name a directory that holds none',
  })
}

type Pieces = AsyncIterator<Uint8Array, void>

/** Adds a file's content to the digest, and answers its own. `first`: the first piece, where the caller has it. */
async function addContent(
  digest: Digest,
  pieces: Pieces,
  first: IteratorResult<Uint8Array, void> | undefined,
  size: number,
): Promise<string> {
  // Most files are one piece, whose hash costs half as much at once. Bytes that are appended from now on came after the look.
  if (first?.done === false && first.value.length === size) {
    digest.content(first.value)
    const sha256 = hash('sha256', first.value)
    await pieces.return?.()
    return sha256
  }
  const content = createHash('sha256')
  let read = 0
  // What is appended meanwhile has no end.
  for (let piece = first ?? (await pieces.next()); piece.done !== true && read <= size; piece = await pieces.next()) {
    digest.content(piece.value)
    content.update(piece.value)
    read += piece.value.length
  }
  await pieces.return?.()
  return content.digest('hex')
}

/** A link, a socket, a device, a file that may not be read: it is not opened. undefined where it has gone meanwhile. */
async function beginOther(fs: FileSystem, parent: Descriptor, name: string, path: string): Promise<Read | undefined> {
  const attributes = await fs.look(parent, name)
  if (attributes === undefined) return undefined
  const { type, changed } = attributes
  const head = headOf(path, attributes)
  const text = type === 'symlink' ? Buffer.from(await fs.readLink(parent, name)) : undefined
  return (digest) => {
    digest.entry(head, text?.length ?? 0)
    if (text) digest.content(text)
    return { ...head, sha256: text ? hash('sha256', text) : '', changed }
  }
}

function headOf(path: string, { type, mode, uid, gid }: Attributes, extended?: ExtendedAttributes): EntryHead {
  return { type, path, mode: modeOf(mode, extended), uid, gid }
}

/**
 * A whole file, copied piece by piece, since the file system uses its buffer again. `size`: its bytes, where the caller knows them; not much
 * more is read then.
 */
export async function readWhole(fs: FileSystem, file: Descriptor, size?: number): Promise<Buffer> {
  const pieces: Buffer[] = []
  let read = 0
  for await (const piece of fs.read(file, size)) {
    pieces.push(Buffer.from(piece))
    read += piece.length
    if (size !== undefined && read > size) break
  }
  return Buffer.concat(pieces)
}
