/* Plans a rollout, and checks the plan as far as it can be before the first write. */
import { createHash, randomBytes } from 'node:crypto'
import { basename, join } from 'node:path'
import { type DurableCalls } from '../../durable/index.js'
import type { DirectoryPublicationRequest } from '../../durable/single-calls/index.js'
import type { Log } from '../../log.js'
import { InvalidInput, StaticPodError } from '../failure.js'
import { hostPathUsers } from '../host-path-users.js'
import { asMap } from '../json.js'
import { newUid } from '../kubelet.js'
import {
  encodeManifest,
  isSamePodName,
  parseManifest,
  refuseUnrunnable,
  writeManifest,
  type Manifest,
} from '../pod/manifest.js'
import { contentAnnotationPrefix, parseRevision, rolloutAnnotation } from '../names.js'
import { checkLockFile, listManifests, ownershipAt, readListed, readSmallFile } from '../node-files.js'
import type { ReadinessSettings } from '../ready/readiness.js'
import { bytesOf, type RolledManifest, type RolloutState } from './rollout-state.js'
import { entriesOfTree } from './rollout-tree.js'
import { isSamePod } from '../pod/same-pod.js'

export interface RolloutRequest {
  readonly manifestDirectory: string
  /** In the order in which the pods change. */
  readonly manifests: readonly NewManifest[]
  /** Swapped with the manifests; its target is where the pods read it. */
  readonly tree: DirectoryPublicationRequest | undefined
  /** undefined: the rollout takes no manifest lock. */
  readonly manifestLock: string | undefined
  /** Milliseconds for each pod to become ready. */
  readonly timeout: number
  /** false: a pod that is not ready stays. */
  readonly fallback: boolean
  readonly allowOlder: boolean
  readonly requireProven: boolean
  readonly readiness: ReadinessSettings
}

export interface NewManifest {
  /** Where it was read. */
  readonly place: string
  readonly manifest: Manifest
}

/** Reads the manifests that are to be live. @throws InvalidInput, with the place */
export async function readManifests(paths: readonly string[]): Promise<NewManifest[]> {
  const read: NewManifest[] = []
  for (const place of paths) {
    const bytes = await readSmallFile(place)
    if (bytes === undefined) throw new InvalidInput(`${place} does not exist`)
    const manifest = await parseManifest(bytes, place)
    refuseUnrunnable(manifest, place)
    const twin = read.find((other) => isSamePodName(other.manifest, manifest))
    if (twin) throw new InvalidInput(`${place} and ${twin.place} are manifests of one pod: name one of them`)
    const same = read.find((other) => manifest.uid && other.manifest.uid === manifest.uid)
    if (same)
      throw new InvalidInput(`${place} has the metadata.uid of ${same.place}: kubelet would take them for one pod`)
    read.push({ place, manifest: withoutAnnotation(manifest) })
  }
  return read
}

/** Without what an earlier rollout, or a staticPod hook, has added: the live manifest itself may be named. */
function withoutAnnotation(manifest: Manifest): Manifest {
  const all = Object.entries(manifest.annotations)
  const own = all.filter(([key]) => key !== rolloutAnnotation && !key.startsWith(contentAnnotationPrefix))
  if (own.length === all.length) return manifest
  const annotations = Object.fromEntries(own)
  const others = Object.entries(asMap(manifest.pod.metadata) ?? {}).filter(([field]) => field !== 'annotations')
  const isEmpty = Object.keys(annotations).length === 0
  const kept = { ...Object.fromEntries(others), ...(!isEmpty && { annotations }) }
  return { ...manifest, pod: { ...manifest.pod, metadata: kept }, annotations }
}

/**
 * The plan, as the state file keeps it; undefined where the node has all of it already. Writes nothing.
 * @throws InvalidInput, StaticPodError, DurableWriteError: nothing was changed
 */
