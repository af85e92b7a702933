import { realpath } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { codeOf, messageOf } from '../errors.js'
import { type FileSystem, NodeFileSystem } from '../durable/index.js'
import { asList, asMap, asText } from './json.js'
import { parseManifest } from './manifest.js'
import { listManifests, readNodeFile } from './node-files.js'

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
 * Which static pods of a manifest directory mount these paths. A volume that holds a path from above does not count: it shows
 * what is published next as well. `paths`: each with the other names that it has, such as the one without symbolic links. `namesOf`: the
 * other names of a volume's path.
 */
export async function hostPathUsers(
  fs: FileSystem,
  manifestDirectory: string,
  paths: readonly (readonly string[])[],
  namesOf: (hostPath: string) => Promise<readonly string[]> = () => Promise.resolve([]),
): Promise<HostPathUsers> {
  const users: HostPathUser[][] = paths.map(() => [])
  const unreadable: { manifest: string; problem: string }[] = []
  for (const manifest of await manifests(fs, manifestDirectory, unreadable)) {
    try {
      const bytes = await readNodeFile(fs, manifest, { follow: true })
      if (bytes === undefined) continue
      const { pod, name } = await parseManifest(bytes, manifest)
      for (const volume of asList(asMap(pod.spec)?.volumes)) {
        const hostPath = asText(asMap(asMap(volume)?.hostPath)?.path)?.replace(/(?<=.)\/+$/, '')
        if (hostPath === undefined) continue
        const mounted = [hostPath, ...(await namesOf(hostPath))]
        for (const [index, names] of paths.entries()) {
          const holds = names.some((path) => mounted.some((one) => `${one}/`.startsWith(`${path}/`)))
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
 * Which static pod mounts a path by itself, or may do so, in a few words; undefined: none. Without a manifest directory, kubelet's usual one
 * is looked at, where it is there.
 */
export async function describeHostPathUser(
  path: string,
  manifestDirectory = usualManifestDirectory,
): Promise<string | undefined> {
  const name = basename(path)
  const names = [path, await withRealParent(dirname(path), [name])]
  // The way to a volume is looked at where it may lead to this path: other disks may hang.
  const namesOf = (hostPath: string): Promise<string[]> => {
    const parts = hostPath.split('/')
    const found = [...parts.keys()].filter((at) => parts[at] === name)
    return Promise.all(found.map((at) => withRealParent(parts.slice(0, at).join('/'), parts.slice(at))))
  }
  const { users, unreadable } = await hostPathUsers(new NodeFileSystem(), manifestDirectory, [names], namesOf)
  const [user] = users[0] ?? []
  if (user) return `the static pod ${user.pod} mounts it (${user.manifest})`
  const [unknown] = unreadable
  if (unknown === undefined || unknown.problem === 'ENOENT') return undefined
  return `${unknown.manifest} cannot be read as a pod: ${unknown.problem}`
}

/** The last parts may have left their place. */
async function withRealParent(parent: string, last: readonly string[]): Promise<string> {
  return join(await realpath(parent === '' ? '/' : parent).catch(() => parent), ...last)
}
