/* The ways to ask whether a pod is ready. A new one: its kind in ProbeRequest, its file, its line in `openers`. */
import { execProbe } from './probe-exec.js'
import { kubeletProbe, type KubeletAccess } from './probe-kubelet.js'
import { mirrorPodProbe, type ApiWay } from './probe-mirror-pod.js'
import { urlProbe } from './probe-url.js'
import type { ProbeFiles } from './probe-files.js'
import type { Probe } from './readiness.js'

export type ProbeRequest =
  | { readonly kind: 'url'; readonly url: URL; readonly authority: string | undefined; readonly files: ProbeFiles }
  | { readonly kind: 'exec'; readonly command: string; readonly revision: number | undefined }
  | {
      readonly kind: 'kubelet'
      readonly access: KubeletAccess
      readonly files: ProbeFiles
      readonly revision: number | undefined
    }
  | {
      readonly kind: 'mirror-pod'
      readonly ways: readonly ApiWay[]
      readonly nodeName: string
      readonly revision: number | undefined
      readonly namespace: string | undefined
    }

type Openers = { readonly [Kind in ProbeRequest['kind']]: (request: Extract<ProbeRequest, { kind: Kind }>) => Probe }

const openers = {
  url: ({ url, authority, files }) => urlProbe(url, authority, files),
  exec: ({ command, revision }) => execProbe(command, revision),
  kubelet: ({ access, revision, files }) => kubeletProbe(access, revision, files),
  'mirror-pod': ({ ways, nodeName, revision, namespace }) => mirrorPodProbe(ways, nodeName, revision, namespace),
} satisfies Openers

export function openProbe(request: ProbeRequest): Probe {
  const open = openers[request.kind] as (request: ProbeRequest) => Probe
  return open(request)
}
