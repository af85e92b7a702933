import type { Publication } from '../durable/types.js'

const meanings: Readonly<Record<Publication['differences'][number]['problem'], string>> = {
  missing: 'is missing',
  unexpected: 'was not published',
  content: 'has other content',
  mode: 'has another mode',
  owner: 'has another owner',
  more: 'holds far more than was published: the rest was not looked at',
  type: 'is not of the kind that was published (file, directory or link)',
}

/**
 * Describes how the disk differs from the publication, one sentence for each difference, in the order of the paths; empty where
 * nothing differs. Contents are not compared here and never shown.
 */
export function describeDifferences({ path, actual, digest, differences }: Publication): string[] {
  const isThere = actual !== undefined || differences.some((one) => one.path === '.' && one.problem === 'type')
  if (!isThere) return [`${path} does not exist`]
  const described = sortedDifferences(differences).map(
    (difference) => `${describePath(difference.path, path)} ${meanings[difference.problem]}`,
  )
  if (described.length === 0 && actual !== digest) return [`${path} is not what was published`]
  return described
}

/** In the order of their paths, as they are described. */
export function sortedDifferences(differences: Publication['differences']): Publication['differences'] {
  return [...differences].sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))
}

/** A name on the disk may be anything: one that would not fit in a line is shown as JSON does. */
function describePath(inner: string, target: string): string {
  const path = inner === '' || inner === '.' ? target : inner
  return /^[\x21-\x7e]+$/.test(path) ? path : JSON.stringify(path)
}
