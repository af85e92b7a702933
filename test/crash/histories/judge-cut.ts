/** What the program promises, asked of what can be seen after a power cut. */
import { faultOfContent } from '../judge/contents.js'
import { contentOf, expectedTexts, hasPartOf, kindOf, visibleText } from './contents.js'
import type { Content } from './operations.js'
import type { Snapshot } from './snapshot.js'

/** Where a target moves to. */
export interface NewPlace {
  readonly target: string
  /** Each of these leads to it after a power cut: none goes through a mount. */
  readonly paths: readonly string[]
}

/** What a power cut may have left at a target. */
export interface Allowed {
  readonly target: string
  /** Contents that it may hold then, as texts ('' for none); undefined: its content was not durable, and may be torn. */
  readonly texts: ReadonlySet<string> | undefined
  /** The content of the current publication; undefined: there is none. */
  readonly content: Content | undefined
  /** The new content has been visible, so the ancestors of the target were synced before. */
  readonly wasVisible: boolean
  /** The content when the call began, and durable earlier ones, which other programs may have torn since. */
  readonly before: string
  readonly earlier: readonly string[]
  /** It may be gone only once the target that it moves to is durable. */
  readonly movesTo?: NewPlace | undefined
}

export function faultAfterCut(snapshot: Snapshot, allowed: Allowed): string | undefined {
  const { target, texts, content, wasVisible, before, earlier, movesTo } = allowed
  const text = visibleText(snapshot, target)
  if (texts?.has(text) === true) {
    const isLast = movesTo !== undefined && text === '' && before !== '' && !earlier.includes('')
    return isLast && isMissing(snapshot, movesTo)
      ? `after the power cut ${target} is gone, and ${movesTo.target} does not hold it`
      : undefined
  }
  if (texts !== undefined) {
    const named = [...texts].map(
      (one, index) => [`${contentOf(target, one) ?? `what was there, ${index}`}`, one] as const,
    )
    return `after the power cut ${faultOfContent(target, text, new Map(named)) ?? ''}`
  }
  if (content === undefined || expectedTexts(target, content).includes(text)) return undefined
  if (wasVisible && text === '' && before !== '')
    return `after the power cut ${target} is missing, though the new content was visible there`
  if (kindOf(target) === 'file' || [before, ...earlier].some((one) => hasPartOf(one, content))) return undefined
  return hasPartOf(text, content) ? `after the power cut ${target} is torn or mixed:\n${text}` : undefined
}

/** Where no path of it outlasts the power cut, nothing can be said. */
function isMissing(snapshot: Snapshot, { target, paths }: NewPlace): boolean {
  const possible = expectedTexts(target, 'earlier')
  return paths.length > 0 && !paths.some((path) => possible.includes(visibleText(snapshot, path)))
}
