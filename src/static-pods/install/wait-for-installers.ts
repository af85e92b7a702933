/*
 * Operators make one installer pod for each revision and node, and may make the next before the last has ended. An installer
 * waits for those of other revisions on its node to end, and gives way to one of a newer revision.
 */
import { sleep } from '../../deadline.js'
import type { Log } from '../../log.js'
import type { ApiReader } from '../../kubernetes/reads/api-reader.js'
import { podTarget } from '../../kubernetes/reads/requests.js'
import { StaticPodError, Superseded } from '../failure.js'
import { asList, asMap, asText, type JsonMap } from '../json.js'
import { parseRevision } from '../names.js'

/** Milliseconds; library-go's own numbers. */
export interface WaitTiming {
  readonly poll: number
  readonly limit: number
  /** After all others have ended: time for a newer installer to appear. */
  readonly pause: number
}

export const waitTiming: WaitTiming = { poll: 10_000, limit: 60_000, pause: 30_000 }

export interface WaitRequest {
  readonly namespace: string
  readonly revision: number
  readonly nodeName: string
  /** This installer's own pod. */
  readonly podName: string
  readonly timing: WaitTiming
}

interface InstallerPod {
  readonly name: string
  readonly revision: number
  readonly running: boolean
  readonly object: JsonMap
}

/**
 * Returns when this is the only installer at work on the node, with this one's own pod.
 * @throws Superseded when there is a newer one
 * @throws StaticPodError when others do not end within the limit, or there is no installer pod at all
 */
export async function waitForInstallers(
  reader: ApiReader,
  request: WaitRequest,
  log: Log,
  signal: AbortSignal,
): Promise<JsonMap | undefined> {
  const { timing, podName } = request
  const deadline = performance.now() + timing.limit
  for (;;) {
    const pods = await installers(reader, request, signal)
    refuseNewerRevision(pods, request)
    // A retry of the same revision does the same: the locks keep the two apart.
    const others = pods.filter((pod) => pod.running && pod.name !== podName && pod.revision !== request.revision)
    if (others.length === 0) break
    if (performance.now() >= deadline) {
      const names = others.map(({ name }) => name).join(', ')
      throw new StaticPodError(`other installers on this node did not end in time: ${names}`)
    }
    log.info({ waitingFor: others.map(({ name }) => name) }, 'waiting for other installers on this node to end')
    await sleep(Math.min(timing.poll, Math.max(0, deadline - performance.now())), { signal })
  }
  await sleep(timing.pause, { signal })
  const pods = await installers(reader, request, signal)
  refuseNewerRevision(pods, request)
  return pods.find(({ name }) => name === podName)?.object
}

async function installers(
  reader: ApiReader,
  { namespace, nodeName }: WaitRequest,
  signal: AbortSignal,
): Promise<InstallerPod[]> {
  const query = { labelSelector: 'app=installer', fieldSelector: `spec.nodeName=${nodeName}` }
  const items = await reader.list(podTarget(namespace), query, signal)
  const pods = items.flatMap((item) => installerOf(asMap(item) ?? {}, nodeName))
  if (pods.length === 0) {
    throw new StaticPodError(
      `no installer pod (label app=installer) is on node ${nodeName} in namespace ${namespace}, ` +
        `but POD_NAME says that this is one; unset POD_NAME if it is not`,
    )
  }
  return pods
}

/** `installer-REVISION[-retry-N]-NODE`. */
function installerOf(object: JsonMap, nodeName: string): InstallerPod[] {
  const name = asText(asMap(object.metadata)?.name) ?? ''
  if (!name.startsWith('installer-') || asMap(object.spec)?.nodeName !== nodeName) return []
  const revision = parseRevision(name.split('-')[1] ?? '')
  if (revision === undefined) return []
  const statuses = asList(asMap(object.status)?.containerStatuses)
  const ended =
    statuses.length > 0 && statuses.every((one) => asMap(asMap(asMap(one)?.state)?.terminated) !== undefined)
  return [{ name, revision, running: !ended, object }]
}

function refuseNewerRevision(pods: readonly InstallerPod[], { revision }: WaitRequest): void {
  const newer = pods.find((pod) => pod.revision > revision)
  if (newer === undefined) return
  throw new Superseded(
    `${newer.name} installs revision ${newer.revision}: revision ${revision} gives way to it; holdfast wrote nothing`,
  )
}
