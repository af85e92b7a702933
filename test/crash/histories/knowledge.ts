/**
 * The contents that a power cut may leave of a target, by the answers and the changes since. After another program's unsynced move or
 * change, only one thing is certain: the program's own content never gets mixed into it.
 */
import { contentFor, expectedTexts, visibleText } from './contents.js'
import type { Answer, CallOutcome } from './judge.js'
import type { Allowed, NewPlace } from './judge-cut.js'
import { type Operation, type Publication, rowOf } from './operations.js'
import { bystanders, contentNames, targets } from './places.js'
import { isAtOrAbove, nameOf, parentOf, resolved, resolvedOrMade, type Snapshot, under } from './snapshot.js'

interface Known {
  /** Possible contents, as texts. */
  texts: ReadonlySet<string>
  /** Paths that were changed since, once for each change. */
  changed: string[]
  /** The same since the last answer, where all of it has become durable. */
  changedDurably: string[]
  /** Of the old content. */
  identity: string | undefined
}

export class Knowledge {
  readonly #known = new Map<string, Known>()
  /** What the bystanders held when all was durable, and all paths that were changed since. */
  readonly #bystanders = new Map<string, string | undefined>()
  #changed: string[] = []
  /** Below these lies a later mount: a power cut takes it, and other paths lead to the content published there. */
  readonly #mountedOver: string[] = []
  /** Paths are no longer what they seem. */
  #hasLinks = false

  copy(): Knowledge {
    const copy = new Knowledge()
    for (const [target, known] of this.#known)
      copy.#known.set(target, { ...known, changed: [...known.changed], changedDurably: [...known.changedDurably] })
    for (const [path, data] of this.#bystanders) copy.#bystanders.set(path, data)
    copy.#changed = [...this.#changed]
    copy.#hasLinks = this.#hasLinks
    copy.#mountedOver.push(...this.#mountedOver)
    return copy
  }

  /** All that there is is durable. */
  durable(snapshot: Snapshot): void {
    for (const target of targets) {
      const { changed = [], changedDurably = [], identity } = this.#known.get(target) ?? {}
      this.#known.set(target, {
        texts: new Set([visibleText(snapshot, target)]),
        changed: [],
        changedDurably: [...changedDurably, ...changed],
        // Content that is elsewhere just now may come back.
        identity: identityAt(snapshot, target) ?? identity,
      })
    }
    for (const path of bystanders) this.#bystanders.set(path, snapshot.get(path)?.data)
    this.#changed = []
    this.#hasLinks = hasLinks(snapshot)
  }

