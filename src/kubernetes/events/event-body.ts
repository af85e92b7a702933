/* The shape of events (events.k8s.io/v1). Limits: pkg/apis/core/validation/events.go of kubernetes. */
import { randomBytes } from 'node:crypto'
import type { Reason } from '../../reasons.js'
import { nodeEventsNamespace } from '../../kubernetes-names.js'
import type { Log } from '../../log.js'
import { statusMessage } from '../reads/api-error.js'
import type { ApiClient } from '../connection/client.js'

/** The object that an event regards. */
export interface EventSubject {
  /** Default `v1`. */
  readonly apiVersion?: string
  readonly kind: string
  /** The empty string for a Node, which is in none. */
  readonly namespace: string
  readonly name: string
  /** undefined: not known, as of an object that does not exist. */
  readonly uid: string | undefined
}

/** One event, before it has a name and a time. Never holds content. */
export interface EventDraft<EventReason extends string = Reason> {
  readonly subject: EventSubject
  readonly type: 'Normal' | 'Warning'
  readonly reason: EventReason
  /** The attempted action: `Publish`. */
  readonly action: string
  readonly note: string
}

/** The sender of events. */
export interface EventReporter {
  readonly controller: string
  /** The node, the host or the pod. */
  readonly instance: string
}

/** Where the API server takes events of this namespace. */
export function eventsPath(namespace: string): string {
  return `/apis/events.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/events`
}

/** Bytes. */
const longestNote = 1024
const longestInstance = 128
const longestName = 253

/** The namespace of the events about a subject. */
export function eventNamespace({ namespace }: EventSubject): string {
  return namespace === '' ? nodeEventsNamespace : namespace
}

/** A name that no other event has: its subject's name, and a random number. */
export function eventName(name: string): string {
  const suffix = randomBytes(8).toString('hex')
  return `${name.slice(0, longestName - suffix.length - 1).replace(/[-.]+$/, '')}.${suffix}`
}

/** metav1.MicroTime. */
function microTime(date: Date): string {
  return date.toISOString().replace('Z', '000Z')
}

export interface Series {
  readonly count: number
  readonly lastAt: Date
}

export function seriesBody({ count, lastAt }: Series): object {
  return { count, lastObservedTime: microTime(lastAt) }
}

/** `series`: undefined for a single occurrence. */
export function eventBody(
  { subject, type, reason, action, note }: EventDraft<string>,
  name: string,
  firstAt: Date,
  { controller, instance }: EventReporter,
  series: Series | undefined,
): object {
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { namespace: eventNamespace(subject), name },
    eventTime: microTime(firstAt),
    type,
    reason,
    action,
    note: shortened(note, longestNote),
    reportingController: controller,
    reportingInstance: shortened(instance, longestInstance),
    regarding: {
      apiVersion: subject.apiVersion ?? 'v1',
      kind: subject.kind,
      name: subject.name,
      ...(subject.namespace !== '' && { namespace: subject.namespace }),
      ...(subject.uid !== undefined && { uid: subject.uid }),
    },
    ...(series && { series: seriesBody(series) }),
  }
}

/** At most so many bytes of UTF-8, ending in an ellipsis where something was cut off. */
function shortened(text: string, longest: number): string {
  const bytes = Buffer.from(text)
  if (bytes.length <= longest) return text
  const ellipsis = '…'
  let end = longest - Buffer.byteLength(ellipsis)
  // Never in the middle of a character: its bytes after the first start with 10.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end) + ellipsis
}

interface PostOptions {
  readonly reporter: EventReporter
  readonly log: Log
  /** Milliseconds for the one request. */
  readonly timeout: number
  /** The beginning of the event's own name; default the subject's name. */
  readonly name?: string
}

/**
 * Makes one event of a command that ends soon after, in one try. (The agent's events go through the EventRecorder, which counts and waits.)
 * Never rejects: an event that cannot be made is a warning in the log.
 */
export async function postEvent(
  api: Pick<ApiClient, 'send'>,
  draft: EventDraft<string>,
  { reporter, log, timeout, name = draft.subject.name }: PostOptions,
): Promise<void> {
  const { reason, subject } = draft
  try {
    const body = eventBody(draft, eventName(name), new Date(), reporter, undefined)
    const { status, body: answer } = await api.send('POST', eventsPath(eventNamespace(subject)), body, { timeout })
    if (status >= 300) log.warn({ reason, status }, `The API server refused an event: ${statusMessage(answer)}`)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    log.warn({ reason, error: message }, 'An event could not be sent')
  }
}
