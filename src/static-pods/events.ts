/*
 * The two events of an installation (events.k8s.io/v1), by library-go's reasons. They are told at best effort: an event
 * that cannot be made changes nothing about the installation.
 */
import type { Log } from '../log.js'
import type { ApiClient } from '../objects/kubernetes/client.js'
import { messageOf } from './failure.js'
import { asList, asMap, asText, type JsonMap } from './json.js'

export interface InstallEvent {
  readonly type: 'Normal' | 'Warning'
  readonly reason: 'StaticPodInstallerCompleted' | 'StaticPodInstallerFailed'
  readonly note: string
}

/** Bytes of a note (kubernetes: pkg/apis/core/validation/events.go, NoteLengthLimit). */
const longestNote = 1024

/** Milliseconds for the one request: an installation does not wait long for its event. */
const patience = 5_000

export interface EventOrigin {
  readonly namespace: string
  readonly pod: string
  /** The host or pod that reports. */
  readonly instance: string
  /** The installer's own pod, where it runs as one. */
  readonly ownPod: JsonMap | undefined
}

export async function tell(api: ApiClient, origin: EventOrigin, event: InstallEvent, log: Log): Promise<void> {
  const now = new Date()
  const stamp = (now.getTime() * 1_000_000 + Math.floor(Math.random() * 1_000_000)).toString(16)
  const body = {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { namespace: origin.namespace, name: `${origin.pod}.${stamp}` },
    eventTime: now.toISOString().replace('Z', '000Z'),
    type: event.type,
    reason: event.reason,
    note: shortened(event.note),
    action: 'Install',
    reportingController: 'static-pod-installer',
    reportingInstance: origin.instance.slice(0, 128),
    regarding: regarding(origin),
  }
  try {
    const path = `/apis/events.k8s.io/v1/namespaces/${encodeURIComponent(origin.namespace)}/events`
    const { status } = await api.send('POST', path, body, { timeout: patience })
    if (status >= 300) log.warn({ reason: event.reason, status }, 'the event was refused')
  } catch (error) {
    log.warn({ reason: event.reason, error: messageOf(error) }, 'the event could not be sent')
  }
}

/** What made the installer's pod; else that pod; else the namespace. All as library-go chooses. */
function regarding({ namespace, ownPod }: EventOrigin): object {
  const metadata = asMap(ownPod?.metadata)
  if (metadata === undefined) return { apiVersion: 'v1', kind: 'Namespace', name: namespace, namespace }
  const owner = asList(metadata.ownerReferences)
    .map(asMap)
    .find((reference) => reference?.controller === true)
  if (owner) {
    const { apiVersion, kind, name, uid } = owner
    return { apiVersion, kind, name, uid, namespace }
  }
  return { apiVersion: 'v1', kind: 'Pod', name: asText(metadata.name), uid: metadata.uid, namespace }
}

function shortened(note: string): string {
  const bytes = Buffer.from(note)
  if (bytes.length <= longestNote) return note
  return `${bytes
    .subarray(0, longestNote - 4)
    .toString('utf8')
    .replace(/�+$/u, '')}…`
}
