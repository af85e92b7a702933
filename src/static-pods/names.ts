/*
 * Names on the node, as library-go's static pod commands have them: a revision is `<pod>-<revision>` in the resource
 * directory, and holds `secrets/NAME/KEY`, `configmaps/NAME/KEY` and a copy of each manifest.
 */
import { createHash } from 'node:crypto'

/** By which a pod tells of which rollout it is. Its value depends on all that the rollout brings. */
export const rolloutAnnotation = 'holdfast.dev/rollout'

/** Of the annotations by which a pod tells with which published content it runs. */
export const contentAnnotationPrefix = 'holdfast.dev/content-'

/** int32, as the operator's counter is. */
const largestRevision = 2_147_483_647

/** undefined for a text that is no revision in its one form: decimal digits without a sign or leading zeros. */
export function parseRevision(text: string): number | undefined {
  if (!/^(0|[1-9][0-9]{0,9})$/.test(text)) return undefined
  const revision = Number(text)
  return revision <= largestRevision ? revision : undefined
}

export function revisionName(pod: string, revision: number): string {
  return `${pod}-${revision}`
}

/** The revision of a directory's name; undefined for names that merely look similar. */
export function revisionOf(pod: string, name: string): number | undefined {
  return name.startsWith(`${pod}-`) ? parseRevision(name.slice(pod.length + 1)) : undefined
}

/** Revisions whose directory is named anywhere in a text, as a whole word of a path. */
export function revisionsNamedIn(pod: string, text: string): Set<number> {
  const escaped = pod.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  const found = new Set<number>()
  for (const [, digits] of text.matchAll(new RegExp(`(?<![-.\\w])${escaped}-(\\d+)(?![\\w])`, 'g'))) {
    const revision = parseRevision(digits ?? '')
    if (revision !== undefined) found.add(revision)
  }
  return found
}

/** All revisions of a pod share one lock and one form of staging names in the resource directory. */
export function revisionFamily(pod: string): string {
  return `${pod}-REVISION`
}

/** The lock that install, prune and a fallback of monitor hold while revisions come, go, or are chosen. */
export function operationLockName(pod: string): string {
  const id = createHash('sha256').update(`${pod} operations`).digest('hex').slice(0, 16)
  return `.holdfast-${id}.lock`
}
