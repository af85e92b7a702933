import type { SourceConfiguration } from '../config/types.js'
import { silent } from '../log.js'
import type { AccessSnapshot } from '../objects/kubernetes/access.js'
import { ConnectionError, type ApiClient, type ApiResponse } from '../objects/kubernetes/client.js'
import { loadClusterAccess } from '../objects/kubernetes/cluster-access.js'
import { connect } from '../objects/kubernetes/connection.js'
import { field, statusMessage } from '../objects/kubernetes/api-error.js'
import type { Permission } from '../objects/permissions.js'
import { clockVerdict, validitiesOf } from './certificates.js'
import { fault, ok, warn, type Verdict } from './findings.js'
import { permissionVerdicts } from './permissions.js'

export interface ApiOptions {
  /** What the configuration needs to be allowed. */
  readonly permissions: readonly Permission[]
  /** Where the configuration is, for what to do. */
  readonly file: string
  readonly version: string
  /** Milliseconds for each answer. */
  readonly timeout: number
  readonly now: Date
  readonly signal: AbortSignal
}

type KubernetesSource = SourceConfiguration<'kubernetes'>

/** Whether the API server can be reached, takes our credentials, and allows what the configuration needs. */
export async function apiVerdicts({ kubeconfig, context }: KubernetesSource, options: ApiOptions): Promise<Verdict[]> {
  let access
  let snapshot
  try {
    // Found as the agent finds it.
    const search = 'service-account'
    access = await loadClusterAccess({ kubeconfig, context, environment: process.env, search, log: silent })
    snapshot = await access.current()
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return [fault('access', message, 'correct the kubeconfig, or what it names')]
  }
  const verdicts = [ok('access', access.origin), ...clockVerdicts(snapshot, options.now)]
  const api = connect(access, { version: options.version })
  try {
    const reached = await reach(api, snapshot.server.origin, options)
    verdicts.push(reached)
    if (reached.status === 'FAULT') return verdicts
    const accepted = await credentials(api, options)
    verdicts.push(accepted)
    if (accepted.status === 'FAULT') return verdicts
    return [...verdicts, ...(await permissionVerdicts(api, options))]
  } catch (error) {
    options.signal.throwIfAborted()
    if (!(error instanceof ConnectionError)) throw error
    return [...verdicts, fault('reachable', error.message, 'see whether the API server is well, and check again')]
  } finally {
    await api.close()
  }
}

function clockVerdicts({ certificate, authority }: AccessSnapshot, now: Date): Verdict[] {
  const [own, others] = [certificate?.chain, authority].map((pem, index) =>
    pem === undefined
      ? []
      : validitiesOf(index === 0 ? 'the client certificate' : "the authority's certificate", Buffer.from(pem)),
  )
  return [
    clockVerdict('client certificate', own ?? [], now),
    clockVerdict('certificate authority', others ?? [], now),
  ].filter((verdict) => verdict !== undefined)
}

async function reach(api: ApiClient, origin: string, { timeout, signal }: ApiOptions): Promise<Verdict> {
  const started = performance.now()
  let answer: ApiResponse
  try {
    answer = await api.get('/version', {}, { timeout, signal })
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof ConnectionError)) throw error
    const advice = 'see address, network and authority; nothing new is published before it answers'
    return fault('reachable', error.message, advice)
  }
  const milliseconds = Math.round(performance.now() - started)
  const { status, body } = answer
  // Some servers tell their version to nobody whom they do not know; they have answered, which is all that is asked here.
  if (status === 401 || status === 403) return ok('reachable', `${origin} answered in ${milliseconds} ms`)
  const version = field(body, 'gitVersion')
  if (status === 200 && typeof version === 'string') {
    return ok('reachable', `${origin} answered in ${milliseconds} ms: Kubernetes ${version.slice(0, 40)}`)
  }
  return fault(
    'reachable',
    `${origin} answered /version with HTTP ${status}`,
    'see whether that is the address of a Kubernetes API server, and whether it is well',
  )
}

/** SelfSubjectReview, since Kubernetes 1.28; before, the questions about permissions tell as much. */
async function credentials(api: ApiClient, { timeout, signal }: ApiOptions): Promise<Verdict> {
  const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
  const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
  const { status, body } = await api.send('POST', path, review, { timeout, signal })
  if (status === 401) {
    return fault(
      'credentials',
      `the API server does not accept them (HTTP 401${said(body)})`,
      'see the user of the kubeconfig, or the service account token; an expired certificate or token is renewed where it is made',
    )
  }
  const user = field(field(field(body, 'status'), 'userInfo'), 'username')
  if (status === 201 && typeof user === 'string') return ok('credentials', `accepted as ${user}`)
  if (status >= 500 || status === 429) {
    return warn('credentials', `the API server answered HTTP ${status}${said(body)}`, 'check again')
  }
  return ok('credentials', 'accepted')
}

function said(body: unknown): string {
  const message = statusMessage(body)
  return message === '' ? '' : `: ${message}`
}
