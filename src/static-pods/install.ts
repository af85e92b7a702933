/*
 * Writes an installation to the disk, in the order that leaves the node whole at every instant: the revision's directory
 * becomes visible complete, in one rename after one barrier; directories that a running pod may mount are never exchanged
 * themselves, only what is in them; the manifests come last, each in one rename, so that kubelet never sees one that names
 * what is not there. Killed in between, the old manifest stands and the next run completes.
 */
import { dirname, join } from 'node:path'
import type { Log } from '../log.js'
import type { DirectoryChange } from '../durable/index.js'
import type { Disk, DirectoryPublicationRequest } from './disk.js'
import { InvalidInput, messageOf, StaticPodError } from './failure.js'
import { hostPathFaults } from './host-paths.js'
import type { InstallPlan, PlannedManifest } from './install-plan.js'
import { operationLockName } from './names.js'
import { revisionsOfManifests } from './named-revisions.js'
import { orphanedRecords } from './orphaned-records.js'
import { currentLasting } from './newer-published.js'
import { readSmallFile } from './read-file.js'

export interface InstallSettings {
  readonly disk: Disk
  readonly log: Log
  /** Aborts at the deadline and on SIGTERM: before a manifest is renamed, never in the middle. */
  readonly signal: AbortSignal
  readonly manifestDirectory: string
  /** undefined: none is taken. */
  readonly manifestLock: string | undefined
  /** Milliseconds that are left to wait for locks. */
  readonly timeLeft: () => number
  readonly requireProven: boolean
  /** Refuse host paths that do not exist; otherwise they are warned of, if `warnOfHostPaths`. */
  readonly checkHostPaths: boolean
  readonly warnOfHostPaths: boolean
}

/** What became of one path. `kept`: it was there already, the same, and was not touched because a live manifest names it. */
export interface InstallLine {
  readonly path: string
  readonly outcome: 'created' | 'replaced' | 'unchanged' | 'kept'
  readonly digest?: string
  readonly unproven?: true
  readonly changes?: readonly DirectoryChange[]
}

export interface InstallResult {
  readonly pod: string
  readonly revision: number | undefined
  readonly directories: readonly InstallLine[]
  readonly manifests: readonly InstallLine[]
}

/** @throws DurableWriteError, StaticPodError, InvalidInput */
export async function install(plan: InstallPlan, settings: InstallSettings): Promise<InstallResult> {
  await checkPaths(plan, settings)
  const { disk, signal, timeLeft, requireProven, log } = settings
  signal.throwIfAborted()
  const held =
    plan.directory &&
    (await disk.lock(join(dirname(plan.directory.target), operationLockName(plan.pod)), timeLeft(), signal))
  try {
    const { publish, kept } = await revisionStep(plan, settings)
    await removeOrphans(plan, settings)
    const lasting = await currentLasting(disk, plan, log)
    const options = { requireProven, log, signal }
    const requests = [...publish, ...lasting].map((request) => ({
      ...request,
      ...options,
      lockTimeout: timeLeft(),
    }))
    signal.throwIfAborted()
    const directories: InstallLine[] = [...kept, ...(await disk.publishDirectories(requests, signal))]
    signal.throwIfAborted()
    return {
      pod: plan.pod,
      revision: plan.revision,
      directories,
      manifests: await publishManifests(plan, settings),
    }
  } finally {
    await held?.release()
  }
}

async function publishManifests(plan: InstallPlan, settings: InstallSettings): Promise<InstallLine[]> {
  const { disk, signal, manifestLock, manifestDirectory, timeLeft, requireProven, log } = settings
  const held = manifestLock === undefined ? undefined : await disk.lock(manifestLock, timeLeft(), signal)
  try {
    return await disk.publishFiles(
      plan.manifests.map(({ name, content }) => ({
        path: join(manifestDirectory, name),
        content,
        options: { mode: 0o600, requireProven, log, lockTimeout: timeLeft() },
      })),
      signal,
    )
  } finally {
    await held?.release()
  }
}

/** What installations that were killed left of revisions that never came. Their staging goes with the next publication. */
async function removeOrphans({ directory, pod, revision }: InstallPlan, { disk, log }: InstallSettings) {
  if (directory === undefined || revision === undefined) return
  await disk.inDirectory(dirname(directory.target), async (parent) => {
    for (const entry of await orphanedRecords(disk.fs, parent, pod, revision)) {
      try {
        await disk.fs.removeFile(parent, entry)
      } catch (error) {
        log.warn(
          { leftover: entry, error: messageOf(error) },
          'a leftover could not be removed; the next run tries again',
        )
      }
    }
  })
}

