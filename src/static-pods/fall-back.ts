import type { Log } from '../log.js'
import type { Disk, FileRequest } from '../durable/index.js'
import {
  lastKnownGood,
  liveManifestPath,
  olderRevisions,
  podOf,
  recordLastKnownGood,
  intactRevision,
  type StaticPodPlaces,
} from './last-known-good.js'
import { encodeManifest, type Manifest } from './manifest.js'
import { operationLockName } from './names.js'
import { newUid } from './kubelet.js'
import { join } from 'node:path'

/** By which an operator knows a fallback (library-go: pkg/operator/staticpod/startupmonitor/annotations). */
const prefix = 'startup-monitor.static-pods.openshift.io/'
export const fallbackForRevision = `${prefix}fallback-for-revision`
const fallbackReason = `${prefix}fallback-reason`
const fallbackMessage = `${prefix}fallback-message`

/** Characters of a message: annotations have room, people do not. */
const longestMessage = 1000

export interface Cause {
  /** One word: `NotReady`. */
  readonly reason: string
  readonly message: string
}

/**
 * Puts the manifest of the last known good revision in the place of one that did not become ready, or that of the newest
 * older revision that is whole, which then becomes the last known good one. Returns the revision; undefined where there is
 * none, and nothing was changed. To be called under the manifest lock.
 * @throws DurableWriteError; Busy while an installation or a prune is under way
 */
export async function fallBack(
  places: StaticPodPlaces,
  from: number,
  cause: Cause,
  disk: Disk,
  log: Log,
): Promise<number | undefined> {
  const pod = podOf(places)
  const held = await disk.lock(join(places.resourceDirectory, operationLockName(pod)), 0, undefined)
  try {
    const known = await lastKnownGood(places, disk)
    const candidates = [
      ...(known === undefined || known === from ? [] : [known]),
      ...(await olderRevisions(places, from, disk)).filter((revision) => revision !== known),
    ]
    for (const revision of candidates) {
      const manifest = await intactRevision(places, revision, disk, log)
      if (manifest === undefined) continue
      const request = liveRequest(places, manifest, from, cause, log)
      // Where an operator holds it, or it cannot be replaced, the link stays as well.
      await disk.previewFile(request)
      // First the link: prune keeps what it leads to, and killed in between, the next run finds the same revision.
      await recordLastKnownGood(places, revision, disk)
      await disk.publishFiles([request], undefined)
      return revision
    }
    return undefined
  } finally {
    await held.release()
  }
}

/** The manifest as it is to be live. */
function liveRequest(
  places: StaticPodPlaces,
  manifest: Manifest,
  from: number,
  { reason, message }: Cause,
  log: Log,
): FileRequest {
  // A uid of its own: kubelets before 1.23 would take it for the pod that ran before.
  const content = encodeManifest(manifest, newUid(), {
    [fallbackForRevision]: String(from),
    [fallbackReason]: reason,
    [fallbackMessage]: message.slice(0, longestMessage),
  })
  return { path: liveManifestPath(places), content, options: { mode: 0o600, log } }
}
