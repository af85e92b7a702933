import { compareResourceVersions } from '../../objects/resource-version.js'
import type { Log } from '../../log.js'
import type { RecordedObject } from '../../durable/types.js'
import type { Disk } from '../../durable/index.js'
import type { DirectoryPublicationRequest } from '../../durable/disk/index.js'
import type { InstallPlan } from './install-plan.js'

/**
 * The requests of `plan.lasting` to publish. A slower installer must not set an object back to the version that it read
 * before: where a newer version is on the disk, this reads the object once more. If that is older still, the server's
 * history was rewound (an etcd restored from a backup), and the server's present answer counts.
 */
export async function currentLasting(
  disk: Disk,
  { lasting, reread }: InstallPlan,
  log: Log,
): Promise<DirectoryPublicationRequest[]> {
  const current: DirectoryPublicationRequest[] = []
  for (const request of lasting) {
    const published = await disk.recordedObjects(request.target)
    if (!isOlder(request, published)) {
      current.push(request)
      continue
    }
    const fresh = await reread?.(request.target)
    const details = { path: request.target, reason: 'HistoryRewound' }
    if (fresh === undefined) continue
    if (isOlder(fresh, published))
      log.warn(details, 'the API server now has an older version than holdfast published: holdfast publishes it')
    current.push(fresh)
  }
  return current
}

function isOlder({ objects = [] }: DirectoryPublicationRequest, published: readonly RecordedObject[]) {
  return objects.some((object) => published.some((other) => isNewer(other, object)))
}

/** Of one object (the same uid, which no other has), versions compare as numbers (Kubernetes 1.35, KEP-5504). */
function isNewer(published: RecordedObject, read: RecordedObject): boolean {
  if (published.uid !== read.uid) return false
  return (compareResourceVersions(published.resourceVersion, read.resourceVersion) ?? 0) > 0
}
