import { hash } from 'node:crypto'
import type { PlannedContent } from './content.js'
import { Digest, type EntryHead } from './digest.js'
import { compareBytes, type DirectoryPlan } from './request.js'
import type { Tree, TreeEntry } from './tree.js'
import type { Owner } from './types.js'

interface Item {
  readonly path: string
  /** undefined: a directory. */
  readonly content?: PlannedContent
  readonly mode: number
}

/** What a target will be once its plan is published. */
export class PlannedTree {
  #tree: Tree | undefined

  private constructor(
    private readonly items: readonly Item[],
    private readonly owner: Owner,
  ) {}

  static ofDirectory(plan: DirectoryPlan, user: Owner): PlannedTree {
    const directories = ['', ...plan.directories].map((path): Item => ({ path, mode: plan.mode }))
    const items = [...directories, ...plan.files].sort((a, b) => compareBytes(a.path, b.path))
    return new PlannedTree(items, plan.owner ?? user)
  }

  static ofFile(content: PlannedContent, mode: number, owner: Owner): PlannedTree {
    return new PlannedTree([{ path: '', content, mode }], owner)
  }

  get tree(): Tree {
    if (!this.#tree) throw new Error('read() comes first')
    return this.#tree
  }

  /** Reads all content, for its digest. */
  async read(): Promise<void> {
    const digest = new Digest()
    const entries: TreeEntry[] = []
    for (const { path, content, mode } of this.items) {
      const type = content === undefined ? 'directory' : 'file'
      const head: EntryHead = { type, path, mode, uid: this.owner.uid, gid: this.owner.gid }
      entries.push({ ...head, sha256: await addTo(digest, head, content) })
    }
    this.#tree = { entries, digest: digest.text() }
  }

  async close(): Promise<void> {
    for (const { content } of this.items) if (content && !(content instanceof Uint8Array)) await content.close()
  }
}

/** Answers the content's own digest: empty for a directory. */
async function addTo(digest: Digest, head: EntryHead, content: PlannedContent | undefined): Promise<string> {
  if (content === undefined || content instanceof Uint8Array) {
    digest.entry(head, content?.length ?? 0)
    if (content) digest.content(content)
    return content ? hash('sha256', content) : ''
  }
  digest.entry(head, await content.size())
  for await (const piece of content.pieces()) digest.content(piece)
  return content.sha256
}
