/*
 * The agent's rights at the API server, for a configuration: the Role that `holdfast rbac` prints and the questions
 * that `holdfast check` asks come from here, so that they cannot differ.
 */
import { nodeEventsNamespace } from '../kubernetes-names.js'
import { referencesIn } from './references.js'
import type { AgentConfiguration } from './types.js'
import type { ObjectKind } from '../objects/types.js'

/** One rule of a Role, or of a ClusterRole: each of `verbs`, on each of `names`. */
export interface Permission {
  /** undefined: the resource has no namespaces, and the rule stands in a ClusterRole. */
  readonly namespace: string | undefined
  /** The API group; the empty string for the core group. */
  readonly group: string
  readonly resource: 'secrets' | 'configmaps' | 'events' | 'nodes' | 'nodepublications' | 'nodepublications/status'
  /** Names of objects, sorted, at least one; undefined: any, since `create` cannot be limited to names. */
  readonly names: readonly string[] | undefined
  readonly verbs: readonly string[]
  /** Without `objects` the agent publishes nothing; without `events` and `report` it works, and the cluster does not hear of it. */
  readonly purpose: 'objects' | 'events' | 'report'
}

const resources: Readonly<Record<ObjectKind, 'secrets' | 'configmaps'>> = {
  Secret: 'secrets',
  ConfigMap: 'configmaps',
}

/**
 * All that the agent asks for with this configuration, by namespace and resource in order. Empty for the source `files`. For a
 * review of a single access (SelfSubjectAccessReview), each verb with each name is one; the client lists and watches with a field
 * selector for the name, which the API server authorizes as if the name stood in the path. With `watch: namespaces` no name limits them:
 * the right to list all Secrets of a namespace is the right to read them.
 */
export function permissionsOf(
  configuration: Pick<AgentConfiguration, 'source' | 'directories' | 'report'>,
): Permission[] {
  if (configuration.source.type !== 'kubernetes') return []
  const references = configuration.directories.flatMap(({ contents }) => contents.flatMap(referencesIn))
  const namespaces = [...new Set(references.map(({ namespace }) => namespace))].sort()
  const permissions: Permission[] = []
  for (const namespace of namespaces) {
    for (const kind of ['Secret', 'ConfigMap'] as const) {
      const needed = references.filter((one) => one.namespace === namespace && one.kind === kind)
      const names = [...new Set(needed.map(({ name }) => name))].sort()
      // A rule without names would allow all.
      if (names.length === 0) continue
      const verbs = ['get', 'list', 'watch']
      const all = configuration.source.watch === 'namespaces' || needed.some(({ selector }) => selector !== undefined)
      const own = { namespace, group: '', resource: resources[kind], verbs, purpose: 'objects' } as const
      permissions.push({ ...own, names: all ? undefined : names })
    }
  }
  for (const namespace of [...new Set([...namespaces, nodeEventsNamespace])].sort()) {
    const verbs = ['create', 'patch']
    const about = { group: 'events.k8s.io', resource: 'events', names: undefined } as const
    permissions.push({ namespace, ...about, verbs, purpose: 'events' })
  }
  const inOrder = permissions.sort((a, b) => compareNamespaces(a.namespace ?? '', b.namespace ?? ''))
  return configuration.report ? [...inOrder, ...reportPermissions] : inOrder
}

function compareNamespaces(a: string, b: string): number {
  return Number(a > b) - Number(a < b)
}

/** What a node's report takes. The policy in deploy/fleet limits each agent to the report of its node: RBAC cannot. */
const reportPermissions: readonly Permission[] = [
  { group: '', resource: 'nodes', verbs: ['get'] },
  { group: 'holdfast.dev', resource: 'nodepublications', verbs: ['get', 'create'] },
  { group: 'holdfast.dev', resource: 'nodepublications/status', verbs: ['patch'] },
].map((rule) => ({ ...rule, namespace: undefined, names: undefined, purpose: 'report' }) as const) as Permission[]
