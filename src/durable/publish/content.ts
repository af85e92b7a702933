import type { ContentSource, FileReadingOptions } from '../path/index.js'
import { FileSource, StreamSource } from '../posix/index.js'
import type { FileContent, FilePath, PublicationOptions } from '../types.js'

/** What a file is to hold: in memory, or read in pieces. */
export type PlannedContent = Uint8Array | ContentSource

/** A path or a stream; not content in memory. */
export function isReadLater(content: unknown): content is FilePath | AsyncIterable<unknown> {
  return isStream(content) || isFilePath(content)
}

/** A stream of Node may have a path, too: callers check this first. */
function isStream(content: unknown): content is AsyncIterable<unknown> {
  return typeof content === 'object' && content !== null && Symbol.asyncIterator in content
}

function isFilePath(content: unknown): content is FilePath {
  return typeof content === 'object' && content !== null && 'path' in content && typeof content.path === 'string'
}

/**
 * What a caller gave as the content of `place`.
 * @throws TypeError for any other value
 */
export function plannedContent(
  target: string,
  place: string,
  content: FileContent,
  options: FileReadingOptions & Pick<PublicationOptions, 'contentStays'>,
): PlannedContent {
  if (typeof content === 'string') return Buffer.from(content, 'utf8')
  // A copy: a change by the caller meanwhile would land under another content's digest.
  if (content instanceof Uint8Array) return options.contentStays === true ? content : new Uint8Array(content)
  if (isStream(content)) return new StreamSource(content, place, target, options)
  if (isFilePath(content)) return new FileSource(content.path, content.follow ?? true, target, options)
  throw new TypeError(
    `the content of ${JSON.stringify(place)} must be a string, a Uint8Array, { path }, or a stream of strings or Uint8Arrays`,
  )
}
