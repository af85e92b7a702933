/*
 * How a rollout asks for pods while it exchanges the directory that may hold the files of its own probes: a refused probe stops the
 * rollout before it begins, and both directories' authorities are trusted.
 */
import { nodeFiles, type DurableCalls } from '../../durable/index.js'
import { readFile } from 'node:fs/promises'
import { dirname, relative, resolve } from 'node:path'
import type { DirectoryPublicationRequest } from '../../durable/single-calls/index.js'
import type { Log } from '../../log.js'
import { StaticPodError } from '../failure.js'
import { parseManifest } from '../pod/manifest.js'
import { presentFiles, presentVersion, ProbeFiles, readProbeFile, type FileVersion } from '../ready/probe-files.js'
import { type ReadinessSettings, askEach, refusalOf, type Probe } from '../ready/readiness.js'
import { bytesOf, type RolloutState, type RolledTree } from './rollout-state.js'
import { oldTreeAt } from './rollout-tree.js'

/** Before the exchange: the files on the disk, then those that the new directory brings. */
export function filesBefore(tree: DirectoryPublicationRequest | undefined, durable: DurableCalls): ProbeFiles {
  if (tree === undefined) return presentFiles
  const brought = async (path: string): Promise<Buffer | undefined> => {
    const below = await pathBelow(tree.target, path, durable)
    const found = below === undefined ? undefined : tree.files[below]
    return found === undefined ? undefined : bytesIn(found)
  }
  const present = versionOf((path) =>
    readProbeFile(path).then(
      () => undefined,
      () => brought(path),
    ),
  )
  return new ProbeFiles([present, versionOf(brought)])
}

/** Reads a file in its own way, or, where this knows of none, from the disk. */
function versionOf(readOwn: (path: string) => Promise<Buffer | undefined>): FileVersion {
  let hasOwn = false
  return {
    get hasOwn() {
      return hasOwn
    },
    async read(path) {
      const own = await readOwn(path)
      hasOwn ||= own !== undefined
      return own ?? readProbeFile(path)
    },
  }
}

function bytesIn(brought: DirectoryPublicationRequest['files'][string]): Buffer | undefined {
  const content = typeof brought === 'object' && 'content' in brought ? brought.content : brought
  if (typeof content === 'string') return Buffer.from(content)
  return content instanceof Uint8Array ? Buffer.from(content) : undefined
}

/**
 * From the exchange on: the files on the disk, then those that the old directory held. This reads each of the old files once, so that a
 * probe reads the files it needs before the exchange, or at a resume.
 */
export async function filesAfter(
  tree: RolledTree | null,
  settings: ReadinessSettings,
  durable: DurableCalls,
): Promise<ProbeFiles> {
  if (tree === null) return presentFiles
  const kept = new Map<string, Buffer | undefined>()
  // Found once: the search takes the directory's lock, which the exchange needs, and an abandoned try can go on beside it.
  const old = await oldTreeAt(tree, durable.fs)
  const live = versionOf(async (path) => {
    if (kept.has(path)) return kept.get(path)
    const below = await pathBelow(tree.target, path, durable)
    const isKept = below !== undefined && old !== undefined
    const content = isKept ? await readFile(`${old}/${below}`).catch(() => undefined) : undefined
    kept.set(path, content)
    return content
  })
  const { kubelet } = settings
  const paths = [settings.authority, kubelet?.authority, kubelet?.certificate, kubelet?.key, kubelet?.tokenFile]
  for (const path of paths) if (path) await live.read(path).catch(() => undefined)
  return new ProbeFiles([presentVersion, live])
}

/** As many symbolic links as the kernel follows on one way (path_resolution(7)). */
const mostLinks = 40

/** The path of a file within a directory, however both are spelled, and through links that lead into it; undefined: it lies elsewhere. */
async function pathBelow(directory: string, path: string, durable: DurableCalls): Promise<string | undefined> {
  const root = await durable.realPath(directory)
  let file = await durable.realPath(path)
  for (let links = 0; links <= mostLinks; links++) {
    if (file.startsWith(`${root}/`)) return relative(root, file)
    const text = await nodeFiles.readLink(durable.fs, file)
    if (text === undefined) return undefined
    file = await durable.realPath(resolve(dirname(file), text))
  }
  return undefined
}

/** Asks each probe before anything changes. @throws StaticPodError where one cannot be run, or its endpoint is none of this node's */
export async function tryProbes(
  probes: readonly Probe[],
  { manifests }: RolloutState,
  signal: AbortSignal,
  log: Log,
): Promise<void> {
  const pods = await Promise.all(manifests.map(({ name, next }) => parseManifest(bytesOf(next), name)))
  const answers = await askEach(probes, pods, signal)
  signal.throwIfAborted()
  const refusal = refusalOf(answers)
  if (refusal !== undefined) throw new StaticPodError(refusal)
  for (const { probe, result } of answers) {
    if (result.state === 'ready') continue
    log.info({ probe: probe.name, state: result.message }, 'before the rollout')
  }
}
