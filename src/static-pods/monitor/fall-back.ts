import { join } from 'node:path'
import { codeOf, messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import type { Disk } from '../../durable/index.js'
import type { FileRequest } from '../../durable/disk/index.js'
import type { HeldLock } from '../../durable/path/index.js'
import { DurableWriteError } from '../../durable/errors.js'
import {
  lastKnownGood,
  lastKnownGoodPath,
  liveManifestPath,
  olderRevisions,
  podOf,
  recordLastKnownGood,
  intactRevision,
  type StaticPodPlaces,
} from './last-known-good.js'
import { writeManifest, type Manifest } from '../pod/manifest.js'
import { operationLockName } from '../names.js'
import { newUid } from '../kubelet.js'

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
 * Replaces the manifest of a revision that did not become ready by that of the last known good one, or of the newest older
 * revision that is whole, which then becomes the last known good one. Returns the revision; undefined, with nothing changed,
 * where there is none. Call it under the manifest lock. Only the manifest must be written: a resource directory that is
 * read-only, immutable or full takes neither the lock nor the link, and the pod needs its fallback all the same.
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
  const held = await lockOperations(join(places.resourceDirectory, operationLockName(pod)), disk, log)
  try {
    const known = await lastKnownGood(places, disk)
    const candidates = [
      ...(known === undefined || known === from ? [] : [known]),
      ...(await olderRevisions(places, from, disk)).filter((revision) => revision !== known),
    ]
    for (const revision of candidates) {
      const manifest = await intactRevision(places, revision, disk, log)
      if (manifest === undefined) continue
      const request = await liveRequest(places, manifest, from, cause, log)
      // Where an operator holds it, or it cannot be replaced, the link stays as well.
      await disk.previewFile(request)
      // First the link: prune keeps the revision that it leads to, and after a kill in between, the next run finds the same revision.
      await leadLink(places, revision, disk, log)
      await disk.publishFiles([request], undefined)
      return revision
    }
    return undefined
  } finally {
    await held?.release()
  }
}

/** Records the revision as the last known good one, as far as the resource directory takes that. */
async function leadLink(places: StaticPodPlaces, revision: number, disk: Disk, log: Log): Promise<void> {
  try {
    await recordLastKnownGood(places, revision, disk)
  } catch (error) {
    const path = lastKnownGoodPath(places)
    warnUnwritten(path, error, `${path} does not lead to revision ${revision}, which becomes live`, log)
  }
}

/** undefined where the lock cannot be had because its file cannot be written. @throws DurableWriteError, reason Busy */
async function lockOperations(path: string, disk: Disk, log: Log): Promise<HeldLock | undefined> {
  try {
    return await disk.lock(path, 0, undefined)
  } catch (error) {
    if (error instanceof DurableWriteError && error.reason === 'Busy') throw error
    warnUnwritten(path, error, `the monitor falls back without the lock ${path}`, log)
    return undefined
  }
}

/** Warns of a file that a fallback does without. @throws `error` itself, unless a write failed */
export function warnUnwritten(path: string, error: unknown, consequence: string, log: Log): void {
  if (!(error instanceof DurableWriteError)) throw error
  log.warn({ path, code: codeOf(error) }, `${consequence}: ${messageOf(error)}`)
}

/** The manifest as it is to be live. */
async function liveRequest(
  places: StaticPodPlaces,
  manifest: Manifest,
  from: number,
  { reason, message }: Cause,
  log: Log,
): Promise<FileRequest> {
  // A new uid: kubelets before 1.23 would take it for the pod that ran before.
  const content = await writeManifest(manifest, newUid(), {
    [fallbackForRevision]: String(from),
    [fallbackReason]: reason,
    [fallbackMessage]: message.slice(0, longestMessage),
  })
  return { path: liveManifestPath(places), content, options: { mode: 0o600, log } }
}
