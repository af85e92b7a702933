/** Every failure of a request to the API server, in one class: the failed call, the missing right, and advice. */
import { objectName } from '../../message-text.js'
import { invalidInputOf } from '../../errors.js'
import type { ObjectReference, UnknownState, WatchRestartReason } from '../../objects/types.js'
import { ConnectionError, type ApiResponse } from '../connection/client.js'
import { describeTarget, type ApiTarget, type ReadVerb } from './requests.js'

export interface ApiErrorDetails {
  /** The HTTP status, or the code of an ERROR event; undefined where no answer came. */
  readonly status?: number
  /** Milliseconds. */
  readonly retryAfter?: number | undefined
  /** Advice; it stands at the end of the message, too. */
  readonly advice?: string
}

/** A request, or a watch's stream, failed. It never says that an object is absent. Holds no content. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  constructor(
    readonly reason: Exclude<WatchRestartReason, 'timeout'>,
    message: string,
    readonly details: ApiErrorDetails = {},
    options?: ErrorOptions,
  ) {
    super(message, options)
  }

  /** The API server refused the user, or the user's request. */
  get denied(): boolean {
    return this.reason === 'denied' || this.details.status === 401
  }

  /** The same request may fare better later: anything but a 4xx, which is about the request itself, apart from 429. */
  get retriable(): boolean {
    const { status } = this.details
    if (this.permanent) return false
    return status === undefined || status < 400 || status >= 500 || status === 429
  }

  /** The kubeconfig is wrong, or not there: a person has to put it right. */
  get permanent(): boolean {
    return this.cause instanceof ConnectionError && invalidInputOf(this.cause.cause) !== undefined
  }

  /** The state of an object about which the source knows nothing but this error. */
  get observation(): UnknownState {
    const reason = this.denied ? 'AccessDenied' : 'SourceUnavailable'
    return { state: 'unknown', reason, message: this.message, ...(this.permanent && { permanent: true as const }) }
  }
}

interface Refusal {
  readonly status: number
  readonly retryAfter?: number | undefined
  readonly body: unknown
  readonly foreign?: string
  readonly anonymous?: boolean
}

/** For an HTTP status, or the code of an ERROR event, that is no answer to the request. `forbidden`: what to do about a 403. */
export function refusedRequest(
  target: ApiTarget,
  verb: ReadVerb,
  answer: Refusal,
  forbidden = forbiddenAdvice(target, verb),
): ApiError {
  const { status, retryAfter } = answer
  const said = statusMessage(answer.body)
  const what = `${describeTarget(target)}: ${verb} failed with HTTP ${status}${said && ` (${said})`}`
  const known = target.advice?.[status] ?? (status === 403 ? forbidden : statusAdvice(status))
  const advice = answer.foreign ?? unsentAdvice(answer) ?? known
  return new ApiError(restartReason(status), advice ? `${what}: ${advice}` : what, {
    status,
    retryAfter,
    ...(advice !== '' && { advice }),
  })
}

/** Makes an ApiError of every error that a request or a stream throws. */
export function brokenRequest(target: ApiTarget, error: unknown): ApiError {
  if (error instanceof ApiError) return error
  const said = error instanceof Error ? error.message : String(error)
  const message = `${describeTarget(target)}: ${said}`
  if (!(error instanceof ConnectionError)) return new ApiError('protocol', message, {}, { cause: error })
  return new ApiError(connectionReasons[error.reason], message, {}, { cause: error })
}

const connectionReasons = {
  connection: 'connection',
  timeout: 'connection',
  goaway: 'goaway',
  credentials: 'credentials',
  rotation: 'rotation',
  protocol: 'protocol',
} as const satisfies Record<ConnectionError['reason'], ApiError['reason']>

/** The answer makes no sense: it is not what a Kubernetes API server answers to that. */
export function protocolError(reference: ObjectReference, problem: string): ApiError {
  return new ApiError('protocol', `${objectName(reference)}: ${problem}`)
}

/**
 * The one rule of absence: the API server itself says of this one object that it does not exist, in a 404 with a metav1.Status of
 * reason NotFound, whose details name it (apimachinery, NewNotFound). The 404 of a proxy, or of a server that does not serve the path,
 * says nothing about the object.
 */
export function isAbsent({ status, body }: Pick<ApiResponse, 'status' | 'body'>, name: string | undefined): boolean {
  if (status !== 404 || name === undefined || field(body, 'reason') !== 'NotFound') return false
  return field(field(body, 'details'), 'name') === name
}

/** The message of a metav1.Status: on one line, and not endless. Empty where there is none. */
export function statusMessage(body: unknown): string {
  const message = field(body, 'message')
  if (typeof message !== 'string') return ''
  const line = message.replace(/\p{Cc}+/gu, ' ')
  return line.length > 300 ? `${line.slice(0, 300)}…` : line
}

/** A field of a value, if that is an object. */
export function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined
}

function restartReason(status: number): ApiError['reason'] {
  if (status === 410) return 'expired'
  if (status === 429) return 'throttled'
  if (status === 401) return 'unauthorized'
  if (status === 403) return 'denied'
  return status >= 500 ? 'server-error' : 'protocol'
}

/** What helps against HTTP 401. */
export const credentialsAdvice = 'check the user in the kubeconfig, or the service account token'

export const noCredentialAdvice = 'give the user in the kubeconfig a token, a client certificate or a credential plugin'

/**
 * The refusal of a request without a credential: told before any advice about rights, since a Role for system:anonymous would be one for
 * every program that reaches the API server. undefined for any other answer.
 */
export function unsentAdvice({ status, anonymous }: Pick<Refusal, 'status' | 'anonymous'>): string | undefined {
  if (anonymous !== true || (status !== 401 && status !== 403)) return undefined
  return `no credential was sent: ${noCredentialAdvice}`
}

function statusAdvice(status: number): string {
  switch (status) {
    case 401:
      return `the API server rejects the credentials: ${credentialsAdvice}`
    case 404:
      return 'the server has nothing at this path: is this the address of a Kubernetes API server?'
    default:
      return ''
  }
}

/** holdfast follows Secrets and ConfigMaps: with get alone, and not list and watch, it would fail a moment later. */
function forbiddenAdvice(target: ApiTarget, verb: ReadVerb): string {
  const { namespace, name, resource } = target
  const followed = resource === 'secrets' || resource === 'configmaps'
  const role = namespace === undefined ? 'a ClusterRole' : `a Role in namespace ${namespace}`
  const verbs = followed ? 'the verbs get, list and watch' : `the verb ${verb}`
  const names = name === undefined ? '' : ` with resourceNames: [${name}]`
  const narrower =
    followed && name === undefined
      ? '; with source.kubernetes.watch: objects, names are enough (selectors need namespaces)'
      : ''
  return `this user lacks the verb ${verb}: it needs ${role} that allows ${verbs} on the resource ${resource}${names}, bound to this user${narrower}`
}
