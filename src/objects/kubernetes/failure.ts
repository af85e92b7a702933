/** What can go wrong with a request for an object, and what that says of the object: never that it is absent. */
import { describeReference, type ObjectReference, type Observation, type WatchRestartReason } from '../types.js'
import { ConnectionError } from './client.js'
import { resourceOf } from './requests.js'

/** The request, or the stream, came to nothing; the watch is begun again with a list. */
export class WatchFailure extends Error {
  override readonly name = 'WatchFailure'
  constructor(
    readonly restart: WatchRestartReason,
    message: string,
    readonly details: { readonly status?: number; readonly retryAfter?: number | undefined } = {},
    options?: ErrorOptions,
  ) {
    super(message, options)
  }

  get denied(): boolean {
    return this.restart === 'denied' || this.details.status === 401
  }

  /** The server is away, or not well: it is not about this object. */
  get serverAway(): boolean {
    return this.restart === 'connection' || this.restart === 'goaway' || this.restart === 'server-error'
  }

  /** What is known of an object of which nothing else is known. */
  get observation(): Observation {
    return {
      state: 'unknown',
      reason: this.denied ? 'AccessDenied' : 'SourceUnavailable',
      message: this.message,
    }
  }
}

export type Verb = 'get' | 'list' | 'watch'

interface Answer {
  readonly status: number
  readonly retryAfter?: number | undefined
  readonly body: unknown
}

/** For an HTTP status, or the code of an ERROR event, that is not what was asked for. */
export function refusedRequest(reference: ObjectReference, verb: Verb, answer: Answer): WatchFailure {
  const { status } = answer
  const said = statusMessage(answer.body)
  const what = `${describeReference(reference)}: ${verb} failed with HTTP ${status}${said && ` (${said})`}`
  const advice = adviceFor(reference, status)
  return new WatchFailure(restartReason(status), advice ? `${what}: ${advice}` : what, {
    status,
    retryAfter: answer.retryAfter,
  })
}

/** For whatever a request or a stream has thrown. */
export function brokenRequest(reference: ObjectReference, error: unknown): WatchFailure {
  if (error instanceof WatchFailure) return error
  const said = error instanceof Error ? error.message : String(error)
  const message = `${describeReference(reference)}: ${said}`
  if (!(error instanceof ConnectionError)) return new WatchFailure('protocol', message, {}, { cause: error })
  const restart = {
    connection: 'connection',
    timeout: 'connection',
    goaway: 'goaway',
    credentials: 'unauthorized',
  }
  return new WatchFailure(restart[error.reason] as WatchRestartReason, message, {}, { cause: error })
}

/** The message of a metav1.Status: on one line, and not endless. Empty where there is none. */
export function statusMessage(body: unknown): string {
  const message = field(body, 'message')
  if (typeof message !== 'string') return ''

  const line = message.replace(/[\u0000-\u001f\u007f]+/g, ' ')
  return line.length > 300 ? `${line.slice(0, 300)}…` : line
}

/** A field of what may be an object. */
export function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined
}

function restartReason(status: number): WatchRestartReason {
  if (status === 410) return 'expired'
  if (status === 429) return 'throttled'
  if (status === 401) return 'unauthorized'
  if (status === 403) return 'denied'
  return status >= 500 ? 'server-error' : 'protocol'
}

function adviceFor(reference: ObjectReference, status: number): string {
  const { namespace, name } = reference
  switch (status) {
    case 401:
      return 'the API server does not accept the credentials: see the user of the kubeconfig, or the service account token'
    case 403:
      return (
        `it needs a Role in namespace ${namespace} that allows the verbs get, list and watch ` +
        `on the resource ${resourceOf(reference)} with resourceNames: [${name}], bound to this user`
      )
    case 404:
      return 'nothing is served at this path: is it the address of a Kubernetes API server?'
    default:
      return ''
  }
}
