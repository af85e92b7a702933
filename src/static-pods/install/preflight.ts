/*
 * Checks each place on the node before an installation writes its first byte, and refuses where it could not end well: a fault
 * that shows only later would leave a revision behind that no manifest names.
 */
import { adviceFor, codeOf, messageOf } from '../../errors.js'
import { dirname, join } from 'node:path'
import type { DurableCalls } from '../../durable/index.js'
import type { DirectoryPublicationRequest, FileRequest } from '../../durable/single-calls/index.js'
import { DurableWriteError } from '../../durable/errors.js'
import { InvalidInput, StaticPodError } from '../failure.js'
import { hostPathFaults } from '../host-paths.js'
import type { InstallLine, InstallPlan, InstallSettings } from './install-plan.js'
import { isSamePodName, parseManifest, warnOfDoubts } from '../pod/manifest.js'
import { parseRevision, revisionsNamedIn } from '../names.js'
import { checkLockFile, listManifests, readListed, readNodeFile } from '../node-files.js'
import { refuseUnfinished } from '../rollout/rollout-status.js'

/**
 * Tells the outcome of each manifest. Writes nothing, and takes no lock. `lookOnly`: an unwritable place is only a
 * warning.
 * @throws DurableWriteError, StaticPodError, InvalidInput
 */
export async function preflight(
  plan: InstallPlan,
  settings: InstallSettings,
  lookOnly = false,
): Promise<InstallLine[]> {
  await checkPlaces(plan, settings)
  await checkLockFile(settings.manifestLock, settings.durable)
  await checkInstallOwners(plan, settings)
  const paths = plan.manifests.map(({ name }) => join(settings.manifestDirectory, name))
  const pods = plan.manifests.map(({ manifest }) => manifest)
  await refuseUnfinished(paths, pods, settings.durable, 'nothing was changed')
  await refuseOlder(plan, settings, !lookOnly)
  const lines: InstallLine[] = []
  for (const request of manifestRequests(plan, settings)) {
    lines.push({ path: request.path, ...(await preview(request, settings, lookOnly)) })
  }
  await checkWritable(plan, settings, lines, lookOnly)
  await checkHostPaths(plan, settings)
  await warnOfTwins(plan, settings)
  warnOfLabels(plan, settings)
  for (const { name, manifest } of plan.manifests) warnOfDoubts(manifest, name, settings.log, plan.node)
  return lines
}

/** Another program may be at work there, for there is no lock yet: publishing checks again all but a place that is unfit for good. */
async function preview(
  request: FileRequest,
  { durable }: InstallSettings,
  lookOnly: boolean,
): Promise<Pick<InstallLine, 'outcome' | 'digest'>> {
  try {
    return await durable.previewFile(request)
  } catch (error) {
    if (lookOnly || isLasting(error)) throw error
    return { outcome: 'replaced' }
  }
}

export function manifestRequests(
  { manifests }: InstallPlan,
  { manifestDirectory, requireProven, log, timeLeft }: InstallSettings,
): FileRequest[] {
  return manifests.map(({ name, content }) => ({
    path: join(manifestDirectory, name),
    content,
    options: { mode: 0o600, requireProven, log, lockTimeout: timeLeft() },
  }))
}

async function checkPlaces(plan: InstallPlan, { durable, manifestDirectory }: InstallSettings): Promise<void> {
  const { directory, lasting, manifests } = plan
  if (directory === undefined) return
  const resources = dirname(directory.target)
  if (resources === '/') throw new InvalidInput('--resource-dir is /: revisions need a directory of their own')
  const own = await durable.realPath(directory.target)
  for (const { target } of lasting) {
    if (`${await durable.realPath(target)}/`.startsWith(`${own}/`)) {
      throw new InvalidInput(
        `${target} lies in ${directory.target}, which belongs to one revision: choose another --cert-dir`,
      )
    }
  }
  const live = dirname(await durable.realPath(join(manifestDirectory, manifests[0]?.name ?? 'pod.yaml')))
  if (`${live}/`.startsWith(`${own}/`)) {
    throw new InvalidInput(`the manifest directory ${manifestDirectory} lies in ${directory.target}: choose another`)
  }
  if (live === dirname(own)) {
    throw new InvalidInput(
      `--resource-dir and --pod-manifest-dir are both ${resources}: kubelet would read the revisions; choose another --resource-dir`,
    )
  }
}

/** A directory that another program keeps is refused before a revision is written that no manifest would name. */
async function checkInstallOwners({ lasting }: InstallPlan, { durable }: InstallSettings): Promise<void> {
  for (const request of lasting) {
    try {
      await durable.difference(request)
    } catch (error) {
      if (isLasting(error)) throw error
    }
  }
}

/** It will be so under the lock, too: the target is unfit or another program's, or an operator holds it. */
function isLasting(error: unknown): boolean {
  return !(error instanceof DurableWriteError) || ['TargetUnfit', 'TargetForeign', 'Held'].includes(error.reason)
}

/**
 * Installers that do not wait for each other may come in any order: the label of the live manifest decides. Where it cannot be read as
 * a pod, the revisions that its text still names decide; a text without any is replaced, as library-go replaces it always: else a torn
 * manifest could not be repaired. `isSilent`: the caller's next look reports that.
 * @throws StaticPodError where a newer revision is live
 */
