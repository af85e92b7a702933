/*
 * The revision that was last seen ready: a symbolic link `<target>-last-known-good` in the resource directory, which leads to
 * the copy of the manifest in that revision. Only a revision that is whole counts.
 */
import { nodeFiles } from '../../durable/index.js'
import { messageOf } from '../../errors.js'
import { basename, dirname, join, resolve } from 'node:path'
import type { Log } from '../../log.js'
import type { Disk } from '../../durable/index.js'
import { StaticPodError } from '../failure.js'
import { parseManifest, type Manifest } from '../pod/manifest.js'
import { readNodeFile } from '../node-files.js'
import { revisionName, revisionOf } from '../names.js'

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

export function podOf({ pod, target }: StaticPodPlaces): string {
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
export async function lastKnownGood(places: StaticPodPlaces, { fs }: Disk): Promise<number | undefined> {
  const path = lastKnownGoodPath(places)
  const text = await nodeFiles.readLink(fs, path)
  return text === undefined ? undefined : revisionOf(podOf(places), basename(dirname(resolve(dirname(path), text))))
}

/**
 * Makes the link lead to this revision: atomically, and durable on return, with the manifest that it leads to. Syncs also where the link
 * leads there already: a predecessor may have died before its sync.
 * @throws DurableWriteError
 */
export async function recordLastKnownGood(places: StaticPodPlaces, revision: number, disk: Disk): Promise<void> {
  const directory = dirname(manifestCopyPath(places, revision))
  // Another program may have written it, and not synced all of it.
  if ((await disk.isCommitted(directory)) !== true) await disk.syncTree(directory)
  await disk.replaceLink(lastKnownGoodPath(places), resolve(manifestCopyPath(places, revision)))
}

/** The manifest of a revision, if that is whole; else undefined, with the reason in the log. */
export async function intactRevision(
  places: StaticPodPlaces,
  revision: number,
  disk: Disk,
  log: Log,
): Promise<Manifest | undefined> {
  const path = manifestCopyPath(places, revision)
  try {
    const bytes = await readNodeFile(disk.fs, path)
    if (bytes === undefined) throw new StaticPodError('its copy of the manifest is missing')
    const manifest = await parseManifest(bytes, path)
    if (manifest.revision !== undefined && manifest.revision !== String(revision)) {
      throw new StaticPodError(`its manifest is labelled as revision ${manifest.revision}`)
    }
    // Where holdfast published it, its record tells of every file; else the manifest has to do.
    if ((await disk.isDrifted(dirname(path))) === true) {
      throw new StaticPodError('its files differ from what was published')
    }
    return manifest
  } catch (error) {
    log.warn({ revision, path, why: messageOf(error) }, 'this revision is not intact')
    return undefined
  }
}

/** Revisions on the disk that are older than this one, the newest first. */
export async function olderRevisions(places: StaticPodPlaces, revision: number, { fs }: Disk): Promise<number[]> {
  const pod = podOf(places)
  return (await nodeFiles.entriesOf(fs, places.resourceDirectory))
    .flatMap((entry) => (entry.type === 'directory' ? [revisionOf(pod, entry.name)] : []))
    .filter((found) => found !== undefined)
    .filter((found) => found < revision)
    .sort((a, b) => b - a)
}
