import type { SourceConfiguration } from '../config/types.js'
import { messageOf } from '../errors.js'
import { silent } from '../log.js'
import type { Obeyed } from '../trust.js'
import { isAnonymous, type AccessSnapshot } from '../kubernetes/credentials/access.js'
import { ConnectionError, type ApiClient, type ApiResponse } from '../kubernetes/connection/client.js'
import { Credentials } from '../kubernetes/credentials/credentials.js'
import { unverified } from '../kubernetes/credentials/plain-http.js'
import { connect } from '../kubernetes/connection/connection.js'
import { credentialsAdvice, field, noCredentialAdvice, statusMessage } from '../kubernetes/reads/api-error.js'
import { checkClock, validitiesOf } from './certificates.js'
import { fault, ok, warn, type CheckResult } from './findings.js'
import type { Permission } from '../config/permissions.js'
import { listed } from '../message-text.js'

/** Questions that are open at the API server at a time. */
const inFlight = 8

const lost = { events: 'the agent cannot record events', report: 'this node does not report to holdfast fleet' }

export interface ApiOptions extends PermissionOptions {
  /** The process's environment, which may name the API server. */
  readonly environment: NodeJS.ProcessEnv
  readonly version: string
  readonly now: Date
  /** The loader calls it before it reads a kubeconfig or runs a credential plugin. */
  readonly obey: (obeyed: Obeyed) => Promise<void>
}

type ApiSource = SourceConfiguration<'kubernetes'>

/** Whether the API server can be reached, takes our credentials, and allows what the configuration needs. */
export async function checkApi({ kubeconfig, context }: ApiSource, options: ApiOptions): Promise<CheckResult[]> {
  const { environment } = options
  let credentials
  let snapshot
  try {
    // Found as the agent finds it.
    const search = 'service-account'
    credentials = new Credentials({ kubeconfig, context, environment, search, log: silent, obey: options.obey })
    snapshot = await credentials.current()
  } catch (error) {
    return [fault('access', messageOf(error), 'correct the kubeconfig, or the files that it names')]
  }
  const results = [ok('access', credentials.origin), ...checkVerified(snapshot), ...checkClocks(snapshot, options.now)]
  const api = connect(credentials, { version: options.version })
  try {
    const reached = await reach(api, snapshot.server.origin, options)
    results.push(reached)
    if (reached.status === 'FAULT') return results
    const accepted = isAnonymous(snapshot) ? noCredential : await askAsUser(api, options)
    results.push(accepted)
    if (accepted.status === 'FAULT') return results
    return [...results, ...(await checkPermissions(api, options))]
  } catch (error) {
    options.signal.throwIfAborted()
    if (!(error instanceof ConnectionError)) throw error
    return [
      ...results,
      fault('reachable', error.message, 'find out why the API server stopped answering, then check again'),
    ]
  } finally {
    await api.close()
  }
}

function checkVerified({ insecure, server }: AccessSnapshot): CheckResult[] {
  if (!insecure) return []
  const [found = '', advice = ''] = unverified(server.origin).split('; ')
  return [warn('server certificate', found, advice)]
}

function checkClocks({ certificate, authority }: AccessSnapshot, now: Date): CheckResult[] {
  const [own, others] = [certificate?.chain, authority].map((pem, index) =>
    pem === undefined
      ? []
      : validitiesOf(index === 0 ? 'the client certificate' : "the authority's certificate", Buffer.from(pem)),
  )
  return [
    checkClock('client certificate', own ?? [], now),
    checkClock('certificate authority', others ?? [], now),
  ].filter((result) => result !== undefined)
}

async function reach(api: ApiClient, origin: string, { timeout, signal }: ApiOptions): Promise<CheckResult> {
  const started = performance.now()
  let answer: ApiResponse
  try {
    answer = await api.get('/version', {}, { timeout, signal })
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof ConnectionError)) throw error
    const advice =
      'check the address, the network and the certificate authority; the agent publishes nothing new until the API server answers'
    return fault('reachable', error.message, advice)
  }
  const milliseconds = Math.round(performance.now() - started)
  const { status, body } = answer
  // Some servers show their version to known users only; they have answered, and this check needs no more.
  if (status === 401 || status === 403) return ok('reachable', `${origin} answered in ${milliseconds} ms`)
  const version = field(body, 'gitVersion')
  if (status === 200 && typeof version === 'string') {
    return ok('reachable', `${origin} answered in ${milliseconds} ms: Kubernetes ${version.slice(0, 40)}`)
  }
  return fault(
    'reachable',
    `${origin} answered /version with HTTP ${status}`,
    'check that this is the address of a Kubernetes API server, and that the server is healthy',
  )
}

