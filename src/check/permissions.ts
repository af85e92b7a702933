import type { ApiClient } from '../kubernetes/connection/client.js'
import { field, statusMessage } from '../kubernetes/reads/api-error.js'
import type { Permission } from '../config/permissions.js'
import { listed } from '../listed.js'
import { fault, ok, warn, type CheckResult } from './findings.js'

export interface PermissionOptions {
  /** The rights that the configuration needs. */
  readonly permissions: readonly Permission[]
  /** The configuration's file, for the advice. */
  readonly file: string
  /** Milliseconds for each answer. */
  readonly timeout: number
  readonly signal: AbortSignal
}

/** Questions that are open at the API server at a time. */
const inFlight = 8

interface Question {
  readonly permission: Permission
  /** undefined: any. */
  readonly name: string | undefined
  readonly verb: string
}

interface Answer {
  /** undefined: the server did not say. */
  readonly allowed: boolean | undefined
  readonly message: string
}

type Answered = readonly [Question, Answer]

/**
 * Asks for each verb on each object whether the server allows it (SelfSubjectAccessReview); reads no object. A list and a watch with a
 * field selector for a name are authorized as if the name stood in the path.
 */
export async function checkPermissions(api: ApiClient, options: PermissionOptions): Promise<CheckResult[]> {
  const { permissions, file } = options
  const questions = permissions.flatMap((permission) =>
    (permission.names ?? [undefined]).flatMap((name) =>
      permission.verbs.map((verb): Question => ({ permission, name, verb })),
    ),
  )
  const answers = new Map<Question, Answer>()
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
    else if (purpose === 'objects') results.push(fault('permission', found, advice(file)))
    else results.push(warn('permission', `${found}; ${lost[purpose]}, everything else works`, advice(file)))
  }
  if (allowed.length === 0) return results
  const which = listed(allowed.filter((name) => name !== undefined))
  const what = `${listed(verbs)} on ${resource}${which === '' ? '' : ` ${which}`}`
  return [ok('permission', `${what}${place}: allowed`), ...results]
}

const lost = { events: 'the agent cannot record events', report: 'this node does not report to holdfast fleet' }

function advice(file: string): string {
  return `holdfast rbac --config ${file} | kubectl apply -f - (with --service-account, for the user above)`
}

async function ask(
  api: ApiClient,
  { permission, name, verb }: Question,
  { timeout, signal }: PermissionOptions,
): Promise<Answer> {
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
