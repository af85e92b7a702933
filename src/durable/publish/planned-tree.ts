import { createHash, hash } from 'node:crypto'
import type { PlannedContent } from './content.js'
import {
  type ContentSource,
  Digest,
  type EntryHead,
  type Tree,
  type TreeEntry,
  accessAttribute,
} from '../path/index.js'
import { unfit } from '../errors.js'
import type { DirectoryPlan, PlannedEntry } from './request.js'
import type { Owner } from '../types.js'
import { directoriesAbove } from '../../relative-path.js'
import type { Attributes, FileSystem } from '../file-system.js'

interface PlannedItem extends PlannedEntry {
  readonly owner: Owner
}

/** Appends bytes to a file. */
type Write = (bytes: Uint8Array) => Promise<void>

/** Makes a file, and reads its content into it. */
type Staging = (file: PlannedFile, read: (write: Write) => Promise<void>) => Promise<void>

/** An entry without its content. */
export type PlannedHead = EntryHead & { readonly type: 'file' | 'directory' }

export interface PlannedFile extends PlannedItem {
  readonly content: PlannedContent
}

/** Mode and owner of an entry. */
type EntryAttributes = Pick<PlannedItem, 'mode' | 'owner'>

/** What a kept mode may hold: no new content runs as another user. */
const mostKept = { file: 0o777, directory: 0o3777 } as const

/** What a target will be once its plan is published. */
export class PlannedTree {
  #tree: Tree | undefined
  #items: readonly PlannedItem[]
  /** Bytes of each content: some can tell their size only once. */
  readonly #sizes = new Map<PlannedContent, number>()

  /** `items`: in byte order of their paths. */
  private constructor(items: readonly PlannedItem[]) {
    this.#items = items
  }

  static ofDirectory(plan: DirectoryPlan, user: Owner): PlannedTree {
    // The process is asked for its own once, not for each entry.
    const owner = plan.owner ?? { ...user }
    const items = plan.planned.map((entry): PlannedItem => {
      const own = plan.entries?.get(entry.path)
      return own === undefined ? { ...entry, owner } : { ...entry, mode: own.mode, owner: own.owner }
    })
    return new PlannedTree(items)
  }

  static ofFile(content: PlannedContent, mode: number, owner: Owner): PlannedTree {
    return new PlannedTree([{ path: '', content, mode, owner }])
  }

