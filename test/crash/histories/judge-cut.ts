/** What the program promises, asked of what can be seen after a power cut. */
import { expectedTexts, hasPartOf, kindOf, visibleText } from './contents.js'
import type { Content } from './operations.js'
import type { Snapshot } from './snapshot.js'

/** Where a target moves to. */
export interface NewPlace {
  readonly target: string
  /** By each of these it can be found after a power cut: none that leads through what was mounted. */
  readonly paths: readonly string[]
}

/** What a power cut may have left at a target. */
export interface Allowed {
  readonly target: string
  /** Contents that it may hold then, as texts ('' for nothing); undefined: whatever was there was not durable, and may be torn. */
  readonly texts: ReadonlySet<string> | undefined
  /** What was being published; undefined: nothing. */
  readonly content: Content | undefined
  /** The new content has been visible, so that what is above the target was synced before. */
  readonly wasVisible: boolean
  /** What was there when the call began, and what was durable before, which others may have torn since. */
  readonly before: string
  readonly earlier: readonly string[]
  /** Only once the target that it moves to is durable may it be gone. */
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
    return `after the power cut ${target} holds none of what it may hold:\n${text || 'nothing'}\nbut one of these:\n${[...texts].map((one) => one || 'nothing').join('\nor\n')}`
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