export async function planRollout(
  request: RolloutRequest,
  durable: DurableCalls,
  log: Log,
): Promise<RolloutState | undefined> {
  const { manifestDirectory, tree } = request
  await checkLockFile(request.manifestLock, durable)
  const id = await identifyRequest(request, durable)
  // Read before the comparison: an entry that comes later belongs to another program.
  const oldContent = tree ? await entriesOfTree(tree.target, durable) : []
  const difference = tree && (await durable.difference({ ...tree, publisher: 'rollout' }))
  const isNewTree = difference !== undefined && (!difference.exists || difference.changes.length > 0)
  const live = await liveManifests(manifestDirectory, durable, log)
  const named = new Set<string>()
  let isNewPod = false
  const manifests: RolledManifest[] = []
  for (const { place, manifest } of request.manifests) {
    const planned = await rolled(place, manifest, live, request, isNewTree)
    named.add(planned.manifest.name)
    isNewPod ||= planned.isNew
    // Every pod that reads a new tree has to start again.
    if (isNewTree || !planned.isSame) manifests.push(planned.manifest)
  }
  if (manifests.length === 0) return undefined
  if (isNewPod || isNewTree) refuseUnreadableManifests(live, named)
  if (tree && isNewTree) await refuseOtherReaders(request, tree.target, named, durable)
  for (const { name, next } of manifests) {
    await durable.previewFile({
      path: join(manifestDirectory, name),
      content: bytesOf(next),
      options: { mode: 0o600, requireProven: request.requireProven, log },
    })
  }
  return {
    phase: 'staging',
    request: id,
    manifests,
    reached: 0,
    tree: tree && isNewTree ? { target: tree.target, staged: null, stagedContent: [], old: null, oldContent } : null,
    since: null,
    timeout: request.timeout,
    fallback: request.fallback,
    manifestLock: request.manifestLock ?? null,
    readiness: request.readiness,
    message: '',
  }
}

/** @throws StaticPodError: it may hold the pod that is new, or mount the directory that goes */
function refuseUnreadableManifests(live: readonly LiveManifest[], named: ReadonlySet<string>): void {
  const unreadable = live.find(({ path, manifest }) => manifest === undefined && !named.has(basename(path)))
  if (unreadable === undefined) return
  throw new StaticPodError(
    `${unreadable.path} is not readable as a pod, so holdfast cannot know which pod it holds, and what it mounts; nothing was changed; ` +
      'mend it, or move it away',
  )
}

/** @throws StaticPodError for pods that would go on with a directory that is emptied at the end */
async function refuseOtherReaders(
  { manifestDirectory }: RolloutRequest,
  target: string,
  named: ReadonlySet<string>,
  durable: DurableCalls,
): Promise<void> {
  const { users, unreadable } = await hostPathUsers(durable.fs, manifestDirectory, [target])
  const others = new Set(users.flat().flatMap(({ manifest }) => (named.has(basename(manifest)) ? [] : [manifest])))
  const unknown = unreadable.find(({ manifest }) => !named.has(basename(manifest)))
  if (others.size === 0 && unknown) {
    throw new StaticPodError(
      `${unknown.manifest}: ${unknown.problem}, so holdfast cannot know whether its pod mounts ${target}; nothing was changed; ` +
        'mend that path, or name this manifest, too',
    )
  }
  if (others.size === 0) return
  throw new StaticPodError(
    `${[...others].join(', ')} mount ${target}, which is to be exchanged; nothing was changed; name these manifests, too, so that ` +
      'their pods restart',
  )
}

/** The same manifests with the same tree, in this order: so that a rerun knows its own work. */
export async function identifyRequest({ manifests, tree }: RolloutRequest, durable: DurableCalls): Promise<string> {
  const hash = createHash('sha256')
  // Without the uid, which is another one with each rollout.
  for (const { manifest } of manifests) hash.update(encodeManifest(manifest, undefined))
  if (tree) {
    const { digest, lists } = await durable.difference(tree)
    hash.update(`${tree.target}\0${digest}${lists ?? ''}`)
  }
  return hash.digest('hex').slice(0, 16)
}

/** @throws InvalidInput */
export async function checkManifestDirectory(manifestDirectory: string, durable: DurableCalls): Promise<void> {
  const exists = await durable.inDirectory(manifestDirectory, () => Promise.resolve(true))
  if (exists === undefined) throw new InvalidInput(`--pod-manifest-dir: ${manifestDirectory} does not exist`)
}

