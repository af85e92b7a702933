import { asList, asMap, asText } from '../json.js'
import type { Manifest } from '../pod/manifest.js'
import { rolloutAnnotation } from '../names.js'
import type { ProbeResult } from './readiness.js'

/** Judges a pod that kubelet or the API server reports by the manifest: it must be of this version, and Ready. */
export function resultOf(pod: unknown, manifest: Manifest): ProbeResult {
  const metadata = asMap(asMap(pod)?.metadata)
  const label = asText(asMap(metadata?.labels)?.revision)
  const { revision } = manifest
  if (revision !== undefined && label !== revision)
    return { state: 'not-ready', message: `it is still of revision ${label ?? 'unknown'}` }
  const rollout = asText(manifest.annotations[rolloutAnnotation])
  if (rollout !== undefined && asText(asMap(metadata?.annotations)?.[rolloutAnnotation]) !== rollout)
    return { state: 'not-ready', message: 'it is still the old pod' }
  const ready = asList(asMap(asMap(pod)?.status)?.conditions)
    .map(asMap)
    .find((condition) => condition?.type === 'Ready')
  if (ready?.status === 'True') return { state: 'ready' }
  return { state: 'not-ready', message: `not Ready${ready ? ` (${asText(ready.reason) ?? 'no reason'})` : ''}` }
}
