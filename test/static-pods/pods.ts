/** Pods and nodes for tests. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { scratch } from '../durable/scratch.js'

export { scratch, scratchWith, contents, modeOf } from '../durable/scratch.js'

/** A static pod, as YAML (JSON is YAML). */
export function podText(more: object = {}, spec: object = {}): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'kube-system', labels: { revision: 'REVISION' }, ...more },
    spec: { containers: [{ name: 'web', image: 'web:1' }], ...spec },
  })
}

/** A node's directories, as an operator's flags name them. */
export class NodeDisk {
  readonly root: string
  readonly resources: string
  readonly manifests: string
  readonly certificates: string
  readonly lock: string

  constructor(t: Test) {
    this.root = scratch(t)
    this.resources = join(this.root, 'static-pod-resources')
    this.manifests = join(this.root, 'manifests')
    this.certificates = join(this.resources, 'web-certs')
    this.lock = join(this.root, 'installer.lock')
  }

  revision(revision: number, pod = 'web-pod'): string {
    return join(this.resources, `${pod}-${revision}`)
  }

  manifest(pod = 'web-pod'): string {
    return join(this.manifests, `${pod}.yaml`)
  }

  /** A revision as it might have come about: its directory with a manifest. */
  makeRevision(revision: number, pod = 'web-pod'): void {
    mkdirSync(join(this.revision(revision, pod), 'secrets', 'tls'), { recursive: true })
    writeFileSync(join(this.revision(revision, pod), 'secrets', 'tls', 'tls.key'), `key ${revision}`)
    writeFileSync(
      join(this.revision(revision, pod), `${pod}.yaml`),
      podText({ labels: { revision: String(revision) } }),
    )
  }

  /** Makes a file live in the manifest directory. */
  makeManifest(text: string | Uint8Array, name = 'web-pod.yaml'): void {
    mkdirSync(this.manifests, { recursive: true })
    writeFileSync(join(this.manifests, name), text)
  }
}