  /** Another program has done this. */
  changedBy(operation: Operation): void {
    this.#hasLinks ||= operation.do === 'symlink' || operation.do === 'mount' || operation.do === 'unmount'
    if (operation.do === 'mount') this.#mountedOver.push(operation.to)
    // A mount goes with the directory that holds it.
    if (operation.do === 'rename') {
      const { from, to } = operation
      const gone = this.#mountedOver.filter((path) => isAtOrAbove(from, path))
      this.#mountedOver.push(...gone.map((path) => to + path.slice(from.length)))
    }
    for (const path of rowOf(operation).touches(operation)) {
      this.#changed.push(path)
      for (const [target, known] of this.#known) {
        // A copy over a directory replaces its entries.
        const isInPlace = operation.do === 'copy' && isAtOrAbove(path, target)
        if (this.#hasLinks || isAtOrAbove(path, target) || isAtOrAbove(target, path))
          known.changed.push(isInPlace ? target : path)
      }
    }
  }

  /** A call has answered; undefined: it was killed. */
  published(publication: Publication, answer: Answer | undefined, after: Snapshot): void {
    for (const [index, target] of publication.targets.entries())
      this.answered(publication, target, answer?.outcomes[index], after)
  }

  /** The same, of one of its targets. */
  answered(publication: Publication, target: string, outcome: CallOutcome | undefined, after: Snapshot): void {
    const possible = expectedTexts(target, contentFor(publication, target))
    const known = this.#known.get(target) ?? {
      texts: new Set(),
      changed: [],
      changedDurably: [],
      identity: undefined,
    }
    if (outcome === undefined || ('error' in outcome && outcome.error.published)) {
      this.#known.set(target, { ...known, texts: new Set([...known.texts, ...possible]) })
    } else if (!('error' in outcome))
      this.#known.set(target, {
        // Which of them it was can be seen.
        texts: new Set(possible.length > 1 ? [visibleText(after, target)] : possible),
        changed: [],
        changedDurably: [],
        identity: identityAt(after, target),
      })
    // Another path may lead to the replaced content.
    if (this.#hasLinks) for (const [other, { changed }] of this.#known) if (other !== target) changed.push(target)
  }

  /** The allowed contents of each target when the power goes now, or during `publication`. */
  allowed(now: Snapshot, publication: Publication | undefined, visible: ReadonlySet<string>): Allowed[] {
    // Nor one with a mount inside, which counted as its content.
    const asked = targets.filter(
      (target) =>
        ![target, resolvedOrMade(now, target)].some(
          (path) => this.#isMountedOver(path) || this.#mountedOver.some((mounted) => isAtOrAbove(path, mounted)),
        ),
    )
    const seen = [
      ...[...now.keys()].filter((path) => contentNames.has(nameOf(path))).map((path) => visibleText(now, path)),
      ...[...this.#known.values()].flatMap(({ texts }) => [...texts]),
    ]
    return asked.map((target) => {
      const { texts, changed } = this.#known.get(target) ?? { texts: new Set<string>(), changed: [''] }
      const content = publication?.targets.includes(target) === true ? contentFor(publication, target) : undefined
      const possible = new Set([...texts, ...(content === undefined ? [] : expectedTexts(target, content))])
      return {
        target,
        // By links, the published content may be this one, too.
        texts: changed.length > 0 || (this.#hasLinks && publication && content === undefined) ? undefined : possible,
        content,
        wasVisible: visible.has(target),
        before: visibleText(now, target),
        // Content before an unsynced rename or copy may be at another path now, and come back torn.
        earlier: [...texts, ...(changed.length > 0 ? seen : [])],
        ...(content === 'moved' && publication && { movesTo: this.#newPlace(publication, now) }),
      }
    })
  }

  /**
   * It is the same inode, but something was changed twice: moved and moved back, the last time unsynced; or in place: replaced by its
   * equal, or given an access list, whose mask a power cut may leave without it. That `unchanged` says nothing of that is in
   * docs/durability.md.
   */
  mayHaveReturned(target: string, now: Snapshot): boolean {
    const known = this.#known.get(target)
    if (this.#hasLinks || known === undefined) return true
    const { changed, changedDurably } = known
    const found = identityAt(now, target)
    // It may have come from another path.
    const isSame = [...this.#known.values()].some(({ identity }) => identity === found)
    const all = [...changedDurably, ...changed]
    const isTwice = changed.length > 0 && new Set(all).size < all.length
    return isSame && (isTwice || changed.some((path) => isAtOrAbove(target, path)))
  }

  /** Other paths lead to the content of a directory, too, once its mount point has gone. */
  #newPlace({ targets: [target = ''] }: Publication, now: Snapshot): NewPlace {
    let above = parentOf(resolvedOrMade(now, target))
    let below = nameOf(target)
    for (; !now.has(above); above = parentOf(above)) below = under(nameOf(above), below)
    const found = now.get(above)?.identity
    const all = [...now].filter(([, { type, identity }]) => type === 'directory' && identity === found)
    const paths = all.map(([path]) => under(path, below)).filter((path) => !this.#isMountedOver(path))
    return { target, paths }
  }

  #isMountedOver(path: string): boolean {
    return this.#mountedOver.some((over) => isAtOrAbove(over, path))
  }

  /** A bystander that no operation has touched since it was durable, and that has changed. */
  lostBystander(snapshot: Snapshot): string | undefined {
    if (this.#hasLinks) return undefined
    for (const [path, data] of this.#bystanders) {
      if (this.#isMountedOver(path) || this.#changed.some((other) => isAtOrAbove(other, path))) continue
      if (snapshot.get(path)?.data !== data)
        return `after the power cut ${path}, which nobody touched, is not what it was`
    }
    return undefined
  }
}

/** Whether something has two paths: by a link other than those of published contents, or by a mount. */
function hasLinks(snapshot: Snapshot): boolean {
  for (const [path, { type }] of snapshot) {
    if (type === 'symlink' && !targets.some((target) => path.startsWith(`${target}/`))) return true
  }
  return hasTwoPaths(snapshot)
}

/** Whether a directory has two paths. */
export function hasTwoPaths(snapshot: Snapshot): boolean {
  const found = new Set<string>()
  for (const { type, identity } of snapshot.values()) {
    if (type !== 'directory') continue
    if (found.has(identity)) return true
    found.add(identity)
  }
  return false
}

function identityAt(snapshot: Snapshot, target: string): string | undefined {
  const path = resolved(snapshot, target)
  return path === undefined ? undefined : snapshot.get(path)?.identity
}