/** @throws InvalidInput */
export async function checkRolloutPlaces(
  { manifestDirectory, tree }: RolloutRequest,
  durable: DurableCalls,
): Promise<void> {
  await checkManifestDirectory(manifestDirectory, durable)
  if (tree === undefined) return
  const [target, directory] = [
    await durable.realPath(tree.target),
    await durable.realPath(join(manifestDirectory, 'x')),
  ]
  if (directory.startsWith(`${target}/`)) {
    throw new InvalidInput(`--resource-dir: the manifest directory ${manifestDirectory} lies in ${tree.target}`)
  }
  if (`${target}/`.startsWith(directory.slice(0, -1))) {
    throw new InvalidInput(`--resource-dir: ${tree.target} lies in the manifest directory ${manifestDirectory}`)
  }
}

interface LiveManifest {
  readonly path: string
  readonly bytes: Uint8Array
  readonly mode: number
  readonly owner: { readonly uid: number; readonly gid: number } | null
  readonly manifest: Manifest | undefined
}

async function liveManifests(directory: string, durable: DurableCalls, log: Log): Promise<LiveManifest[]> {
  const live: LiveManifest[] = []
  for (const path of await listManifests(durable.fs, directory)) {
    const bytes = await readListed(durable.fs, path)
    if (bytes === undefined) continue
    const manifest = await parseManifest(bytes, path).catch(() => undefined)
    if (manifest === undefined) log.debug({ path }, 'not readable as a pod')
    const { mode = 0o600, owner = null } = (await ownershipAt(path, durable)) ?? {}
    live.push({ path, bytes, mode, owner, manifest })
  }
  return live
}

async function rolled(
  place: string,
  manifest: Manifest,
  live: readonly LiveManifest[],
  { allowOlder }: RolloutRequest,
  isNewTree: boolean,
): Promise<{ manifest: RolledManifest; isSame: boolean; isNew: boolean }> {
  const same = live.filter((other) => other.manifest && isSamePodName(other.manifest, manifest))
  const [current, twin] = same
  if (twin) {
    throw new StaticPodError(
      `${current?.path ?? ''} and ${twin.path} hold the pod of ${place}; nothing was changed; kubelet runs only one of them: move one away`,
    )
  }
  const name = basename(current?.path ?? place)
  const found = current ?? live.find(({ path }) => basename(path) === name)
  if (current === undefined && found?.manifest) {
    throw new StaticPodError(
      `${found.path} holds the pod ${found.manifest.name}, and ${place} the pod ${manifest.name}; nothing was changed; give the file another name`,
    )
  }
  if (current === undefined && name.startsWith('.')) {
    throw new InvalidInput(`${place}: kubelet does not read a file of this name: rename it, NAME.yaml`)
  }
  const [before, after] = [parseRevision(current?.manifest?.revision ?? ''), parseRevision(manifest.revision ?? '')]
  if (!allowOlder && before !== undefined && after !== undefined && before > after) {
    throw new StaticPodError(
      `${current?.path ?? ''} is of revision ${before}, and revision ${after} is older: holdfast did not make it live; --allow-older does`,
    )
  }
  // Another one each time: else kubelet would restart nothing for a repeated rollout. A digest would show content to readers of the pod.
  const mark = randomBytes(8).toString('hex')
  // kubelet tells a pod with a uid in its manifest from its predecessor only by another uid.
  const uid = manifest.uid === undefined ? undefined : newUid()
  // The pod runs with the content that a hook has named, unless it is to read another directory: which ones lie there, no name tells.
  const annotations = isNewTree ? {} : contentAnnotations(current?.manifest)
  const next = await writeManifest(manifest, uid, { ...annotations, [rolloutAnnotation]: mark })
  const isSame = current?.manifest !== undefined && isSamePod(withoutAnnotation(current.manifest), manifest)
  const rolledManifest = {
    name,
    previous: found ? Buffer.from(found.bytes).toString('base64') : null,
    mode: found?.mode ?? 0,
    owner: found?.owner ?? null,
    next: Buffer.from(next).toString('base64'),
  }
  return { manifest: rolledManifest, isSame, isNew: current === undefined }
}

/** The annotations by which a staticPod hook has named the content that the pod runs with. */
function contentAnnotations(live: Manifest | undefined): Record<string, string> {
  const all = Object.entries(live?.annotations ?? {})
  const said = all.filter(([key]) => key.startsWith(contentAnnotationPrefix))
  return Object.fromEntries(said.flatMap(([key, value]) => (typeof value === 'string' ? [[key, value]] : [])))
}
