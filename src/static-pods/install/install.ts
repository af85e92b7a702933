/*
 * Writes an installation to the disk, in the order that leaves the node whole at every instant: the revision's directory
 * becomes visible complete, in one rename after one barrier; a directory that a running pod may mount is never exchanged
 * itself, only its entries are; the manifests come last, each in one rename, so that kubelet never sees a manifest that
 * names a missing path. Killed in between, the old manifest stands and the next run completes.
 */
import { messageOf } from '../../errors.js'
import { dirname, join } from 'node:path'
import { listed } from '../../message-text.js'
import { type DurableCalls, fsyncAll, remove } from '../../durable/index.js'
import type { DirectoryChange } from '../../durable/publish/index.js'
import type { DirectoryPublicationRequest } from '../../durable/single-calls/index.js'
import type { FileSystem } from '../../durable/file-system.js'
import { StaticPodError, withState } from '../failure.js'
import type { InstallLine, InstallPlan, InstallResult, InstallSettings, PlannedManifest } from './install-plan.js'
import type { Manifest } from '../pod/manifest.js'
import { operationLockName } from '../names.js'
import { revisionsOfManifests } from '../prune/revisions-in-use.js'
import { leftoversOf, orphanedRecords } from '../prune/leftovers.js'
import { manifestRequests, preflight, refuseOlder } from './preflight.js'
import { readManifest } from '../node-files.js'
import { isSamePod } from '../pod/same-pod.js'
import { compareResourceVersions } from '../../objects/resource-version.js'
import type { Log } from '../../log.js'
import type { RecordedObject } from '../../durable/types.js'

/** @throws DurableWriteError, StaticPodError, InvalidInput */
export async function install(plan: InstallPlan, settings: InstallSettings): Promise<InstallResult> {
  await preflight(plan, settings)
  const { durable, signal, timeLeft, requireProven, log } = settings
  signal.throwIfAborted()
  const held =
    plan.directory &&
    (await durable.lock(join(dirname(plan.directory.target), operationLockName(plan.pod)), timeLeft(), signal))
  try {
    const { publish, kept } = await revisionStep(plan, settings)
    await removeLeftovers(plan, settings, publish.length > 0)
    const lasting = await currentLasting(durable, plan, log)
    const options = { requireProven, log, signal }
    const requests = [...publish, ...lasting].map((request) => ({
      ...request,
      ...options,
      lockTimeout: timeLeft(),
      // An installer publishes here for its own sake, so it takes a move back.
      movedTo: null,
    }))
    signal.throwIfAborted()
    const directories: InstallLine[] = [...kept, ...(await durable.publishDirectories(requests, signal))]
    try {
      signal.throwIfAborted()
      const manifests = await publishManifests(plan, settings)
      return { pod: plan.pod, revision: plan.revision, directories, manifests }
    } catch (error) {
      throw withState(error, alreadyWritten(directories))
    }
  } finally {
    await held?.release()
  }
}

async function publishManifests(plan: InstallPlan, settings: InstallSettings): Promise<InstallLine[]> {
  const { durable, signal, manifestLock, timeLeft } = settings
  const held =
    manifestLock === undefined
      ? undefined
      : await durable.lock(manifestLock, timeLeft(), signal, 'the manifests are as they were')
  try {
    // Under the locks: another installer may have made a newer one live meanwhile.
    await refuseOlder(plan, settings)
    return await durable.publishFiles(manifestRequests(plan, settings), signal)
  } finally {
    await held?.release()
  }
}

/** The directories that reached the disk though the manifests did not: no pod runs from them yet, and a rerun goes on from there. */
function alreadyWritten(directories: readonly InstallLine[]): string[] {
  const written = directories
    .filter(({ outcome }) => outcome === 'created' || outcome === 'replaced')
    .map(({ path }) => path)
  return written.length === 0 ? [] : [`already written: ${listed(written, 3)}; the same command goes on from there`]
}

/**
 * Removes what killed installations left of revisions that never came. The next publication of a revision clears its staging
 * entries; without a publication in this run, they go here.
 */
async function removeLeftovers(
  { directory, pod, revision }: InstallPlan,
  settings: InstallSettings,
  isPublished: boolean,
) {
  if (directory === undefined || revision === undefined) return
  const { durable, log } = settings
  const path = dirname(directory.target)
  await durable.inDirectory(path, async (parent) => {
    const leftovers = isPublished
      ? await orphanedRecords(durable, parent, pod, revision)
      : await leftoversOf(durable, parent, pod, revision, path, log)
    if (leftovers.length === 0) return
    // A killed prune may have renamed a revision away without making the rename durable.
    await fsyncAll(durable.fs, [parent])
    for (const entry of leftovers) {
      try {
        await remove(durable.fs, parent, entry)
      } catch (error) {
        log.warn({ leftover: entry, error: messageOf(error) }, 'could not remove a leftover; the next run retries')
      }
    }
  })
}

