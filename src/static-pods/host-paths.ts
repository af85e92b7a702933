import { stat } from 'node:fs/promises'
import { asList, asMap, asText, type JsonMap } from './json.js'

export interface HostPathFault {
  readonly field: string
  readonly path: string
  readonly problem: string
}

/** What kubelet makes itself where it is missing (pkg/volume/hostpath/host_path.go). */
const made = new Set(['DirectoryOrCreate', 'FileOrCreate'])

/**
 * hostPath volumes that lead to nothing, or to something else than their type says, on this node as it is seen from here.
 * `planned`: paths that the installation itself is about to make, with all that is below them.
 */
export async function hostPathFaults(pod: JsonMap, planned: readonly string[]): Promise<HostPathFault[]> {
  const faults: HostPathFault[] = []
  for (const [index, volume] of asList(asMap(pod.spec)?.volumes).entries()) {
    const hostPath = asMap(asMap(volume)?.hostPath)
    const path = asText(hostPath?.path)
    const type = asText(hostPath?.type) ?? ''
    if (path === undefined || made.has(type)) continue
    const field = `spec.volumes[${index}].hostPath.path`
    const plain = path.replace(/\/+$/, '')
    if (planned.some((known) => plain === known || `${known}/`.startsWith(`${plain}/`))) continue
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
