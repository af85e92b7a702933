/**
 * holdfast as a library: directories and files that survive a power cut whole.
 *
 * @packageDocumentation
 */
import * as durable from './durable/index.js'
import type {
  DirectoryRequest,
  FileContent,
  ReplaceDirectoryOptions,
  ReplaceFileOptions,
  ReplaceResult,
} from './durable/index.js'
import { checkFields, directoryFields, fileFields } from './public-fields.js'

export { DurableWriteError, exchange, syncPath } from './durable/index.js'
export type {
  DirectoryRequest,
  FileContent,
  Outcome,
  Owner,
  ReplaceDirectoryOptions,
  ReplaceFileOptions,
  ReplaceResult,
} from './durable/index.js'

/**
 * Replaces a directory as a whole: whoever opens it sees all of the old content or all of the new, and once this resolves, the
 * new content survives a power cut. Rejects with DurableWriteError, whose `published` tells whether the new content is visible;
 * with TypeError or RangeError, nothing touched, where the request is malformed.
 */
export async function replaceDirectory(target: string, options: ReplaceDirectoryOptions): Promise<ReplaceResult> {
  return durable.replaceDirectory(target, checkFields('options', options, directoryFields))
}

/**
 * Replaces many directories with one barrier before the exchanges and one after. One entry for each request, in order; one
 * target's fault is its own. Rejects, nothing written, where a request is malformed or two targets are the same or nested.
 */
export async function replaceDirectories(
  requests: readonly DirectoryRequest[],
): Promise<(ReplaceResult | { error: durable.DurableWriteError })[]> {
  if (!Array.isArray(requests)) throw new TypeError('replaceDirectories takes an array of requests')
  const fields = ['target', ...directoryFields]
  return durable.replaceDirectories(
    requests.map((request: DirectoryRequest, index) => checkFields(`requests[${index}]`, request, fields)),
  )
}

/** Replaces one file: a temporary with a leading dot beside it, renamed over. Rejects as replaceDirectory does. */
export async function replaceFile(
  path: string,
  content: FileContent,
  options: ReplaceFileOptions = {},
): Promise<ReplaceResult> {
  return durable.replaceFile(path, content, checkFields('options', options, fileFields))
}