  get tree(): Tree {
    if (!this.#tree) throw new Error('read() comes first')
    return this.#tree
  }

  /** The target itself. */
  get root(): PlannedItem {
    const [root] = this.#items
    if (root === undefined) throw new Error('a plan has no target')
    return root
  }

  get files(): PlannedFile[] {
    return this.#items.flatMap((item) => (item.content === undefined ? [] : [{ ...item, content: item.content }]))
  }

  /** Subdirectories, parents before children. */
  get directories(): PlannedItem[] {
    return this.#items.filter(({ path, content }) => path !== '' && content === undefined)
  }

  /**
   * After the reading: an entry of `found` of the same path and type passes its mode and owner on. A new entry in an existing target gets
   * the target's owner, and its mode if it is a directory. `what`: both, or the one of the two that is passed on. The mode is not where a
   * stranger may have set it: returns the paths of entries that have another one for that.
   * @throws DurableWriteError for a mode that new content may not have
   */
  async keep(
    path: string,
    found: Tree | undefined,
    what: 'keep' | 'keepMode' | 'keepOwner' = 'keep',
    isTrusted: KeepsFrom = () => true,
  ): Promise<string[]> {
    const old = new Map(found?.entries.map((entry) => [entry.path, entry]))
    const root = old.get('')
    if (root?.type !== typeOf(this.root)) return []
    const kept = (item: PlannedItem, now: TreeEntry): PlannedItem => {
      const { owner } = attributesIn(now)
      if (what === 'keepOwner') return { ...item, owner }
      const next = what === 'keepMode' ? item.owner : owner
      const mode = isTrusted(now.path, now.uid, next.uid) ? keptMode(path, now) : item.mode
      return { ...item, mode, owner: next }
    }
    const inherited = kept(this.root, root)
    const items = this.#items.map((item): PlannedItem => {
      const now = old.get(item.path)
      if (now?.type === typeOf(item)) return kept(item, now)
      return { ...item, owner: inherited.owner, mode: typeOf(item) === 'directory' ? inherited.mode : item.mode }
    })
    if (!items.every((item, index) => isSame(item, this.#items[index]))) {
      this.#items = items
      await this.read()
    }
    const isOther = (item: PlannedItem): boolean => {
      const now = old.get(item.path)
      return what !== 'keepOwner' && now?.type === typeOf(item) && now.mode !== item.mode
    }
    return items.filter(isOther).map((item) => item.path)
  }

  get isRead(): boolean {
    return this.#tree !== undefined
  }

  /** Whether some of it is not in memory, and all of that can be read for the first time when it is staged. */
  get canWait(): boolean {
    const later = this.files.flatMap(({ content }) => (content instanceof Uint8Array ? [] : [content]))
    return later.length > 0 && later.every(({ canWait }) => canWait)
  }

  /** The entries without their content, which needs a reading. */
  get heads(): PlannedHead[] {
    return this.#items.map((item) => headOf(item))
  }

  /** The files whose content is a stream that gave nothing, once read() has ended. */
  get emptyStreams(): string[] {
    const isEmpty = ({ content }: PlannedItem): boolean =>
      content !== undefined && !(content instanceof Uint8Array) && !content.canWait && this.#sizes.get(content) === 0
    return this.#items.filter(isEmpty).map(({ path }) => path)
  }

  /** The number of bytes of its content. Refuses unreadable content before the publication makes anything. */
  async measure(): Promise<number> {
    let bytes = 0
    for (const { content } of this.files)
      bytes += content instanceof Uint8Array ? content.length : await this.#sizeOf(content)
    return bytes
  }

  /** Reads it for its digest, unless that is known. */
  async readOnce(): Promise<Tree> {
    if (!this.isRead) await this.read()
    return this.tree
  }

  /** Reads all content, for its digest; `stage` makes each file, one after the other, and hands `read` what writes its pieces. */
  async read(stage?: Staging): Promise<void> {
    const digest = new Digest()
    const entries: TreeEntry[] = []
    for (const item of this.#items) {
      const head = headOf(item)
      const { content } = item
      let sha256 = ''
      const read = async (write?: Write): Promise<void> => {
        sha256 = await this.#addTo(digest, head, content, write)
      }
      await (stage && content ? stage({ ...item, content }, read) : read())
      const size = content instanceof Uint8Array ? content.length : content && (await this.#sizeOf(content))
      entries.push({ ...head, sha256, ...(size !== undefined && { size }) })
    }
    this.#tree = { entries, digest: digest.text() }
  }

  async close(): Promise<void> {
    for (const { content } of this.#items) if (content && !(content instanceof Uint8Array)) await content.close()
  }

  /** Answers the content's own digest: empty for a directory. */
  async #addTo(
    digest: Digest,
    head: EntryHead,
    content: PlannedContent | undefined,
    write: Write | undefined,
  ): Promise<string> {
    if (content === undefined || content instanceof Uint8Array) {
      digest.entry(head, content?.length ?? 0)
      if (content === undefined) return ''
      const sha256 = await hashInSlices(digest, content)
      await write?.(content)
      return sha256
    }
    digest.entry(head, await this.#sizeOf(content))
    for await (const piece of content.pieces(write ? 1 : 2)) {
      digest.content(piece)
      await write?.(piece)
    }
    return content.sha256
  }

  async #sizeOf(content: ContentSource): Promise<number> {
    const size = this.#sizes.get(content) ?? (await content.size())
    this.#sizes.set(content, size)
    return size
  }
}

/** Bytes that are hashed twice in some 10 to 50 ms. */
const slice = 8 * 1024 * 1024

/**
 * Adds content to the digest and answers its own SHA-256. Between two slices the event loop has its turn: a service that embeds the
 * library goes on answering while it publishes hundreds of megabytes.
 */
async function hashInSlices(digest: Digest, content: Uint8Array): Promise<string> {
  if (content.length <= slice) {
    digest.content(content)
    return hash('sha256', content)
  }
  const whole = createHash('sha256')
  for (let at = 0; at < content.length; at += slice) {
    const piece = content.subarray(at, at + slice)
    digest.content(piece)
    whole.update(piece)
    await new Promise(setImmediate)
  }
  return whole.digest('hex')
}

function headOf(item: PlannedItem): PlannedHead {
  const { path, mode, owner } = item
  return { type: typeOf(item), path, mode, uid: owner.uid, gid: owner.gid }
}

function typeOf({ content }: Pick<PlannedItem, 'content'>): 'directory' | 'file' {
  return content === undefined ? 'directory' : 'file'
}

function attributesIn({ mode, uid, gid }: TreeEntry): EntryAttributes {
  return { mode, owner: { uid, gid } }
}

function isSame(a: EntryAttributes, b: EntryAttributes | undefined): boolean {
  return a.mode === b?.mode && a.owner.uid === b.owner.uid && a.owner.gid === b.owner.gid
}

/** The mode that an entry keeps of the present one. */
function keptMode(target: string, entry: TreeEntry): number {
  const most = mostKept[entry.type === 'directory' ? 'directory' : 'file']
  if ((entry.mode & ~most) === 0) return entry.mode
  const path = entry.path === '' ? target : `${target}/${entry.path}`
  const [mode, limit] = [entry.mode, most].map((one) => one.toString(8).padStart(4, '0'))
  throw unfit(`${path} has mode ${mode}, and what keeps its mode gets at most ${limit}`, {
    code: 'EPERM',
    syscall: 'fstat',
    path,
    advice: `take the other bits away (chmod ${(entry.mode & most).toString(8).padStart(4, '0')}), or publish with a mode of its own`,
  })
}

interface Makers {
  readonly fs: Pick<FileSystem, 'user'>
  /** The directory that holds the target. */
  readonly parent: Pick<Attributes, 'uid' | 'mode'>
  /** Directories between it and the old content. */
  readonly between: readonly Pick<Attributes, 'mode'>[]
  readonly old: readonly TreeEntry[]
  /** What the last publication made. */
  readonly last: readonly Pick<TreeEntry, 'path' | 'uid'>[]
}

/** Decides of an old entry of this user, which `next` is to own: see trust(). */
export type KeepsFrom = (path: string, uid: number, next: number) => boolean

/**
 * Whose ACLs, user attributes and modes stay: those of entries of root, of this process's user, and of a user who is to own the entry again and
 * whom the last publication, or root, gave it. Any other user may have made the entry first, opened to themselves.
 */
export function trust({ fs, parent, between, old, last }: Makers): KeepsFrom {
  const entries = new Map(old.map((entry) => [entry.path, entry]))
  const lastOwners = new Map(last.map((entry) => [entry.path, entry.uid]))
  const keepsOut = ({ mode }: Pick<Attributes, 'mode'>): boolean => (mode & 0o022) === 0
  const isSafe = (uid: number): boolean => uid === 0 || uid === fs.user.uid
  /** Only root and this user can have made it, or somebody to whom they gave a directory of the target: chown(2) is root's. */
  const isGiven = (path: string): boolean =>
    isSafe(parent.uid) &&
    [parent, ...between].every(keepsOut) &&
    (path === '' ? [] : ['', ...directoriesAbove(path)]).every((at) => {
      const directory = entries.get(at)
      return directory !== undefined && keepsOut(directory) && directory.extended?.has(accessAttribute) !== true
    })
  return (path, uid, next) => isSafe(uid) || (uid === next && (lastOwners.get(path) === uid || isGiven(path)))
}
