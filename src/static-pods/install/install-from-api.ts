/*
 * One revision from the API, as an operator's installer pod does it: wait for the others, read everything, write, tell. The deadline
 * covers all of it; at the deadline, and on SIGTERM, holdfast gives up before a manifest changes, or finishes.
 */
import { messageOf } from '../../errors.js'
import { Deadline } from '../../deadline.js'
import type { Log } from '../../log.js'
import { ApiReader, type ReadTiming } from '../../kubernetes/reads/api-reader.js'
import type { ApiClient } from '../../kubernetes/connection/client.js'
import type { DurableCalls } from '../../durable/index.js'
import { late, Superseded } from '../failure.js'
import { dryRun, install } from './install.js'
import type { InstallRequest, InstallResult, InstallSettings } from './install-plan.js'
import { type JsonMap, asList, asMap, asText } from '../json.js'
import { kubeletVersion, minorOf, needsOwnUid } from '../kubelet.js'
import { planFromApi, type RevisionObjects } from './plan-from-api.js'
import { waitForInstallers, waitTiming, type WaitTiming } from './wait-for-installers.js'
import { type EventSubject, postEvent } from '../../kubernetes/events/event-body.js'

/** Advice for a 403. */
const forbidden = '"holdfast rbac install" with the same flags prints the Role that is needed'

export interface ApiInstallRequest extends InstallRequest {
  readonly objects: RevisionObjects
  readonly nodeName: string
  /** The installer's own pod: with it, it waits for the others first. */
  readonly podName: string | undefined
  readonly resourceDirectory: string
}

export interface ApiInstallMeans {
  readonly api: ApiClient
  readonly durable: DurableCalls
  readonly log: Log
  readonly signal: AbortSignal
  /** The host's or pod's name, for events. */
  readonly instance: string
  readonly timing?: { readonly wait?: WaitTiming; readonly read?: ReadTiming }
}

/** @throws StaticPodError, Superseded, InvalidInput, DurableWriteError */
export async function installFromApi(request: ApiInstallRequest, means: ApiInstallMeans): Promise<InstallResult> {
  const { api, log, timing } = means
  const { namespace, pod, revision } = request.objects
  const deadline = new Deadline(request.timeout, means.signal)
  const end = performance.now() + request.timeout
  const { signal } = deadline
  const reader = new ApiReader(api, { log, forbidden, ...(timing?.read && { timing: timing.read }) })
  const origin = { namespace, pod, instance: means.instance, ownPod: undefined as JsonMap | undefined }
  const say = async (event: InstallEvent): Promise<void> => {
    if (!request.dryRun) await reportInstall(api, origin, event, log)
  }
  try {
    if (request.podName !== undefined && !request.dryRun) {
      const { podName, nodeName } = request
      const waiting = { namespace, revision, nodeName, podName, timing: timing?.wait ?? waitTiming }
      origin.ownPod = await waitForInstallers(reader, waiting, log, signal)
    }
    const result = await readAndWrite(reader, request, means, signal, () => end - performance.now())
    await say({
      type: 'Normal',
      reason: 'StaticPodInstallerCompleted',
      note: `Successfully installed revision ${revision}`,
    })
    return result
  } catch (error) {
    const failure = deadline.expired ? late(error, request.timeout) : error
    if (failure instanceof Superseded || means.signal.aborted) throw failure
    await say({
      type: 'Warning',
      reason: 'StaticPodInstallerFailed',
      note: `Installing revision ${revision}: ${messageOf(failure)}`,
    })
    throw failure
  } finally {
    deadline.dispose()
  }
}

async function readAndWrite(
  reader: ApiReader,
  request: ApiInstallRequest,
  { durable, log }: ApiInstallMeans,
  signal: AbortSignal,
  timeLeft: () => number,
): Promise<InstallResult> {
  const { nodeName, resourceDirectory, objects } = request
  const kubelet = await kubeletVersion(reader, nodeName, log, signal)
  const words = { revision: objects.revision, nodeName }
  const node = { name: nodeName, kubelet: minorOf(kubelet) }
  const planning = { resourceDirectory, words, ownUid: needsOwnUid(kubelet), node }
  const plan = await planFromApi(reader, objects, planning, signal)
  const settings: InstallSettings = {
    ...request,
    durable,
    log,
    signal,
    timeLeft: () => Math.max(0, timeLeft()),
    // An installer's container sees no more of the host than it mounts.
    warnOfHostPaths: false,
  }
  return request.dryRun ? dryRun(plan, settings) : install(plan, settings)
}

/*
 * The two events of an installation (events.k8s.io/v1), by library-go's reasons. They are sent at best effort: an event
 * that cannot be made changes nothing about the installation.
 */

interface InstallEvent {
  readonly type: 'Normal' | 'Warning'
  readonly reason: 'StaticPodInstallerCompleted' | 'StaticPodInstallerFailed'
  readonly note: string
}

/** Milliseconds for the one request: an installation does not wait long for its event. */
const timeout = 5_000

interface EventOrigin {
  readonly namespace: string
  readonly pod: string
  /** The host or pod that reports. */
  readonly instance: string
  /** The installer's own pod, where it runs as one. */
  readonly ownPod: JsonMap | undefined
}

/** @internal */
export async function reportInstall(
  api: ApiClient,
  { pod, instance, ...origin }: EventOrigin,
  event: InstallEvent,
  log: Log,
): Promise<void> {
  const draft = { ...event, action: 'Install', subject: subjectOf(origin) }
  await postEvent(api, draft, { reporter: { controller: 'static-pod-installer', instance }, log, timeout, name: pod })
}

/** The owner of the installer's pod; else that pod; else the namespace. All as library-go chooses. */
function subjectOf({ namespace, ownPod }: Pick<EventOrigin, 'namespace' | 'ownPod'>): EventSubject {
  const metadata = asMap(ownPod?.metadata)
  if (metadata === undefined) return { kind: 'Namespace', name: namespace, namespace, uid: undefined }
  const owner = asList(metadata.ownerReferences)
    .map(asMap)
    .find((reference) => reference?.controller === true)
  const { apiVersion, kind, name, uid } = owner ?? { apiVersion: 'v1', kind: 'Pod', ...metadata }
  return {
    apiVersion: asText(apiVersion) ?? 'v1',
    kind: asText(kind) ?? '',
    name: asText(name) ?? '',
    namespace,
    uid: asText(uid),
  }
}
