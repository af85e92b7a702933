/*
 * The two events of an installation (events.k8s.io/v1), by library-go's reasons. They are sent at best effort: an event
 * that cannot be made changes nothing about the installation.
 */
import type { Log } from '../../log.js'
import type { ApiClient } from '../../kubernetes/connection/client.js'
import { type EventSubject, postEvent } from '../../kubernetes/events/event-body.js'
import { asList, asMap, asText, type JsonMap } from '../json.js'

export interface InstallEvent {
  readonly type: 'Normal' | 'Warning'
  readonly reason: 'StaticPodInstallerCompleted' | 'StaticPodInstallerFailed'
  readonly note: string
}

/** Milliseconds for the one request: an installation does not wait long for its event. */
const timeout = 5_000

export interface EventOrigin {
  readonly namespace: string
  readonly pod: string
  /** The host or pod that reports. */
  readonly instance: string
  /** The installer's own pod, where it runs as one. */
  readonly ownPod: JsonMap | undefined
}

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
