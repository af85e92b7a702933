/*
 * The revision that was last seen ready, and the way back to it: a symbolic link `<target>-last-known-good` in the resource directory,
 * which leads to the copy of the manifest in that revision. Only a revision that is whole counts.
 */
import { basename, dirname, join, resolve } from 'node:path'
import { nodeFiles, type DurableCalls } from '../../durable/index.js'
import type { FileRequest } from '../../durable/single-calls/index.js'
import { DurableWriteError } from '../../durable/errors.js'
import { codeOf, messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import { StaticPodError } from '../failure.js'
import { newUid } from '../kubelet.js'
import { operationLockName, revisionName, revisionOf } from '../names.js'
import { holding, readManifest } from '../node-files.js'
import { refuseUnrunnable, writeManifest, type Manifest } from '../pod/manifest.js'

/** Where the parts of one static pod are, by the names that startup-monitor uses. */
export interface StaticPodPlaces {
  readonly resourceDirectory: string
  readonly manifestDirectory: string
  /** `kube-apiserver`. */
  readonly target: string
  /** By which `install` names its revisions; undefined: TARGET-pod, as OpenShift does. */
  readonly pod?: string
  /** File name of the live manifest; undefined: POD.yaml. */
  readonly manifest?: string
}

function podOf({ pod, target }: StaticPodPlaces): string {
  return pod ?? `${target}-pod`
}

export function liveManifestPath(places: StaticPodPlaces): string {
  return join(places.manifestDirectory, manifestName(places))
}

function manifestName(places: StaticPodPlaces): string {
  return places.manifest ?? `${podOf(places)}.yaml`
}

export function monitorManifestPath({ manifestDirectory, target }: StaticPodPlaces): string {
  return join(manifestDirectory, `${target}-startup-monitor-pod.yaml`)
}

export function lastKnownGoodPath({ resourceDirectory, target }: StaticPodPlaces): string {
  return join(resourceDirectory, `${target}-last-known-good`)
}

export function manifestCopyPath(places: StaticPodPlaces, revision: number): string {
  return join(places.resourceDirectory, revisionName(podOf(places), revision), manifestName(places))
}

/** The revision that the link leads to; undefined where there is no link, or it leads elsewhere. */
export async function lastKnownGood(places: StaticPodPlaces, { fs }: DurableCalls): Promise<number | undefined> {
  const path = lastKnownGoodPath(places)
  const text = await nodeFiles.readLink(fs, path)
  return text === undefined ? undefined : revisionOf(podOf(places), basename(dirname(resolve(dirname(path), text))))
}

/**
 * Makes the link lead to this revision: atomically, and durable on return, with the manifest that it leads to. Syncs also where the link
 * leads there already: a predecessor may have died before its sync.
 * @throws DurableWriteError
 */
export async function recordLastKnownGood(
  places: StaticPodPlaces,
  revision: number,
  durable: DurableCalls,
): Promise<void> {
  const directory = dirname(manifestCopyPath(places, revision))
  // Another program may have written it, and not synced all of it.
  if ((await durable.isCommitted(directory)) !== true) await durable.syncTree(directory)
  await durable.replaceLink(lastKnownGoodPath(places), resolve(manifestCopyPath(places, revision)))
}

/** The manifest of a revision, if that is whole; else undefined, with the reason in the log. `runnable`: and kubelet would take it. */
export async function intactRevision(
  places: StaticPodPlaces,
  revision: number,
  durable: DurableCalls,
  log: Log,
  runnable = false,
): Promise<Manifest | undefined> {
  const path = manifestCopyPath(places, revision)
  try {
    const manifest = await readManifest(durable.fs, path)
    if (manifest === undefined) throw new StaticPodError('its copy of the manifest is missing')
    if (manifest.revision !== undefined && manifest.revision !== String(revision)) {
      throw new StaticPodError(`its manifest is labelled as revision ${manifest.revision}`)
    }
    if (runnable) refuseUnrunnable(manifest, path)
    // Where holdfast published it, its record tells of every file; else the manifest has to do.
    if ((await durable.isDrifted(dirname(path))) === true) {
      throw new StaticPodError('its files differ from what was published')
    }
    return manifest
  } catch (error) {
    log.warn({ revision, path, why: messageOf(error) }, 'this revision is not intact')
    return undefined
  }
}

/** Revisions on the disk that are older than this one, the newest first. */
async function olderRevisions(places: StaticPodPlaces, revision: number, { fs }: DurableCalls): Promise<number[]> {
  const pod = podOf(places)
  return (await nodeFiles.entriesOf(fs, places.resourceDirectory))
    .flatMap((entry) => (entry.type === 'directory' ? [revisionOf(pod, entry.name)] : []))
    .filter((found) => found !== undefined)
    .filter((found) => found < revision)
    .sort((a, b) => b - a)
}

/** By which an operator knows a fallback (library-go: pkg/operator/staticpod/startupmonitor/annotations). */
const prefix = 'startup-monitor.static-pods.openshift.io/'
export const fallbackForRevision = `${prefix}fallback-for-revision`
const fallbackReason = `${prefix}fallback-reason`
const fallbackMessage = `${prefix}fallback-message`

/** Characters of a message: annotations have room, people do not. */
const longestMessage = 1000

export interface FallbackCause {
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
  cause: FallbackCause,
  durable: DurableCalls,
  log: Log,
): Promise<number | undefined> {
  const path = join(places.resourceDirectory, operationLockName(podOf(places)))
  const lock = durable.lock(path, 0, undefined).catch((error: unknown) => {
    if (error instanceof DurableWriteError && error.reason === 'Busy') throw error
    warnUnwritten(path, error, `the monitor falls back without the lock ${path}`, log)
    return undefined
  })
  return holding(lock, async () => {
    const known = await lastKnownGood(places, durable)
    const candidates = [
      ...(known === undefined || known === from ? [] : [known]),
      ...(await olderRevisions(places, from, durable)).filter((revision) => revision !== known),
    ]
    for (const revision of candidates) {
      const manifest = await intactRevision(places, revision, durable, log, true)
      if (manifest === undefined) continue
      const request = await liveRequest(places, manifest, from, cause, log)
      // Where an operator holds it, or it cannot be replaced, the link stays as well.
      await durable.previewFile(request)
      // First the link: prune keeps the revision that it leads to, and after a kill in between, the next run finds the same revision.
      await leadLink(places, revision, durable, log)
      await durable.publishFiles([request], undefined)
      return revision
    }
    return undefined
  })
}

/** Records the revision as the last known good one, as far as the resource directory takes that. */
async function leadLink(places: StaticPodPlaces, revision: number, durable: DurableCalls, log: Log): Promise<void> {
  try {
    await recordLastKnownGood(places, revision, durable)
  } catch (error) {
    const path = lastKnownGoodPath(places)
    warnUnwritten(path, error, `${path} does not lead to revision ${revision}, which becomes live`, log)
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
  { reason, message }: FallbackCause,
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
