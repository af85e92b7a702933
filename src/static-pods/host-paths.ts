/*
 * hostPath volumes: where each leads. A container mounts what the kernel finds at the path, and keeps it: so paths are compared by where the
 * kernel goes, and never by their texts.
 */
import { stat } from 'node:fs/promises'
import { basename, dirname, join, normalize } from 'node:path'
import { endsWithin } from '../deadline.js'
import { system, nodeFiles } from '../durable/index.js'
import type { FileSystem } from '../durable/file-system.js'
import { asList, asMap, asText, type JsonMap } from './json.js'

export interface HostPathFault {
  readonly field: string
  readonly path: string
  readonly problem: string
}

interface HostPathVolume {
  readonly field: string
  /** As it is written. */
  readonly path: string
  readonly type: string
  /** The paths of it that containers mount: itself, or parts of it (`subPath`). */
  readonly mounted: readonly string[]
}

/** The hostPath volumes of a pod. */
export function hostPathVolumes(pod: JsonMap): HostPathVolume[] {
  const spec = asMap(pod.spec)
  const containers = ['initContainers', 'containers', 'ephemeralContainers'].flatMap((field) => asList(spec?.[field]))
  const mounts = containers.flatMap((container) => asList(asMap(container)?.volumeMounts)).map(asMap)
  return asList(spec?.volumes).flatMap((volume, index) => {
    const hostPath = asMap(asMap(volume)?.hostPath)
    const path = asText(hostPath?.path)
    if (path === undefined) return []
    const own = mounts.filter((mount) => mount?.name === asMap(volume)?.name)
    const parts = own.flatMap((mount) => asText(mount?.subPath) ?? []).map((part) => `${path}/${part}`)
    const field = `spec.volumes[${index}].hostPath.path`
    return [{ field, path, type: asText(hostPath?.type) ?? '', mounted: [path, ...parts] }]
  })
}

/** Milliseconds for the way to one path: it can lead over a network file system that hangs. */
const patience = 5_000

/** Ways that are being looked for still: none is begun twice, since each keeps a thread for as long as a file system hangs. */
const ways = new Map<string, Promise<string[]>>()

/**
 * All names of a path, by the kernel's way; see `namesOf`.
 * @throws Error that names the path, where the way cannot be known
 */
export async function namesByKernel(fs: FileSystem, path: string): Promise<string[]> {
  const way = ways.get(path) ?? nodeFiles.namesOf(fs, path).finally(() => ways.delete(path))
  ways.set(path, way)
  if (!(await endsWithin(way, patience))) throw new Error(`${path} does not answer within ${patience / 1000} s`)
  return way.catch((error: unknown) => {
    throw new Error(`where ${path} leads cannot be known: ${String(error)}`, { cause: error })
  })
}

/** A target by its text, and without symbolic links above it. Its last part is the target, even where that is a link. */
export async function namesOfTarget(fs: FileSystem, target: string): Promise<string[]> {
  const parent = (await namesByKernel(fs, dirname(target))).at(-1) ?? '/'
  return [...new Set([target, join(parent, basename(target))])]
}

/** The same name, by its text alone. */
export function plainName(path: string): string {
  return normalize(`/${path}`).replace(/(?<=.)\/+$/, '')
}

/** Types that kubelet creates where they are missing (pkg/volume/hostpath/host_path.go). */
const made = new Set(['DirectoryOrCreate', 'FileOrCreate'])

/**
 * hostPath volumes that lead to nothing, or to something else than their type says, on this node as it is seen from here.
 * `planned`: paths without symbolic links that the installation itself is about to make, with all that is below them.
 */
export async function hostPathFaults(pod: JsonMap, planned: readonly string[]): Promise<HostPathFault[]> {
  const faults: HostPathFault[] = []
  for (const { field, path, type } of hostPathVolumes(pod)) {
    if (made.has(type)) continue
    const names = await namesByKernel(system, path).catch(() => [plainName(path)])
    const isPlanned = (name: string): boolean => planned.some((known) => `${known}/`.startsWith(`${name}/`))
    if (names.some(isPlanned)) continue
    const found = await stat(path).catch(() => undefined)
    if (found === undefined) faults.push({ field, path, problem: 'does not exist' })
    else if (type === 'Directory' && !found.isDirectory()) faults.push({ field, path, problem: 'is no directory' })
    else if (type === 'File' && !found.isFile()) faults.push({ field, path, problem: 'is no file' })
    else if (type === 'Socket' && !found.isSocket()) faults.push({ field, path, problem: 'is no socket' })
    else if (type === 'CharDevice' && !found.isCharacterDevice())
      faults.push({ field, path, problem: 'is no character device' })
    else if (type === 'BlockDevice' && !found.isBlockDevice())
      faults.push({ field, path, problem: 'is no block device' })
  }
  return faults
}
