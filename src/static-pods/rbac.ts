/*
 * What an installer may do, and nothing more: the named objects, the pods that it settles with, its node's version, its
 * events. A Role for what is in the namespace, a ClusterRole for the node, which is in none.
 */
import { certificateObjects, manifestObject, revisionedObjects, type RevisionObjects } from './plan-from-api.js'
import type { ObjectKind } from '../objects/types.js'

export interface RbacRequest {
  readonly objects: RevisionObjects
  /** undefined: any node. */
  readonly nodeName: string | undefined
  /** Whom to bind, `NAMESPACE/NAME` of a service account; undefined: no bindings. */
  readonly serviceAccount: { readonly namespace: string; readonly name: string } | undefined
  readonly name: string
}

interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly verbs: readonly string[]
}

/** The objects to apply, in order. */
export function rbacObjects(request: RbacRequest): object[] {
  const { objects, nodeName, serviceAccount, name } = request
  const { namespace } = objects
  const apiVersion = 'rbac.authorization.k8s.io/v1'
  const clusterName = `${namespace}:${name}`
  const all = [...revisionedObjects(objects), manifestObject(objects), ...certificateObjects(objects)]
  const namesOf = (kind: ObjectKind) => [...new Set(all.filter((one) => one.kind === kind).map((one) => one.name))]
  const rules: Rule[] = [
    ...named('secrets', namesOf('Secret').sort()),
    ...named('configmaps', namesOf('ConfigMap').sort()),
    // A list by label cannot be restricted by names.
    { apiGroups: [''], resources: ['pods'], verbs: ['list'] },
    { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
  ]
  const nodes: Rule = {
    ...{ apiGroups: [''], resources: ['nodes'] },
    ...(nodeName !== undefined && { resourceNames: [nodeName] }),
    verbs: ['get'],
  }
  const roles = [
    { apiVersion, kind: 'Role', metadata: { namespace, name }, rules },
    { apiVersion, kind: 'ClusterRole', metadata: { name: clusterName }, rules: [nodes] },
  ]
  if (serviceAccount === undefined) return roles
  const subjects = [{ kind: 'ServiceAccount', ...serviceAccount }]
  const apiGroup = 'rbac.authorization.k8s.io'
  return [
    ...roles,
    {
      ...{ apiVersion, kind: 'RoleBinding', metadata: { namespace, name }, subjects },
      roleRef: { apiGroup, kind: 'Role', name },
    },
    {
      ...{ apiVersion, kind: 'ClusterRoleBinding', metadata: { name: clusterName }, subjects },
      roleRef: { apiGroup, kind: 'ClusterRole', name: clusterName },
    },
  ]
}

function named(resource: string, resourceNames: readonly string[]): Rule[] {
  // A rule without names would allow all.
  return resourceNames.length === 0 ? [] : [{ apiGroups: [''], resources: [resource], resourceNames, verbs: ['get'] }]
}
