import { Readable } from 'node:stream'
import { workingDirectory } from '../../absolute-path.js'
import { type ContentSource, type FileReadingOptions, isUnicode } from '../path/index.js'
import { FileContentSource, StreamSource } from '../posix/index.js'
import type { Descriptor } from '../file-system.js'
import type { FileContent, FilePath } from '../types.js'

/** What a file is to hold: in memory, or read in pieces. */
export type PlannedContent = Uint8Array | ContentSource

/** A file of `holdfast replace`: `from` leads to it from the open directory `root` through no symbolic link; `path` is for messages. */
export interface FileBelow extends FilePath {
  readonly below: { readonly root: Descriptor; readonly from: string }
}

/** A path or a stream; not content in memory. */
export function isReadLater(content: unknown): content is FilePath | AsyncIterable<unknown> {
  return isStream(content) || isFilePath(content)
}

/** A stream of Node may have a path, too: callers check this first. */
function isStream(content: unknown): content is AsyncIterable<unknown> {
  return typeof content === 'object' && content !== null && Symbol.asyncIterator in content
}

function isFilePath(content: unknown): content is FilePath | FileBelow {
  return typeof content === 'object' && content !== null && 'path' in content && typeof content.path === 'string'
}

/**
 * What a caller gave as the content of `place`; he changes no bytes of it before the call ends.
 * @throws TypeError for any other value
 */
export function plannedContent(
  target: string,
  place: string,
  content: FileContent,
  options: FileReadingOptions,
): PlannedContent {
  // Half of a surrogate pair is refused as a stream's, of this target alone.
  if (typeof content === 'string')
    return isUnicode(content)
      ? Buffer.from(content, 'utf8')
      : new StreamSource(Readable.from([content]), place, target, options)
  if (content instanceof Uint8Array) return content
  if (isStream(content)) return new StreamSource(content, place, target, options)
  if (isFilePath(content)) {
    const origin = fromHere(content.path)
    const place = 'below' in content ? content.below : { from: origin, follow: content.follow ?? true }
    return new FileContentSource(origin, place, target, options)
  }
  throw new TypeError(
    `the content of ${JSON.stringify(place)} must be a string, a Uint8Array, { path }, or a stream of strings or Uint8Arrays`,
  )
}

/** Its `..` stay: they may stand behind a symbolic link, and the kernel follows them. */
function fromHere(path: string): string {
  return path === '' || path.startsWith('/') ? path : `${workingDirectory(path)}/${path}`
}