const noCredential = fault(
  'credentials',
  'none was sent: the API server takes this agent for system:anonymous',
  noCredentialAdvice,
)

/** SelfSubjectReview, since Kubernetes 1.28; before, the questions about permissions show as much. */
async function askAsUser(api: ApiClient, { timeout, signal }: ApiOptions): Promise<CheckResult> {
  const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
  const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
  const { status, body } = await api.send('POST', path, review, { timeout, signal })
  if (status === 401) {
    return fault(
      'credentials',
      `the API server rejects them (HTTP 401${said(body)})`,
      `${credentialsAdvice}; renew an expired certificate or token where it was issued`,
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

interface PermissionOptions {
  /** The rights that the configuration needs. */
  readonly permissions: readonly Permission[]
  /** The configuration's file, for the advice. */
  readonly file: string
  /** Milliseconds for each answer. */
  readonly timeout: number
  readonly signal: AbortSignal
}

interface Question {
  readonly permission: Permission
  /** undefined: any. */
  readonly name: string | undefined
  readonly verb: string
}

interface PermissionAnswer {
  /** undefined: the server did not say. */
  readonly allowed: boolean | undefined
  readonly message: string
}

type Answered = readonly [Question, PermissionAnswer]

/**
 * Asks for each verb on each object whether the server allows it (SelfSubjectAccessReview); reads no object. A list and a watch with a
 * field selector for a name are authorized as if the name stood in the path.
 * @internal
 */
export async function checkPermissions(api: ApiClient, options: PermissionOptions): Promise<CheckResult[]> {
  const { permissions, file } = options
  const questions = permissions.flatMap((permission) =>
    (permission.names ?? [undefined]).flatMap((name) =>
      permission.verbs.map((verb): Question => ({ permission, name, verb })),
    ),
  )
  const answers = new Map<Question, PermissionAnswer>()
  const waiting = questions.values()
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      for (const question of waiting) answers.set(question, await ask(api, question, options))
    }),
  )
  // In the order of the questions: the answers come in any.
  const inOrder = questions.flatMap((question): Answered[] => {
    const answer = answers.get(question)
    return answer === undefined ? [] : [[question, answer]]
  })
  return permissions.flatMap((permission) => resultsFor(permission, inOrder, file))
}

function resultsFor(permission: Permission, answers: readonly Answered[], file: string): CheckResult[] {
  const { resource, namespace, names, verbs, purpose } = permission
  const allowed: (string | undefined)[] = []
  const place = namespace === undefined ? '' : ` in namespace ${namespace}`
  const results: CheckResult[] = []
  for (const name of names ?? [undefined]) {
    const refused = answers.filter(
      ([asked, answer]) => asked.permission === permission && asked.name === name && answer.allowed !== true,
    )
    const [first] = refused
    if (first === undefined) {
      allowed.push(name)
      continue
    }
    const on = `${resource}${name === undefined ? '' : ` ${name}`}${place}`
    const found = `${listed(refused.map(([{ verb }]) => verb))} on ${on}: ${first[1].message}`
    const unknown = refused.every(([, answer]) => answer.allowed === undefined)
    if (unknown) results.push(warn('permission', found, 'check again when the API server is healthy'))
    else if (purpose === 'objects') results.push(fault('permission', found, roleAdvice(file)))
    else results.push(warn('permission', `${found}; ${lost[purpose]}, everything else works`, roleAdvice(file)))
  }
  if (allowed.length === 0) return results
  const which = listed(allowed.filter((name) => name !== undefined))
  const what = `${listed(verbs)} on ${resource}${which === '' ? '' : ` ${which}`}`
  return [ok('permission', `${what}${place}: allowed`), ...results]
}

function roleAdvice(file: string): string {
  return `holdfast rbac --config ${file} | kubectl apply -f - (with --service-account, for the user above)`
}

async function ask(
  api: ApiClient,
  { permission, name, verb }: Question,
  { timeout, signal }: PermissionOptions,
): Promise<PermissionAnswer> {
  const { namespace, group, resource } = permission
  const [main, subresource] = resource.split('/')
  const review = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: {
      resourceAttributes: {
        ...(namespace !== undefined && { namespace }),
        group,
        ...(subresource === undefined ? { resource } : { resource: main, subresource }),
        verb,
        ...(name !== undefined && { name }),
      },
    },
  }
  const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
  const { status, body } = await api.send('POST', path, review, { timeout, signal })
  const allowed = field(field(body, 'status'), 'allowed')
  if ((status === 201 || status === 200) && typeof allowed === 'boolean') {
    return { allowed, message: 'not allowed' }
  }
  const message = statusMessage(body)
  return {
    allowed: undefined,
    message: `unknown, the API server answered HTTP ${status}${message && `: ${message}`}`,
  }
}
