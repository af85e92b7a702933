import { listed } from '../../message-text.js'
import type { Tree } from '../path/index.js'
import type { Generation } from '../types.js'

/* Another program's content that holdfast takes over, beside the content that replaces it. */

/** How an old content stands to a new one, by names and digests; modes and owners make no difference. */
export interface Relation {
  /** Paths that only the old one has. */
  readonly more: readonly string[]
  /** For people. */
  readonly text: string
}

export function relationOf(old: Tree, desired: Tree): Relation {
  const coming = new Map(desired.entries.map((entry) => [entry.path, entry]))
  const there = new Set(old.entries.map(({ path }) => path))
  const more = old.entries.filter(({ path }) => !coming.has(path)).map(({ path }) => path)
  const other = old.entries.filter(({ path, type, sha256 }) => {
    const entry = coming.get(path)
    return entry !== undefined && (entry.type !== type || entry.sha256 !== sha256)
  })
  const added = desired.entries.filter(({ path }) => !there.has(path)).map(({ path }) => path)
  const parts = [
    ...(more.length > 0 ? [`has ${listed(more, 3)} besides`] : []),
    ...(other.length > 0
      ? [
          `has another ${listed(
            other.map(({ path }) => path),
            3,
          )}`,
        ]
      : []),
    ...(added.length > 0 ? [`lacks ${listed(added, 3)}`] : []),
  ]
  const kind =
    more.length > 0
      ? added.length + other.length > 0
        ? 'different'
        : 'superset'
      : other.length > 0
        ? 'other versions'
        : 'subset'
  return { more, text: parts.length === 0 ? 'equal' : `${kind}: it ${listed(parts)}` }
}

/** Whether names and bytes are the same: a consumer that has read one knows the other. */
export function isSameContent(old: Tree, desired: Tree): boolean {
  return relationOf(old, desired).text === 'equal'
}

/** The sequence of taken-over content: before all that holdfast has published there. */
const takenOver = 0

export function isTakenOver({ sequence }: Pick<Generation, 'sequence'>): boolean {
  return sequence === takenOver
}

/** The generation of taken-over content. Its time of publication is unknown. */
export function takenOverAs(name: (sequence: number) => string, { digest }: Tree, now: number): Generation {
  return {
    name: name(takenOver),
    sequence: takenOver,
    digest,
    publishedAt: now,
    replacedAt: now,
    why: 'adopted',
    objects: [],
  }
}

/** Taken-over content stays beyond all limits while it is the newest generation, which is until the next content replaces it. */
export function withTakenOver<Kept extends Pick<Generation, 'sequence'>>(kept: Kept[], all: readonly Kept[]): Kept[] {
  const [newest] = all
  return newest && isTakenOver(newest) ? [newest, ...kept.filter((one) => one !== newest)] : kept
}
