import { InvalidArgumentError } from 'commander'
import type { Subject } from '../../static-pods/install/rbac.js'
import { isLabel } from '../../kubernetes-names.js'
import { UsageError } from './exit-codes.js'
import { flag } from './command.js'
import type { FlagsOf } from './types.js'
import { parseName } from './option-values.js'

const userFlags = [
  flag('--user <name>', 'bind this user, as the API server knows it, too; repeat it for several', {
    parse: collectSubjects,
  }),
  flag('--group <name>', 'bind this group too; repeat it for several', { parse: collectSubjects }),
]

/** The subjects to bind. `fallback`: the account that counts where none is named. */
export const subjectFlags = (fallback = '') => [
  flag('--service-account <name>', `service account to bind: [NAMESPACE/]NAME${fallback}`),
  ...userFlags,
]

type SubjectFlags = FlagsOf<ReturnType<typeof subjectFlags>>

const apiGroup = 'rbac.authorization.k8s.io'

export const nodeGroupFlag = flag(
  '--node-group <name>',
  'bind the identities of this group of nodes: service account holdfast/holdfast-NAME, and group holdfast:NAME',
  { parse: parseNodeGroup },
)

/** The group of each node's own user, whatever group of nodes it is in: deploy/fleet/policy.yaml. */
const allNodes = 'nodes'

function parseNodeGroup(text: string): string {
  if (!isLabel(text)) throw new InvalidArgumentError('It is not a name of lower-case letters, digits and hyphens.')
  if (text === allNodes) throw new InvalidArgumentError('holdfast:nodes is the group of the nodes of all groups.')
  return text
}

/**
 * The identities of the nodes that have one configuration: the service account of their DaemonSet, and the group that the certificate of
 * each one's own user names. Throws UsageError where other subjects are named, too.
 */
export function ofNodeGroup(group: string, { serviceAccount, user, group: others }: SubjectFlags, namespace: string) {
  if (serviceAccount !== undefined || user !== undefined || others !== undefined) {
    throw new UsageError('--node-group names its subjects: leave out --service-account, --user and --group')
  }
  const [name, account] = [`holdfast:${group}`, `holdfast-${group}`]
  return {
    name,
    bound: { serviceAccount: `${namespace}/${account}`, group: [name] },
    account: {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { namespace, name: account, labels: { 'app.kubernetes.io/name': 'holdfast' } },
    },
  }
}

/** Names of users and groups may hold commas and colons: system:node:n1. */
function collectSubjects(text: string, before: readonly string[] = []): string[] {
  if (text.trim() === '') throw new InvalidArgumentError('It is empty.')
  return [...before, text]
}

/** Makes the subjects to bind: a service account, users and groups, as `kubectl create rolebinding` takes them. Throws UsageError. */
export function subjectsOf({ serviceAccount, user = [], group = [] }: SubjectFlags, namespace: string): Subject[] {
  const account = serviceAccount === undefined ? [] : [serviceAccountOf(serviceAccount, namespace)]
  return [
    ...account.map((found) => ({ kind: 'ServiceAccount', ...found }) as const),
    ...user.map((name) => ({ kind: 'User', apiGroup, name }) as const),
    ...group.map((name) => ({ kind: 'Group', apiGroup, name }) as const),
  ]
}

/** `[NAMESPACE/]NAME`; `namespace`: of a name without one. Throws UsageError. */
export function serviceAccountOf(text: string, namespace: string) {
  const parts = text.split('/')
  const [first = '', second] = parts
  try {
    if (parts.length > 2) throw new Error('more than one slash')
    return second === undefined
      ? { namespace, name: parseName(first) }
      : { namespace: parseName(first), name: parseName(second) }
  } catch {
    throw new UsageError(`--service-account ${JSON.stringify(text)} must be [NAMESPACE/]NAME`)
  }
}
