import type { KubeletAccess } from './probe-kubelet.js'

/** The milliseconds of a watch without an end: as a file can keep them. */
export const noLimit = Number.MAX_SAFE_INTEGER

/** The readiness probes as a file keeps them: the run that finishes a rollout after a crash has no flags. Paths are absolute. */
export interface ReadinessSettings {
  readonly urls: readonly string[]
  /** Milliseconds for which the pod must answer; absent where no flag says so. */
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
