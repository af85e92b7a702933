/*
 * A static pod is restarted by a change of its manifest: an annotation says which content the pod is to run with. The rest of the
 * manifest stays as its author wrote it, byte for byte.
 */
import { nodeFiles, type DurableCalls } from '../durable/index.js'
import { createHash, createHmac, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Log } from '../log.js'
import { StaticPodError } from './failure.js'
import { newUid } from './kubelet.js'
import { editedText, parseManifest, type Manifest } from './pod/manifest.js'
import { contentAnnotationPrefix, operationLockName } from './names.js'
import { holding, listManifests, ownershipAt, readListed, readNodeFile } from './node-files.js'
import { rolloutLockPath } from './rollout/rollout-state.js'
import { rolloutLine, unfinishedRollouts } from './rollout/rollout-status.js'

export interface Renewal {
  /** The pod's name, as its manifest has it. */
  readonly pod: string
  readonly manifestDirectory: string
  /** undefined: a lock of our own beside the manifests. */
  readonly lockFile: string | undefined
  /** The published directories, with the digests of their content. */
  readonly published: readonly { readonly directory: string; readonly digest: string }[]
  /** Milliseconds to wait for another holder of a lock. */
  readonly lockTimeout: number
  readonly signal: AbortSignal
  readonly log: Log
}

interface FoundManifest {
  readonly path: string
  readonly text: string
  readonly manifest: Manifest
}

/**
 * The key of the annotation that tells which content of this directory the pod runs with: each directory has its key.
 * @internal
 */
export function contentAnnotation(directory: string): string {
  return `${contentAnnotationPrefix}${createHash('sha256').update(directory).digest('hex').slice(0, 16)}`
}

/** kubelet reads no name with a leading dot. */
const keyName = '.holdfast-content-key'

const keyBytes = 32

/**
 * The annotation's value for a content. Everyone with the right to read pods sees it, so it must not let them guess the content: its key
 * is on the node alone.
 * @internal
 */
export function contentMark(key: Uint8Array, directory: string, digest: string): string {
  return `hmac-sha256:${createHmac('sha256', key).update(`${directory}\0${digest}`).digest('hex')}`
}

/**
 * Has kubelet restart a static pod, once for one content: durable on return. It writes nothing where the manifest names this content
 * already, durably. It waits for a running rollout in this directory, and refuses an interrupted one: a rollout takes back only what it
 * knows.
 * @throws DurableWriteError, StaticPodError, InvalidInput
 */
export async function renewStaticPod(durable: DurableCalls, renewal: Renewal): Promise<'renewed' | 'unchanged'> {
  const { pod, manifestDirectory, lockFile, lockTimeout, signal } = renewal
  // The program that makes the manifest directory decides what it holds: holdfast does not make it here.
  await findManifest(durable, manifestDirectory, pod)
  const untouched = 'the manifest is as it was'
  const noRollout = durable.lock(rolloutLockPath(manifestDirectory), lockTimeout, signal, untouched)
  return holding(noRollout, async () => {
    const [unfinished] = await unfinishedRollouts([manifestDirectory], durable)
    if (unfinished) throw new StaticPodError(`${rolloutLine(unfinished)}; ${untouched}`)
    const lockPath = lockFile ?? join(manifestDirectory, operationLockName(pod))
    return holding(durable.lock(lockPath, lockTimeout, signal, untouched), () => renew(durable, renewal))
  })
}

async function renew(durable: DurableCalls, renewal: Renewal): Promise<'renewed' | 'unchanged'> {
  const { pod, manifestDirectory, published, lockTimeout, signal, log } = renewal
  const found = await findManifest(durable, manifestDirectory, pod)
  const key = await contentKey(durable, renewal)
  const annotations = published.map(
    ({ directory, digest }) => [contentAnnotation(directory), contentMark(key, directory, digest)] as const,
  )
  const text = await withAnnotations(found, annotations)
  const options = { ...(await ownershipAt(found.path, durable)), lockTimeout, log }
  // Publishes the same text, too: an earlier renewal may have made it visible and not durable.
  const content = Buffer.from(text)
  const [result] = await durable.publishFiles([{ path: found.path, content, options }], signal)
  return result?.outcome === 'unchanged' || text === found.text ? 'unchanged' : 'renewed'
}

/** Of this manifest directory; made once, and durable before the first manifest that depends on it. Without it, a pod restarts once more. */
async function contentKey(
  durable: DurableCalls,
  { manifestDirectory, lockTimeout, signal, log }: Renewal,
): Promise<Uint8Array> {
  const path = join(manifestDirectory, keyName)
  const known = await readNodeFile(durable.fs, path)
  const content = known?.byteLength === keyBytes ? known : randomBytes(keyBytes)
  await durable.publishFiles([{ path, content, options: { mode: 0o600, lockTimeout, log } }], signal)
  return content
}

/** The one manifest of a pod. @throws StaticPodError where there is none, or several */
export async function findManifest(durable: DurableCalls, directory: string, pod: string): Promise<FoundManifest> {
  const found: FoundManifest[] = []
  let unreadable = 0
  for (const path of await listManifests(durable.fs, directory)) {
    try {
      const bytes = await readListed(durable.fs, path)
      if (bytes === undefined) continue
      const manifest = await parseManifest(bytes, path)
      if (manifest.name === pod) found.push({ path, text: manifest.source, manifest })
    } catch {
      // Kubelet ignores it, too.
      unreadable += 1
    }
  }
  const [first, second] = found
  if (first !== undefined && second === undefined) {
    const link = await nodeFiles.readLink(durable.fs, first.path)
    if (link === undefined) return first
    throw new StaticPodError(`${first.path}, the manifest of ${pod}, is a symbolic link: put the file itself there`)
  }
  if (first !== undefined && second !== undefined) {
    throw new StaticPodError(`${first.path} and ${second.path} are both manifests of ${pod}: remove one of them`)
  }
  const others = unreadable === 0 ? '' : ` (holdfast cannot read ${unreadable} of the files there as pods)`
  throw new StaticPodError(`${directory} holds no manifest of a pod with the name ${pod}${others}`)
}

async function withAnnotations(
  { path, text, manifest }: FoundManifest,
  annotations: readonly (readonly [string, string])[],
): Promise<string> {
  const missing = annotations.filter(([key, value]) => manifest.annotations[key] !== value)
  if (missing.length === 0) return text
  // kubelet tells a pod with a uid in its manifest from its predecessor only by another uid.
  const uid = manifest.uid === undefined ? undefined : newUid()
  const changed = await editedText(manifest, uid, Object.fromEntries(missing))
  if (changed !== undefined) return changed
  throw new StaticPodError(
    `${path} is written in a way that holdfast cannot add an annotation to; add metadata.annotations to it`,
  )
}
