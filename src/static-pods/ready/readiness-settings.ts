import type { KubeletAccess } from './probe-kubelet.js'

/** The readiness probes as a file keeps them: the run that finishes a rollout after a crash has no flags. Paths are absolute. */
export interface ReadinessSettings {
  readonly urls: readonly string[]
  /** Milliseconds for which the pod must answer; absent where an earlier version of holdfast wrote the file. */
  readonly readyFor?: number
  /** PEM, for the URLs. */
  readonly authority: string | null
  readonly commands: readonly string[]
  readonly kubelet: KubeletAccess | null
  readonly mirrorPod: {
    readonly kubeconfig: string
    readonly context: string | null
    readonly namespace: string | null
    readonly nodeName: string
  } | null
}