export async function refuseOlder(plan: InstallPlan, settings: InstallSettings, isSilent = false): Promise<void> {
  const { pod, revision } = plan
  const { durable, manifestDirectory, allowOlder, log } = settings
  if (revision === undefined || allowOlder) return
  const path = join(manifestDirectory, `${pod}.yaml`)
  const older = `revision ${revision} is older: holdfast did not make it live; --allow-older does`
  // A manifest that is no file, or unreadable, cannot be replaced either: publishing it says so.
  const bytes = await readNodeFile(durable.fs, path).catch(() => undefined)
  if (bytes === undefined) return
  const manifest = await parseManifest(bytes, path).catch(messageOf)
  if (typeof manifest !== 'string') {
    const live = parseRevision(manifest.revision ?? '')
    if (live !== undefined && live > revision) throw new StaticPodError(`${path} is of revision ${live}, and ${older}`)
    return
  }
  const unread = `${path} is not readable as a pod`
  const named = Math.max(...revisionsNamedIn(pod, Buffer.from(bytes).toString('latin1')))
  if (named > revision) throw new StaticPodError(`${unread}, but names revision ${named}, and ${older}`)
  if (isSilent) return
  log.warn(
    { path, revision, error: manifest },
    `${unread}: holdfast assumes that revision ${revision} is not older than the live one, and installs it`,
  )
}

/** The monitor and prune know a revision by its label, and `refuseOlder` does. */
function warnOfLabels({ pod, revision, manifests }: InstallPlan, { log }: InstallSettings): void {
  const main = manifests.find(({ name }) => name === `${pod}.yaml`)
  if (revision === undefined || main === undefined || main.manifest.revision === String(revision)) return
  const label = main.manifest.revision
  const what = label === undefined ? 'has no label `revision`' : `has the label \`revision: ${label}\`, not ${revision}`
  log.warn(
    { manifest: main.name, revision },
    `${main.name} ${what}: holdfast monitor and prune cannot tell which revision is live`,
  )
}

async function checkWritable(
  { directory, lasting }: InstallPlan,
  { durable, log }: InstallSettings,
  manifests: readonly InstallLine[],
  lookOnly: boolean,
): Promise<void> {
  const changing = manifests.filter(({ outcome }) => outcome !== 'unchanged').map(({ path }) => path)
  const targets = [directory, ...lasting].flatMap((request) => (request ? [request.target] : []))
  const places = new Set([...changing, ...(changing.length > 0 ? targets : [])].map(dirname))
  for (const place of places) {
    const code = await refusalToWrite(durable.fs, place)
    if (code === undefined) continue
    const what = `could not write to ${place}: ${code}`
    if (lookOnly) {
      log.warn({ path: place, code }, what)
      continue
    }
    const details = { code, syscall: 'access', path: place, state: 'nothing was changed' }
    throw new DurableWriteError(what, { ...details, advice: adviceFor(code) })
  }
}

/** Why nothing can be made in a directory, or in the nearest one above it that exists; undefined where that is not known. */
async function refusalToWrite(fs: DurableCalls['fs'], directory: string): Promise<string | undefined> {
  for (let path = directory; ; path = dirname(path)) {
    const code = await fs.accessPath(path).then(
      () => undefined,
      (error: unknown) => codeOf(error),
    )
    if (code === 'EACCES' || code === 'EROFS') return code
    if (code !== 'ENOENT' || path === '/') return undefined
  }
}

async function checkHostPaths(plan: InstallPlan, settings: InstallSettings): Promise<void> {
  const { checkHostPaths: refuse, warnOfHostPaths, log } = settings
  if (!refuse && !warnOfHostPaths) return
  const requests = [...(plan.directory ? [plan.directory] : []), ...plan.lasting]
  const found = await Promise.all(requests.map((request) => pathsOf(request, settings.durable)))
  const planned = found.flat()
  for (const { name, manifest } of plan.manifests) {
    for (const { field, path, problem } of await hostPathFaults(manifest.pod, planned)) {
      if (refuse) throw new StaticPodError(`${name}: ${field}: ${path} ${problem}; nothing was changed`)
      log.warn({ manifest: name, field, path }, `a host path ${problem}`)
    }
  }
}

/** Without symbolic links. */
async function pathsOf(request: DirectoryPublicationRequest, durable: DurableCalls): Promise<string[]> {
  const { files, emptyDirectories = [] } = request
  const target = await durable.realPath(request.target)
  return [target, ...[...Object.keys(files), ...emptyDirectories].map((path) => join(target, path))]
}

/**
 * Of two manifests of one pod, kubelet runs one, and the other waits for it to end: a copy or an old name that was left there. It knows pods by
 * their uid, too: of two with one, it runs neither for long.
 */
async function warnOfTwins(
  { manifests }: InstallPlan,
  { durable, manifestDirectory, log }: InstallSettings,
): Promise<void> {
  const own = new Set(manifests.map(({ name }) => join(manifestDirectory, name)))
  const others = (await listManifests(durable.fs, manifestDirectory)).filter((path) => !own.has(path))
  for (const path of others) {
    const other = await readListed(durable.fs, path)
      .then((bytes) => bytes && parseManifest(bytes, path))
      .catch((error: unknown) => {
        log.debug({ path, error: messageOf(error) }, 'could not read another manifest')
        return undefined
      })
    if (other === undefined) continue
    const twin = manifests.find(({ manifest }) => isSamePodName(manifest, other))
    const same = manifests.find(({ manifest }) => manifest.uid && manifest.uid === other.uid)
    const name = (twin ?? same)?.name
    if (name === undefined) continue
    const fault = twin
      ? `is a manifest of the same pod as ${name}: kubelet runs only one of them at a time; move ${path} out of the directory`
      : `has the metadata.uid of ${name}: kubelet takes them for one pod; remove the uid from the copy`
    log.warn({ path, manifest: name }, `${path} ${fault}`)
  }
}
