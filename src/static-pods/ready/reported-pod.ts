import { escaped } from '../../message-text.js'
import { asList, asMap, asText, type JsonMap } from '../json.js'
import type { Manifest } from '../pod/manifest.js'
import { rolloutAnnotation } from '../names.js'
import type { ProbeResult } from './readiness.js'

/** Judges a pod that kubelet or the API server reports by the manifest: it must be of this version, and Ready. */
export function podResult(pod: unknown, manifest: Manifest): ProbeResult {
  const metadata = asMap(asMap(pod)?.metadata)
  const label = asText(asMap(metadata?.labels)?.revision)
  const { revision } = manifest
  if (revision !== undefined && label !== revision)
    return { state: 'not-ready', message: `it is still of revision ${label ?? 'unknown'}` }
  // Where a rollout was taken back, the pod that goes has a mark, and the one that comes may have none.
  const rollout = asText(manifest.annotations[rolloutAnnotation])
  if (asText(asMap(metadata?.annotations)?.[rolloutAnnotation]) !== rollout)
    return { state: 'not-ready', message: 'it is still the old pod' }
  const containers = containersOf(pod)
  const ready = asList(asMap(asMap(pod)?.status)?.conditions)
    .map(asMap)
    .find((condition) => condition?.type === 'Ready')
  if (ready?.status === 'True') {
    const restarts = containers.reduce((sum, { restarts }) => sum + restarts, 0)
    return { state: 'ready', restarts, lived: Math.max(0, ...containers.map(lastLife)) }
  }
  const why = ready ? [asText(ready.reason) ?? 'no reason', ...containers.flatMap(trouble)] : []
  return { state: 'not-ready', message: `not Ready${why.length > 0 ? ` (${why.join('; ')})` : ''}` }
}

interface ReportedContainer {
  readonly name: string
  readonly isReady: boolean
  readonly restarts: number
  readonly waiting: JsonMap | undefined
  /** Its last end. */
  readonly ended: JsonMap | undefined
}

function containersOf(pod: unknown): ReportedContainer[] {
  const status = asMap(asMap(pod)?.status)
  return [...asList(status?.initContainerStatuses), ...asList(status?.containerStatuses)].map((item) => {
    const container = asMap(item)
    const [state, last] = [asMap(container?.state), asMap(container?.lastState)]
    return {
      name: asText(container?.name) ?? '',
      isReady: container?.ready === true,
      restarts: Number(container?.restartCount ?? 0),
      waiting: asMap(state?.waiting),
      ended: asMap(state?.terminated) ?? asMap(last?.terminated),
    }
  })
}

/** Milliseconds from its last start to its last end; 0 where it has had no end. */
function lastLife({ ended }: ReportedContainer): number {
  const [from, to] = [ended?.startedAt, ended?.finishedAt].map((time) => Date.parse(asText(time) ?? ''))
  return from !== undefined && to !== undefined && to > from ? to - from : 0
}

/** Characters of what the node says of an image, or of a container's start. */
const longest = 300

/** Why it is not ready, as far as the node tells. */
function trouble({ name, isReady, restarts, waiting, ended }: ReportedContainer): string[] {
  if (isReady) return []
  const said = [waiting?.reason, waiting?.message].flatMap((text) => asText(text) ?? [])
  const code = ended && Number(ended.exitCode)
  const end = code === undefined || (code === 0 && !waiting) ? [] : [`ended with exit code ${code}${because(ended)}`]
  const again = restarts > 0 ? [startedAgain(restarts)] : []
  const all = [...(said.length > 0 ? [said.join(': ').slice(0, longest)] : []), ...end, ...again]
  return all.length === 0 ? [] : [`container ${name}: ${escaped(all.join(', '))}`]
}

export function startedAgain(restarts: number): string {
  return `started again ${restarts === 1 ? 'once' : `${restarts} times`}`
}

function because(ended: JsonMap | undefined): string {
  const reason = asText(ended?.reason)
  return reason === undefined || reason === 'Error' ? '' : ` (${reason})`
}

/** The container whose log says why the pod is not ready, and whether its last life's log does. */
export function troubled(pod: unknown): { readonly name: string; readonly previous: boolean } | undefined {
  const found = containersOf(pod).find((container) => !container.isReady && container.ended?.exitCode !== 0)
  // A container that waits for its next start has ended; one that runs again has a log of its own.
  return found && { name: found.name, previous: found.ended !== undefined && !found.waiting && found.restarts > 0 }
}
