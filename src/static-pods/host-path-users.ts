import { codeOf, messageOf } from '../errors.js'
import { system } from '../durable/index.js'
import type { FileSystem } from '../durable/file-system.js'
import { hostPathVolumes, namesByKernel, namesOfTarget, plainName } from './host-paths.js'
import { parseManifest } from './pod/manifest.js'
import { listManifests, readListed } from './node-files.js'

/** kubelet's staticPodPath, as kubeadm and OpenShift configure it. */
export const usualManifestDirectory = '/etc/kubernetes/manifests'

/** A manifest with a hostPath volume of a path, or of something below it. */
export interface HostPathUser {
  /** The manifest's. */
  readonly manifest: string
  readonly pod: string
  readonly hostPath: string
}

export interface HostPathUsers {
  /** For each path, in order. */
  readonly users: readonly (readonly HostPathUser[])[]
  /** Manifests that cannot be read as a pod, and why: they may name any path. */
  readonly unreadable: readonly { readonly manifest: string; readonly problem: string }[]
}

/**
 * Which static pods of a manifest directory mount these paths, under any name. A volume that holds a path from above does not count: it
 * shows the next publication as well. `look`: holdfast may follow the way to a path on the disk; else it compares the text alone.
 * @throws Error where the way to one of `paths` cannot be known
 */
export async function hostPathUsers(
  fs: FileSystem,
  manifestDirectory: string,
  paths: readonly string[],
  look = true,
): Promise<HostPathUsers> {
  const users: HostPathUser[][] = paths.map(() => [])
  const unreadable: { manifest: string; problem: string }[] = []
  const targets = await Promise.all(paths.map(async (path) => (look ? await namesOfTarget(fs, path) : [path])))
  for (const manifest of await manifests(fs, manifestDirectory, unreadable)) {
    try {
      const bytes = await readListed(fs, manifest)
      if (bytes === undefined) continue
      const { pod, name } = await parseManifest(bytes, manifest)
      for (const { path: hostPath, mounted } of hostPathVolumes(pod)) {
        const ways = mounted.map(async (path) => (look ? await namesByKernel(fs, path) : [plainName(path)]))
        const known = (await Promise.all(ways)).flat()
        for (const [index, names] of targets.entries()) {
          const holds = names.some((path) => known.some((one) => `${one}/`.startsWith(`${path}/`)))
          if (holds) users[index]?.push({ manifest, pod: name, hostPath })
        }
      }
    } catch (error) {
      unreadable.push({ manifest, problem: messageOf(error) })
    }
  }
  return { users, unreadable }
}

async function manifests(
  fs: FileSystem,
  directory: string,
  unreadable: { manifest: string; problem: string }[],
): Promise<string[]> {
  try {
    return await listManifests(fs, directory)
  } catch (error) {
    unreadable.push({ manifest: directory, problem: codeOf(error) ?? messageOf(error) })
    return []
  }
}

/**
 * Which static pod mounts a path by itself, or may do so, in a few words; undefined: none. Without a manifest directory, holdfast reads
 * kubelet's usual one, where it exists.
 */
export async function describeHostPathUser(
  path: string,
  manifestDirectory = usualManifestDirectory,
): Promise<string | undefined> {
  const found = await hostPathUsers(system, manifestDirectory, [path]).catch(messageOf)
  if (typeof found === 'string') return `a static pod may mount it: ${found}`
  const { users, unreadable } = found
  const [user] = users[0] ?? []
  if (user) return `the static pod ${user.pod} mounts it (${user.manifest})`
  const [unknown] = unreadable
  if (unknown === undefined || unknown.problem === 'ENOENT') return undefined
  return `${unknown.manifest} cannot be read as a pod: ${unknown.problem}`
}
