import type { DirectoryConfiguration } from '../config/types.js'
import { describeDifferences } from '../directories/verify.js'
import type { Publication } from '../durable/types.js'
import { listed } from '../listed.js'
import { objectName } from '../object-name.js'
import { compareResourceVersions } from '../objects/resource-version.js'
import type { PublishedObject } from './conditions.js'

/** More differences than a line can show are only counted. */
const shown = 5

/** A content, and what gave it. */
export interface DesiredObjects {
  readonly digest: string
  readonly objects: readonly PublishedObject[]
}

interface DesiredBy {
  readonly desired: DesiredObjects | undefined
  readonly configuration: DirectoryConfiguration
}

interface Drift {
  /** The differences from the published content, for people; undefined: there are none. */
  readonly drift: string | undefined
  /** The record is of another content than the desired one. */
  readonly isOther: boolean
  /** The record is of newer versions than the desired content. */
  readonly isAhead: boolean
}

/** How the disk differs from the record, and the record from the desired content. */
export function driftFrom(by: DesiredBy, publication: Publication): Drift {
  const other = otherContent(by, publication)
  const differences = publication.differences.length === 0 ? [] : [summary(publication)]
  if (other === undefined || other === 'newer')
    return { drift: differences[0], isOther: false, isAhead: other === 'newer' }
  return { drift: [other, ...differences].join('; '), isOther: true, isAhead: false }
}

/**
 * Why the record is not of the desired content: its disk was mounted over for a time, a backup was restored, another program has published
 * there. An old path gets its content from the new one. `newer`: nothing older may take its place, so the source has to report the newest
 * first.
 */
function otherContent(
  { desired, configuration }: DesiredBy,
  { digest, publishedAt, objects }: Publication,
): string | undefined {
  if (desired === undefined || desired.digest === digest || configuration.follows !== undefined) return undefined
  const wanted = new Map(desired.objects.map((object) => [objectName(object), object]))
  const others = objects.flatMap((object) => {
    const { uid, resourceVersion } = object
    const known = wanted.get(objectName(object))
    return known?.uid === uid && known.resourceVersion === resourceVersion ? [] : [{ object, known }]
  })
  const isNewer = ({ object, known }: (typeof others)[number]): boolean =>
    known?.uid === object.uid && (compareResourceVersions(object.resourceVersion, known.resourceVersion) ?? 0) > 0
  if (others.some(isNewer)) return 'newer'
  const versions = others.map(({ object, known }) => {
    if (known === undefined) return `${objectName(object)} ${object.resourceVersion}`
    // Two clusters may have the same names and versions.
    const [is, wants] = [object, known].map(({ uid, resourceVersion }) =>
      object.uid === known.uid ? resourceVersion : `${resourceVersion} (uid ${uid})`,
    )
    return `${objectName(object)} ${is} instead of ${wants}`
  })
  const from = objects.length === 0 ? 'no object' : versions.length === 0 ? 'the same objects' : listed(versions, shown)
  return `its content was published at ${publishedAt.toISOString()}, from ${from}`
}

function summary(publication: Publication): string {
  const sentences = describeDifferences(publication)
  const more = sentences.length - shown
  return sentences.slice(0, shown).join(', ') + (more > 0 ? ` and ${more} more` : '')
}
