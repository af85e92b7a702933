import { codeOf, messageOf } from '../../errors.js'
import { isAbsent, noCredentialAdvice } from '../../kubernetes/reads/api-error.js'
import { ConnectionError, type ApiClient, type ApiResponse } from '../../kubernetes/connection/client.js'
import { KubeconfigError } from '../../kubernetes/credentials/kubeconfig-file.js'
import type { Manifest } from '../pod/manifest.js'
import { serverFault } from './probe-files.js'
import { patience } from './probe-http.js'
import type { Probe, ProbeResult } from './readiness.js'
import { podResult } from './reported-pod.js'

/** A client with one version of the kubeconfig. */
export interface ApiWay {
  readonly api: ApiClient
  /** The namespace that the kubeconfig names now. @throws where it cannot be used */
  namespace(): Promise<string | undefined>
}

const noCredential = {
  401: 'name with --kubeconfig one whose credentials the API server accepts',
  403: 'grant it; holdfast rbac monitor prints the Role',
} as const

const noServer = {
  authority: "name in the kubeconfig the authority that signed the API server's certificate",
  name: 'name in the kubeconfig the server as its certificate names it, or its tls-server-name',
  host: "name in the kubeconfig the server by a name that the node's resolver knows",
} as const

const noKubeconfig = 'name with --kubeconfig one of an API server, and mend what it names'

interface ProbeAttempt {
  readonly result: ProbeResult
  /** Other credentials may fare better. */
  readonly isRefused: boolean
}

/**
 * kubelet reports the static pod as its mirror pod, `NAME-NODE`, which must be of the manifest's revision and Ready. An
 * unreachable API server gives no answer: the pod may be that server. Where a server refuses the question, the next way is tried. `namespace`: where the manifest names none; undefined: the kubeconfig's.
 */
export function mirrorPodProbe(ways: readonly ApiWay[], nodeName: string, namespace: string | undefined): Probe {
  return {
    name: 'mirror pod',
    identifiesPod: true,
    async ask(manifest, signal): Promise<ProbeResult> {
      let first: ProbeResult | undefined
      for (const way of ways) {
        const place = { nodeName, namespace: manifest.namespace ?? namespace }
        const { result, isRefused } = await askBy(way, manifest, place, signal)
        if (result.state === 'ready' || result.state === 'not-ready') return result
        first ??= result
        if (!isRefused) break
      }
      return first ?? { state: 'cannot-ask', message: 'no kubeconfig', advice: noKubeconfig }
    },
  }
}

async function askBy(
  way: ApiWay,
  manifest: Manifest,
  place: { readonly nodeName: string; readonly namespace: string | undefined },
  signal: AbortSignal,
): Promise<ProbeAttempt> {
  try {
    const namespace = place.namespace ?? (await way.namespace()) ?? 'default'
    const name = `${manifest.name}-${place.nodeName}`
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}`
    const answer = await way.api.get(path, {}, { signal, timeout: patience })
    if (answer.status === 200) {
      return { result: podResult(answer.body, manifest), isRefused: false }
    }
    if (isAbsent(answer, name)) {
      return { result: { state: 'not-ready', message: `${namespace}/${name} does not exist` }, isRefused: false }
    }
    const { status } = answer
    const message = apiRefusal(answer, namespace, name)
    if (status === 429 || status >= 500) return { result: { state: 'server-error', message }, isRefused: false }
    const isRefused = status === 401 || status === 403
    const refusedAdvice = isRefused ? noCredential[status] : noKubeconfig
    const advice = isRefused && answer.anonymous ? noCredentialAdvice : refusedAdvice
    return { result: { state: 'cannot-ask', message, advice }, isRefused }
  } catch (error) {
    return failed(error)
  }
}

function failed(error: unknown): ProbeAttempt {
  const cause = error instanceof ConnectionError ? error.cause : error
  const message = messageOf(error)
  const isLost = !(error instanceof ConnectionError) || error.reason === 'credentials'
  if (isLost || cause instanceof KubeconfigError) {
    return { result: { state: 'cannot-ask', message, advice: noKubeconfig }, isRefused: false }
  }
  const fault = serverFault(error)
  const result: ProbeResult = fault
    ? { state: fault === 'host' ? 'no-host' : 'cannot-ask', message, advice: noServer[fault] }
    : { state: 'no-answer', message }
  // A server that wants another client certificate may close the connection.
  return { result, isRefused: error.reason !== 'timeout' && codeOf(cause) !== 'ECONNREFUSED' }
}

function apiRefusal({ status, anonymous }: ApiResponse, namespace: string, name: string): string {
  if (anonymous && (status === 401 || status === 403)) return `HTTP ${status}: no credential was sent`
  if (status === 401) return 'HTTP 401: the API server rejects the credentials of the kubeconfig'
  if (status === 403) {
    return `HTTP 403: it needs the verb get on the resource pods in namespace ${namespace}, with resourceNames: [${name}]`
  }
  return `HTTP ${status}`
}
