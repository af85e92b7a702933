/** One event of a command that ends soon after. (The agent's events go through the EventRecorder, which counts and waits.) */
import type { Log } from '../../log.js'
import { statusMessage } from '../reads/api-error.js'
import type { ApiClient } from '../connection/client.js'
import { eventBody, eventName, eventsPath, namespaceOf, type EventDraft, type EventReporter } from './event-body.js'

export interface PostOptions {
  readonly reporter: EventReporter
  readonly log: Log
  /** Milliseconds for the one request. */
  readonly timeout: number
  /** The beginning of the event's own name; default the subject's name. */
  readonly name?: string
}

/** Makes the event, in one try. Never rejects: an event that cannot be made is a warning in the log. */
export async function postEvent(
  api: Pick<ApiClient, 'send'>,
  draft: EventDraft<string>,
  { reporter, log, timeout, name = draft.subject.name }: PostOptions,
): Promise<void> {
  const { reason, subject } = draft
  try {
    const body = eventBody(draft, eventName(name), new Date(), reporter, undefined)
    const { status, body: answer } = await api.send('POST', eventsPath(namespaceOf(subject)), body, { timeout })
    if (status >= 300) log.warn({ reason, status }, `The API server refused an event: ${statusMessage(answer)}`)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    log.warn({ reason, error: message }, 'An event could not be sent')
  }
}
