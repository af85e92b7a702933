/* The demands of this node's kubelet on a manifest. */
import { randomUUID } from 'node:crypto'
import { messageOf } from '../errors.js'
import type { Log } from '../log.js'
import type { ApiReader } from '../kubernetes/reads/api-reader.js'
import { nodeTarget } from '../kubernetes/reads/requests.js'
import { asMap, asText } from './json.js'

/** As often as library-go asks. */
const tries = 4

/** The node's kubelet, `v1.35.4`; undefined, with a warning, where the API server does not tell. */
export async function kubeletVersion(
  reader: ApiReader,
  nodeName: string,
  log: Log,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const node = await reader.get(nodeTarget(nodeName), signal, tries)
    const version = asText(asMap(asMap(node?.status)?.nodeInfo)?.kubeletVersion)
    if (version !== undefined) return version
    log.warn({ node: nodeName }, 'the node does not report its kubelet version; holdfast assumes a current one')
  } catch (error) {
    signal.throwIfAborted()
    log.warn(
      { node: nodeName, error: messageOf(error) },
      "could not read the node's kubelet version; holdfast assumes a current one",
    )
  }
  return undefined
}

/**
 * Whether this kubelet needs a new metadata.uid for each installation, to tell a changed static pod from the old one:
 * those before 1.23.0 do; later ones make it from the content themselves, and an unknown version counts as a later one.
 * Pre-releases of 1.23.0 come before it (semver.org, 11).
 */
export function needsOwnUid(kubeletVersion: string | undefined): boolean {
  const [, major, minor, patch, rest = ''] = /^v?(\d+)\.(\d+)\.(\d+)([-+].*)?$/.exec(kubeletVersion ?? '') ?? []
  if (major === undefined || minor === undefined) return false
  if (Number(major) !== 1) return Number(major) < 1
  if (Number(minor) !== 23) return Number(minor) < 23
  return patch === '0' && rest.startsWith('-')
}

/** 35 of `v1.35.4`. */
export function minorOf(kubeletVersion: string | undefined): number | undefined {
  const [, minor] = /^v?1\.(\d+)\./.exec(kubeletVersion ?? '') ?? []
  return minor === undefined ? undefined : Number(minor)
}

export function newUid(): string {
  return randomUUID()
}
