import { dirname } from 'node:path'
import { faultOfContent, faultOfLinks } from '../judge/contents.js'
import { type Content, expectedView, find, missing, type Target, viewOf } from './content.js'
import type { ModelDisk } from './model-disk.js'

/** What the contract allows of one target: kept beside the disk, and changed by what the calls answer alone. */
export interface Ledger {
  /** Name of the content that is visible. */
  readonly visible: string
  /** Names of the contents that a power cut may leave. */
  readonly possible: ReadonlySet<string>
  /** Contents whose links may be there or not: emptied by a success. */
  readonly linked: ReadonlySet<string>
}

/** The contents that a target may hold, and how to recognize them. */
export class Catalogue {
  readonly #byView = new Map<string, string>()
  readonly #links = new Map<string, ReadonlySet<string>>()
  readonly #byName = new Map<string, Content>()

  constructor(
    readonly target: Target,
    contents: readonly Content[],
  ) {
    this.#byView.set(missing, missing)
    this.#links.set(missing, new Set())
    for (const content of contents) {
      this.#byName.set(content.name, content)
      this.#expect(content.name, content)
      if (content.extended) this.#expect(bare(content.name), { ...content, extended: {} })
    }
  }

  #expect(name: string, content: Content): void {
    const view = expectedView(content, this.target.form)
    this.#byView.set(view.content, name)
    this.#links.set(name, view.links)
  }

  /**
   * The name of what the target holds once the content `wanted` is published over the visible one: ACLs and user attributes stay with root,
   * and with a user who owns both; a former owner's go, and what is gone stays gone.
   */
  made(wanted: string, visible: string): string {
    const content = this.#byName.get(wanted)
    if (!content?.extended) return wanted
    const former = visible === 'foreign' ? 0 : this.#byName.get(visible) && ownerOf(this.content(visible))
    return former === 0 || former === ownerOf(content) ? wanted : bare(wanted)
  }

  /** A content that no call requested, as the disk has it; `like`: the content whose links it has. */
  learn(name: string, disk: ModelDisk, like?: string): void {
    const { content, links } = viewOf(disk, this.target)
    if (this.#byView.has(content)) return
    this.#byView.set(content, name)
    this.#links.set(name, like === undefined ? links : this.links(like))
  }

  /** Whether this text is that of a whole content. */
  knows(text: string): boolean {
    return this.#byView.has(text)
  }

  content(name: string): Content {
    const content = this.#byName.get(name)
    if (!content) throw new Error(`no content is called ${name}`)
    return content
  }

  links(name: string): ReadonlySet<string> {
    return this.#links.get(name) ?? new Set()
  }

  /** The name of the visible content; a fault where no call ever requested it, or it is none of the `possible` ones. */
  visible(
    disk: ModelDisk,
    possible?: ReadonlySet<string>,
  ): { name: string; fault?: undefined } | { name?: undefined; fault: string } {
    const { content } = viewOf(disk, this.target)
    const name = this.#byView.get(content)
    if (name !== undefined && (possible ?? this.#links).has(name)) return { name }
    const texts = [...this.#byView].map(([text, one]) => [one, text] as const)
    const allowed = new Map(texts.filter(([one]) => possible?.has(one) ?? true))
    return { fault: faultOfContent(this.target.path, content, allowed, () => name) ?? '' }
  }
}

function bare(name: string): string {
  return `${name}, without lists`
}

function ownerOf({ request }: Content): number {
  return request.owner?.uid ?? 0
}

export function settledLedger(visible: string): Ledger {
  return { visible, possible: new Set([visible]), linked: new Set([visible]) }
}

export function attemptLedger(ledger: Ledger, wanted: string): Ledger {
  return {
    visible: ledger.visible,
    possible: new Set([...ledger.possible, wanted]),
    linked: new Set([...ledger.linked, wanted]),
  }
}

/** The fault of a target, as a sentence, or none. `visible` is its content. */
export function judge(
  catalogue: Catalogue,
  ledger: Ledger,
  disk: ModelDisk,
): { visible: string; fault?: undefined } | { fault: string } {
  const found = catalogue.visible(disk, ledger.possible)
  if (found.fault !== undefined) return { fault: found.fault }
  const { name } = found
  const { path, form } = catalogue.target
  if (name !== missing && ledger.possible.size === 1 && ledger.linked.size === 1) {
    const fault = faultOfAncestors(disk, path)
    if (fault !== undefined) return { fault }
  }
  if (form === 'symlink' && name !== missing) {
    const fault = faultOfForm(catalogue, ledger, disk, name)
    if (fault !== undefined) return { fault }
  }
  return { visible: name }
}

/** Directories above the target that had to be made are for everybody to pass. */
function faultOfAncestors(disk: ModelDisk, path: string): string | undefined {
  for (let above = dirname(path); above !== '/'; above = dirname(above)) {
    const mode = find(disk, above)?.now.attributes.mode
    // A zeroed inode has lost its mode with the power: no program can tell it from a foreign one.
    if (mode !== 0o755 && mode !== 0) return `${above}, above ${path}, has mode ${String(mode?.toString(8))}`
  }
  return undefined
}

/** After a success each name has its link and no other; else those that all the contents in question share. */
function faultOfForm(catalogue: Catalogue, ledger: Ledger, disk: ModelDisk, name: string): string | undefined {
  const { target } = catalogue
  const { links } = viewOf(disk, target)
  const contents = [...ledger.linked].filter((content) => content !== missing)
  const isSettled = ledger.possible.size === 1 && contents.length <= 1
  const others = isSettled ? [] : contents.map((content) => catalogue.links(content))
  const fault = faultOfLinks(target.path, links, catalogue.links(name), others)
  if (fault !== undefined) return `${fault}; it holds ${name}`
  if (!isSettled) return undefined
  const mode = find(disk, target.path)?.now.attributes.mode
  return mode === 0o755 ? undefined : `${target.path} has mode ${String(mode?.toString(8))}`
}
