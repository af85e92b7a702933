/* The ways to ask whether a pod is ready. A new one: its kind in ProbeRequest, its file, its line in `openers`. */
import type { ApiClient } from '../objects/kubernetes/client.js'
import { execProbe } from './probe-exec.js'
import { kubeletProbe, type KubeletAccess } from './probe-kubelet.js'
import { mirrorPodProbe } from './probe-mirror-pod.js'
import { urlProbe } from './probe-url.js'
import type { Probe } from './readiness.js'

export type ProbeRequest =
  | { readonly kind: 'url'; readonly url: URL; readonly authority: string | undefined }
  | { readonly kind: 'exec'; readonly command: string; readonly revision: number | undefined }
  | { readonly kind: 'kubelet'; readonly access: KubeletAccess; readonly revision: number | undefined }
  | {
      readonly kind: 'mirror-pod'
      readonly api: ApiClient
      readonly nodeName: string
      readonly revision: number | undefined
      readonly namespace: string
    }

type Openers = { readonly [Kind in ProbeRequest['kind']]: (request: Extract<ProbeRequest, { kind: Kind }>) => Probe }

const openers = {
  url: ({ url, authority }) => urlProbe(url, authority),
  exec: ({ command, revision }) => execProbe(command, revision),
  kubelet: ({ access, revision }) => kubeletProbe(access, revision),
  'mirror-pod': ({ api, nodeName, revision, namespace }) => mirrorPodProbe(api, nodeName, revision, namespace),
} satisfies Openers

export function openProbe(request: ProbeRequest): Probe {
  const open = openers[request.kind] as (request: ProbeRequest) => Probe
  return open(request)
}
