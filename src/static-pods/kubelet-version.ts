import type { Log } from '../log.js'
import type { Cluster } from './cluster.js'
import { messageOf } from './failure.js'
import { asMap, asText } from './json.js'

/** As often as library-go asks. */
const tries = 4

/** The node's kubelet, `v1.35.4`; undefined, with a warning, where nobody says. */
export async function kubeletVersion(
  cluster: Cluster,
  nodeName: string,
  log: Log,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const path = `/api/v1/nodes/${encodeURIComponent(nodeName)}`
    const node = await cluster.get(`node ${nodeName}`, path, {}, signal, tries)
    const version = asText(asMap(asMap(asMap(node)?.status)?.nodeInfo)?.kubeletVersion)
    if (version !== undefined) return version
    log.warn({ node: nodeName }, "the node's kubelet version is not known; a current one is assumed")
  } catch (error) {
    signal.throwIfAborted()
    log.warn(
      { node: nodeName, error: messageOf(error) },
      "the node's kubelet version cannot be read; a current one is assumed",
    )
  }
  return undefined
}
