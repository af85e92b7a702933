/*
 * One revision from the API, as an operator's installer pod does it: wait for the others, read everything, write, tell. The deadline
 * covers all of it; at the deadline, and on SIGTERM, what is under way is given up before a manifest changes, or finished.
 */
import { Deadline } from '../deadline.js'
import type { Log } from '../log.js'
import { Cluster, clusterTiming, type ClusterTiming, type DecodeObject } from './cluster.js'
import type { ApiClient } from '../objects/kubernetes/client.js'
import type { Disk } from '../durable/index.js'
import { tell, type InstallEvent } from './events.js'
import { late, messageOf, Superseded } from './failure.js'
import { dryRun, install, type InstallResult, type InstallSettings } from './install.js'
import type { JsonMap } from './json.js'
import { kubeletVersion } from './kubelet-version.js'
import { planFromApi, type RevisionObjects } from './plan-from-api.js'
import { needsOwnUid } from './pod-uid.js'
import { waitForInstallers, waitTiming, type WaitTiming } from './wait-for-installers.js'

export interface ApiInstallRequest {
  readonly objects: RevisionObjects
  readonly nodeName: string
  /** The installer's own pod: with it, it waits for the others first. */
  readonly podName: string | undefined
  readonly resourceDirectory: string
  readonly manifestDirectory: string
  readonly manifestLock: string | undefined
  /** Milliseconds for the whole run. */
  readonly timeout: number
  readonly dryRun: boolean
  readonly requireProven: boolean
  readonly allowOlder: boolean
  readonly checkHostPaths: boolean
}

export interface ApiInstallMeans {
  readonly api: ApiClient
  readonly decode: DecodeObject
  readonly disk: Disk
  readonly log: Log
  readonly signal: AbortSignal
  /** The host's or pod's name, for events. */
  readonly instance: string
  readonly timing?: { readonly wait?: WaitTiming; readonly cluster?: ClusterTiming }
}

/** @throws StaticPodError, Superseded, InvalidInput, DurableWriteError */
export async function installFromApi(request: ApiInstallRequest, means: ApiInstallMeans): Promise<InstallResult> {
  const { api, log, timing } = means
  const { namespace, pod, revision } = request.objects
  const deadline = new Deadline(request.timeout, means.signal)
  const end = performance.now() + request.timeout
  const { signal } = deadline
  const cluster = new Cluster(api, means.decode, log, timing?.cluster ?? clusterTiming)
  const origin = { namespace, pod, instance: means.instance, ownPod: undefined as JsonMap | undefined }
  const say = async (event: InstallEvent): Promise<void> => {
    if (!request.dryRun) await tell(api, origin, event, log)
  }
  try {
    if (request.podName !== undefined && !request.dryRun) {
      const { podName, nodeName } = request
      const waiting = { namespace, revision, nodeName, podName, timing: timing?.wait ?? waitTiming }
      origin.ownPod = await waitForInstallers(cluster, waiting, log, signal)
    }
    const result = await readAndWrite(cluster, request, means, signal, () => end - performance.now())
    await say({
      ...{ type: 'Normal', reason: 'StaticPodInstallerCompleted' },
      note: `Successfully installed revision ${revision}`,
    })
    return result
  } catch (error) {
    const told = deadline.expired ? late(error, request.timeout) : error
    if (told instanceof Superseded || means.signal.aborted) throw told
    await say({
      ...{ type: 'Warning', reason: 'StaticPodInstallerFailed' },
      note: `Installing revision ${revision}: ${messageOf(told)}`,
    })
    throw told
  } finally {
    deadline.dispose()
  }
}

async function readAndWrite(
  cluster: Cluster,
  request: ApiInstallRequest,
  { disk, log }: ApiInstallMeans,
  signal: AbortSignal,
  timeLeft: () => number,
): Promise<InstallResult> {
  const { nodeName, resourceDirectory, manifestDirectory, objects } = request
  const kubelet = await kubeletVersion(cluster, nodeName, log, signal)
  const words = { revision: objects.revision, nodeName }
  const planning = { resourceDirectory, words, ownUid: needsOwnUid(kubelet) }
  const plan = await planFromApi(cluster, objects, planning, signal)
  const settings: InstallSettings = {
    ...{ disk, log, signal, manifestDirectory },
    manifestLock: request.manifestLock,
    timeLeft: () => Math.max(0, timeLeft()),
    requireProven: request.requireProven,
    allowOlder: request.allowOlder,
    checkHostPaths: request.checkHostPaths,
    // An installer's container sees no more of the host than it mounts.
    warnOfHostPaths: false,
  }
  return request.dryRun ? dryRun(plan, settings) : install(plan, settings)
}
