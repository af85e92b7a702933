/** A prune of a node's disk, with defaults. */
import { readdirSync } from 'node:fs'
import { type PruneRequest } from '../../../src/static-pods/prune/prune.js'
import type { NodeDisk } from '../pods.js'

export function requestOf(node: NodeDisk, more: Partial<PruneRequest> = {}): PruneRequest {
  return {
    pod: 'web-pod',
    resourceDirectory: node.resources,
    manifestDirectory: node.manifests,
    maxEligible: undefined,
    protectedRevisions: [],
    keep: 0,
    dryRun: false,
    lockTimeout: 0,
    ...more,
  }
}

export function visible(directory: string): string[] {
  return readdirSync(directory)
    .filter((name) => !name.startsWith('.'))
    .sort()
}
