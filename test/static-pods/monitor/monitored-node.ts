/** A node on which a revision was just installed, as its monitor finds it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test } from 'tap'
import { NodeDisk, podText } from '../pods.js'

/** A node on which revision 7 was just installed, after the older ones given. */
export function installed(t: Test, older: readonly number[] = [5, 6]): NodeDisk {
  const node = new NodeDisk(t)
  for (const revision of [...older, 7]) node.makeRevision(revision)
  node.makeManifest(podText({ labels: { revision: '7' } }))
  node.makeManifest(podText({ name: 'monitor' }), 'web-startup-monitor-pod.yaml')
  return node
}

export const link = (node: NodeDisk): string => join(node.resources, 'web-last-known-good')

export const live = (node: NodeDisk) =>
  JSON.parse(readFileSync(node.manifest(), 'utf8')) as {
    metadata: { uid?: string; labels: { revision: string }; annotations?: Record<string, string> }
  }
