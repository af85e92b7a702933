/**
 * What the commands of library-go and of holdfast are both run on: objects of the API, a node's disk, flags. ROOT, NAMESPACE and
 * NODE stand for the case's own.
 */
import { podText } from '../static-pods/pods.js'

export interface Case {
  readonly command: 'installer' | 'prune' | 'startup-monitor' | 'cert-syncer'
  /** Name, and content as base64. */
  readonly secrets?: Record<string, Record<string, string>>
  readonly configMaps?: Record<string, { data?: Record<string, string>; binaryData?: Record<string, string> }>
  /** Below ROOT: a file's content, or where a link leads. A path that ends with a slash is a directory. */
  readonly before?: Record<string, string | { target: string }>
  readonly flags: readonly string[]
  /** For library-go alone: whether the pod is ready, and the files of a cert-syncer. */
  readonly compiledIn?: Record<string, string>
  /** For holdfast alone. */
  readonly more?: readonly string[]
  readonly umask?: number
  /** Of the kubelet on the node. */
  readonly kubelet?: string
  /** Revisions of this node in the operator's status, and the pod on the API server that is of the target revision. */
  readonly rollout?: { readonly current: number; readonly target: number }
}

export const base64 = (text: string | Uint8Array): string => Buffer.from(text).toString('base64')
export const pod = (revision: number | string = 'REVISION', more: object = {}, spec: object = {}): string =>
  podText({ namespace: 'NAMESPACE', labels: { revision: String(revision) }, ...more }, spec)
/** A revision on the disk, as an installer left it. */
export const revision = (number: number): NonNullable<Case['before']> => ({
  [`resources/web-pod-${number}/web-pod.yaml`]: pod(number),
})
export const live = (number: number): NonNullable<Case['before']> => ({
  [`resources/web-pod-${number}/web-pod.yaml`]: pod(number),
  'manifests/web-pod.yaml': pod(number),
})