/** What is to be done about the revision's directory, which may be there. */
async function revisionStep(
  { directory, revision, pod }: InstallPlan,
  { disk, manifestDirectory, log }: InstallSettings,
  lookOnly = false,
): Promise<{ publish: DirectoryPublicationRequest[]; kept: InstallLine[] }> {
  if (directory === undefined || revision === undefined) return { publish: [], kept: [] }
  const { exists, changes } = await disk.difference(directory)
  if (!exists) return { publish: [directory], kept: [] }
  const path = directory.target
  const equal = changes.length === 0
  if (equal && (await disk.isSettled(path)) === true)
    return { publish: [], kept: [{ path, outcome: 'unchanged' }] }
  const naming = (await revisionsOfManifests(manifestDirectory, pod, log)).get(revision)
  // Nobody runs from it: a leftover that is torn, or that is not known to be durable, gets fresh inodes.
  if (naming === undefined) return { publish: [directory], kept: [] }
  if (!equal) {
    throw new StaticPodError(
      `${path} is there and differs (${shown(changes)}), and ${naming} names it: a running pod may use it, so it is left ` +
        `alone; install under a new revision`,
    )
  }
  // Another program may have written it, and not synced all of it.
  if (!lookOnly) await disk.syncTree(path)
  return { publish: [], kept: [{ path, outcome: 'kept' }] }
}

function shown(changes: readonly DirectoryChange[]): string {
  const signs = { add: 'lacks', change: 'other', remove: 'more:' }
  const some = changes.slice(0, 3).map(({ path, change }) => `${signs[change]} ${path}`)
  return some.join(', ') + (changes.length > 3 ? ', …' : '')
}

async function checkPaths(plan: InstallPlan, settings: InstallSettings): Promise<void> {
  const { disk, log, manifestDirectory } = settings
  if (plan.directory) {
    const own = await disk.realPath(plan.directory.target)
    for (const { target } of plan.lasting) {
      if (`${await disk.realPath(target)}/`.startsWith(`${own}/`)) {
        throw new InvalidInput(
          `${target} lies in ${plan.directory.target}, which belongs to one revision: choose another --cert-dir`,
        )
      }
    }
    if ((await disk.realPath(join(manifestDirectory, 'x'))).startsWith(`${own}/`)) {
      throw new InvalidInput(
        `the manifest directory ${manifestDirectory} lies in ${plan.directory.target}: choose another`,
      )
    }
  }
  if (!settings.checkHostPaths && !settings.warnOfHostPaths) return
  const planned = [plan.directory, ...plan.lasting].flatMap((request) => (request ? pathsOf(request) : []))
  for (const { name, manifest } of plan.manifests) {
    for (const { field, path, problem } of await hostPathFaults(manifest.pod, planned)) {
      if (settings.checkHostPaths) throw new StaticPodError(`${name}: ${field}: ${path} ${problem}`)
      log.warn({ manifest: name, field, path }, `a host path ${problem}`)
    }
  }
}

function pathsOf({ target, files, emptyDirectories = [] }: DirectoryPublicationRequest): string[] {
  return [target, ...[...Object.keys(files), ...emptyDirectories].map((path) => join(target, path))]
}

/** What an installation would do, by paths; writes nothing and takes no lock. */
export async function dryRun(plan: InstallPlan, settings: InstallSettings): Promise<InstallResult> {
  await checkPaths(plan, settings)
  const { publish, kept } = await revisionStep(plan, settings, true)
  const lasting = await currentLasting(settings.disk, plan, settings.log)
  const directories: InstallLine[] = [...kept]
  for (const request of [...publish, ...lasting]) {
    const { exists, changes } = await settings.disk.difference(request)
    const outcome = !exists ? 'created' : changes.length > 0 ? 'replaced' : 'unchanged'
    directories.push({ path: request.target, outcome, changes })
  }
  const manifests = await Promise.all(
    plan.manifests.map((manifest) => manifestLine(settings.manifestDirectory, manifest)),
  )
  return { pod: plan.pod, revision: plan.revision, directories, manifests }
}

async function manifestLine(directory: string, { name, content }: PlannedManifest): Promise<InstallLine> {
  const path = join(directory, name)
  const live = await readSmallFile(path)
  if (live === undefined) return { path, outcome: 'created' }
  return { path, outcome: Buffer.compare(live, content) === 0 ? 'unchanged' : 'replaced' }
}
