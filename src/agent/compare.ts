import { describeDifferences } from '../directories/verify.js'
import { readPublication } from '../durable/index.js'
import type { Publication } from '../durable/types.js'
import type { DirectoryState } from './directory-state.js'

/** More differences than a line can show are only counted. */
const shown = 5

/**
 * Compares a directory with its record. Answers what differs from what was published, as a person reads it; undefined where the
 * disk holds just that, or where nothing was published yet. Rejects where it cannot be read; the state then stays
 * what it was.
 */
export async function compare(state: DirectoryState): Promise<string | undefined> {
  const hadRecord = state.digest !== undefined
  const publication = await readPublication(state.path)
  state.adopt(publication)
  if (publication === undefined) return hadRecord ? 'its record is gone' : undefined
  return publication.differences.length === 0 ? undefined : summary(publication)
}

function summary(publication: Publication): string {
  const sentences = describeDifferences(publication)
  const more = sentences.length - shown
  return sentences.slice(0, shown).join(', ') + (more > 0 ? ` and ${more} more` : '')
}
