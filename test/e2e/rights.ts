/** Rights as the API server's authorizer has them: its watches bring it Roles and bindings, a little after they are written. */
import type { ApiClient } from './api-client.js'
import { objectsOf } from './chart.js'
import type { Cluster } from './cluster.js'
import { until } from '../until.js'

export interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly verbs: readonly string[]
}

/** Waits until the user has each of these rights; without a namespace, in all of them. */
export async function granted(admin: ApiClient, user: string, rules: readonly Rule[], namespace = ''): Promise<void> {
  const rights = rules.flatMap(({ apiGroups: [group], resources, resourceNames = [''], verbs }) =>
    resources.flatMap((resource) =>
      resourceNames.flatMap((name) => verbs.map((verb) => ({ namespace, group, resource, name, verb }))),
    ),
  )
  for (const resourceAttributes of rights) {
    await until(`${user} may ${JSON.stringify(resourceAttributes)}`, async () => {
      const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews'
      const answer = await admin.demand('POST', path, { spec: { user, resourceAttributes } })
      return (answer as unknown as { status: { allowed: boolean } }).status.allowed
    })
  }
}

/** Applies what `holdfast rbac` has printed for a service account, and waits until that has its rights. */
export async function grant(cluster: Cluster, printed: string, namespace: string, account: string): Promise<void> {
  await cluster.kubectl(['apply', '-f', '-'], printed)
  for (const { kind, metadata, rules } of objectsOf(printed)) {
    if (kind !== 'Role' && kind !== 'ClusterRole') continue
    const user = `system:serviceaccount:${namespace}:${account}`
    await granted(cluster.api.admin, user, rules as Rule[], metadata.namespace)
  }
}
