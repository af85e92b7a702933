import { isAbsent } from '../objects/kubernetes/absence.js'
import type { ApiClient } from '../objects/kubernetes/client.js'
import { messageOf } from './failure.js'
import { asList, asMap, asText } from './json.js'
import type { Probe, Verdict } from './readiness.js'

/** Milliseconds. */
const patience = 5_000

/**
 * What kubelet reports of the static pod: its mirror pod, `NAME-NODE`, must be of this revision and Ready. Where the API
 * server does not answer, or does not allow the question, that says nothing: the pod may be the API server itself.
 */
export function mirrorPodProbe(api: ApiClient, nodeName: string, revision: number, defaultNamespace: string): Probe {
  return {
    name: 'mirror pod',
    async ask(manifest, signal): Promise<Verdict> {
      const namespace = manifest.namespace ?? defaultNamespace
      const name = `${manifest.name}-${nodeName}`
      const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}`
      try {
        const answer = await api.get(path, {}, { signal, timeout: patience })
        const { status, body } = answer
        if (isAbsent(answer)) return { ready: false, message: `${namespace}/${name} does not exist` }
        if (status !== 200) return { ready: false, unknown: true, message: `HTTP ${status}` }
        return verdictOf(body, revision)
      } catch (error) {
        return { ready: false, unknown: true, message: messageOf(error) }
      }
    },
  }
}

function verdictOf(pod: unknown, revision: number): Verdict {
  const label = asText(asMap(asMap(asMap(pod)?.metadata)?.labels)?.revision)
  if (label !== String(revision)) return { ready: false, message: `it is of revision ${label ?? 'unknown'} still` }
  const ready = asList(asMap(asMap(pod)?.status)?.conditions)
    .map(asMap)
    .find((condition) => condition?.type === 'Ready')
  if (ready?.status === 'True') return { ready: true }
  return { ready: false, message: `not Ready${ready ? ` (${asText(ready.reason) ?? 'no reason'})` : ''}` }
}
