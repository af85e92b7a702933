import { messageOf } from '../errors.js'
import { isAbsent } from '../objects/kubernetes/api-error.js'
import { ConnectionError, type ApiClient, type ApiResponse } from '../objects/kubernetes/client.js'
import type { Probe, ProbeResult } from './readiness.js'
import { resultOf } from './reported-pod.js'

/** Milliseconds. */
const patience = 5_000

/**
 * What kubelet reports of the static pod: its mirror pod, `NAME-NODE`, must be of this revision (default: the manifest's) and Ready. An API server that cannot
 * be reached gives no answer: the pod may be that server. One that refuses the question says nothing.
 */
export function mirrorPodProbe(
  api: ApiClient,
  nodeName: string,
  revision: number | undefined,
  defaultNamespace: string,
): Probe {
  return {
    name: 'mirror pod',
    identifiesPod: true,
    async ask(manifest, signal): Promise<ProbeResult> {
      const namespace = manifest.namespace ?? defaultNamespace
      const name = `${manifest.name}-${nodeName}`
      const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}`
      try {
        const answer = await api.get(path, {}, { signal, timeout: patience })
        if (answer.status === 200) return resultOf(answer.body, manifest, revision?.toString() ?? manifest.revision)
        if (isAbsent(answer)) return { state: 'not-ready', message: `${namespace}/${name} does not exist` }
        return { state: 'unknown', message: refusal(answer, namespace, name) }
      } catch (error) {
        const unasked = error instanceof ConnectionError && error.reason === 'credentials'
        return { state: unasked ? 'unknown' : 'no-answer', message: messageOf(error) }
      }
    },
  }
}

function refusal({ status }: ApiResponse, namespace: string, name: string): string {
  if (status === 401) return 'HTTP 401: the API server rejects the credentials of the kubeconfig'
  if (status === 403) {
    return `HTTP 403: it needs the verb get on the resource pods in namespace ${namespace}, with resourceNames: [${name}]`
  }
  return `HTTP ${status}`
}