/** Decides about the revision's directory, which may exist: publish it, keep it, or refuse. */
async function revisionStep(
  { directory, revision, pod, manifests }: InstallPlan,
  { durable, manifestDirectory, log }: InstallSettings,
  lookOnly = false,
): Promise<{ publish: DirectoryPublicationRequest[]; kept: InstallLine[] }> {
  if (directory === undefined || revision === undefined) return { publish: [], kept: [] }
  const { exists, changes: found } = await durable.difference(directory)
  if (!exists) return { publish: [directory], kept: [] }
  const path = directory.target
  const changes = await realChanges(durable, found, path, manifests)
  const equal = changes.length === 0
  if (equal && (await durable.isCommitted(path)) === true)
    return { publish: [], kept: [{ path, outcome: 'unchanged' }] }
  const places = { manifestDirectory, resourceDirectory: dirname(path), pod }
  const live = await revisionsOfManifests(durable.fs, places, log)
  const naming = live.naming(revision)
  const user = naming ?? live.unreadable
  // No pod runs from it: a torn leftover, or one without proof of durability, gets fresh inodes.
  if (user === undefined) return { publish: [directory], kept: [] }
  if (!equal) {
    throw new StaticPodError(
      `${path} exists and differs (${shown(changes)}), and ${user} ${naming ? 'names it' : 'is not readable as a pod, and may name it'}: ` +
        `a running pod may use it, so holdfast leaves it alone; install under a new revision`,
    )
  }
  // Another program may have written it, and not synced all of it.
  if (!lookOnly) await durable.syncTree(path)
  return { publish: [], kept: [{ path, outcome: 'kept' }] }
}

/**
 * The differences that count. A revision that library-go wrote holds its staging directory, and another program formatted its copies
 * of the manifests: the same pods are the same.
 */
async function realChanges(
  { fs }: DurableCalls,
  changes: readonly DirectoryChange[],
  directory: string,
  manifests: readonly PlannedManifest[],
): Promise<DirectoryChange[]> {
  const real: DirectoryChange[] = []
  for (const change of changes) {
    const isStaging = change.path === 'staging' || change.path.startsWith('staging/')
    if (isStaging && change.change === 'remove') continue
    const planned = change.change === 'change' && manifests.find(({ name }) => name === change.path)
    if (planned && (await holdsPod(fs, join(directory, change.path), planned.manifest))) continue
    real.push(change)
  }
  return real
}

async function holdsPod(fs: FileSystem, path: string, manifest: Manifest): Promise<boolean> {
  try {
    const found = await readManifest(fs, path)
    return found !== undefined && isSamePod(found, manifest)
  } catch {
    return false
  }
}

function shown(changes: readonly DirectoryChange[]): string {
  const signs = { add: 'lacks', change: 'other', remove: 'also has' }
  const some = changes.slice(0, 3).map(({ path, change }) => `${signs[change]} ${path}`)
  return some.join(', ') + (changes.length > 3 ? ', …' : '')
}

/** Tells the outcome of an installation, by paths; writes nothing and takes no lock. */
export async function dryRun(plan: InstallPlan, settings: InstallSettings): Promise<InstallResult> {
  const manifests = await preflight(plan, settings, true)
  const { publish, kept } = await revisionStep(plan, settings, true)
  const lasting = await currentLasting(settings.durable, plan, settings.log)
  const directories: InstallLine[] = [...kept]
  for (const request of [...publish, ...lasting]) {
    const { exists, changes, digest } = await settings.durable.difference(request)
    const outcome = !exists ? 'created' : changes.length > 0 ? 'replaced' : 'unchanged'
    directories.push({ path: request.target, outcome, digest, changes })
  }
  return { pod: plan.pod, revision: plan.revision, directories, manifests }
}

/**
 * The requests of `plan.lasting` to publish. A slower installer must not set an object back to the version that it read
 * before: where a newer version is on the disk, this reads the object once more. If that is older still, the server's
 * history was rewound (an etcd restored from a backup), and the server's present answer counts.
 * @internal
 */
export async function currentLasting(
  durable: DurableCalls,
  { lasting, reread }: InstallPlan,
  log: Log,
): Promise<DirectoryPublicationRequest[]> {
  const current: DirectoryPublicationRequest[] = []
  for (const request of lasting) {
    const published = await durable.recordedObjects(request.target)
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
  return objects.some((object) => published.some((other) => isNewerRevision(other, object)))
}

/** Of one object (the same uid, which no other has), versions compare as numbers (Kubernetes 1.35, KEP-5504). */
function isNewerRevision(published: RecordedObject, read: RecordedObject): boolean {
  if (published.uid !== read.uid) return false
  return (compareResourceVersions(published.resourceVersion, read.resourceVersion) ?? 0) > 0
}
