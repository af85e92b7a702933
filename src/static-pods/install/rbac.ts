/*
 * The rights of an installer and of a monitor, and nothing more. The installer: the named objects, the pods that it waits for,
 * its node's version, its events. A Role covers the namespace's objects, a ClusterRole nodes and operators, which have none.
 */
import { certificateObjects, manifestObject, revisionedObjects, type RevisionObjects } from './plan-from-api.js'
import type { OperatorResource } from '../monitor/operator-status.js'
import type { ObjectKind } from '../../objects/types.js'

/** Of a binding (rbac.authorization.k8s.io/v1). */
export type Subject =
  | { readonly kind: 'ServiceAccount'; readonly namespace: string; readonly name: string }
  | { readonly kind: 'User' | 'Group'; readonly apiGroup: 'rbac.authorization.k8s.io'; readonly name: string }

interface Binding {
  /** The subjects to bind; none: no bindings. */
  readonly subjects: readonly Subject[]
  readonly name: string
}

export interface RbacRequest extends Binding {
  readonly objects: RevisionObjects
  /** undefined: any node. */
  readonly nodeName: string | undefined
}

interface PolicyRule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly verbs: readonly string[]
}

/** The objects to apply, in order. */
export function rbacObjects(request: RbacRequest): object[] {
  const { objects, nodeName } = request
  const { namespace } = objects
  const all = [...revisionedObjects(objects), manifestObject(objects), ...certificateObjects(objects)]
  const namesOf = (kind: ObjectKind) => [...new Set(all.filter((one) => one.kind === kind).map((one) => one.name))]
  const rules: PolicyRule[] = [
    ...named('secrets', namesOf('Secret').sort()),
    ...named('configmaps', namesOf('ConfigMap').sort()),
    // A list by label cannot be restricted by names.
    { apiGroups: [''], resources: ['pods'], verbs: ['list'] },
    { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
  ]
  const nodes: PolicyRule = {
    apiGroups: [''],
    resources: ['nodes'],
    ...(nodeName !== undefined && { resourceNames: [nodeName] }),
    verbs: ['get'],
  }
  return rolesAndBindings(request, namespace, rules, [nodes])
}

export interface MonitorRights extends Binding {
  /** Namespace of the pod. */
  readonly namespace: string
  /** Name in the pod's manifest: the mirror pod is NAME-NODE. */
  readonly podName: string
  /** undefined: any pod of the namespace. */
  readonly nodeName: string | undefined
  readonly operator: OperatorResource | undefined
  /** By which the node's kubelet lets it see its pods; undefined: it does not ask. */
  readonly kubelet: KubeletResource | undefined
}

/**
 * The resource that a kubelet asks the API server about for `GET /pods`: `nodes/pods` since 1.33, before that `nodes/proxy`, which lets its
 * owner run commands in every pod of the node, too.
 */
export type KubeletResource = 'nodes/pods' | 'nodes/proxy'

/**
 * The rights of a monitor: with --kubeconfig get the mirror pod, and say in its operator's status that a revision has come; with
 * --kubelet-url ask the kubelet.
 */
export function monitorRbacObjects(request: MonitorRights): object[] {
  const { namespace, podName, nodeName, operator, kubelet } = request
  const pod: PolicyRule = {
    apiGroups: [''],
    resources: ['pods'],
    ...(nodeName !== undefined && { resourceNames: [`${podName}-${nodeName}`] }),
    verbs: ['get'],
  }
  const node: PolicyRule[] = kubelet
    ? [
        {
          apiGroups: [''],
          resources: [kubelet],
          ...(nodeName !== undefined && { resourceNames: [nodeName] }),
          verbs: ['get'],
        },
      ]
    : []
  return rolesAndBindings(request, namespace, [pod], [...(operator ? operatorRules(operator) : []), ...node])
}

function operatorRules({ resource, group, name }: OperatorResource): PolicyRule[] {
  const about = (what: string, verb: string): PolicyRule => ({
    apiGroups: [group],
    resources: [what],
    resourceNames: [name],
    verbs: [verb],
  })
  return [about(resource, 'get'), about(`${resource}/status`, 'patch')]
}

/** `clusterRules`: for objects without a namespace; an empty list makes no ClusterRole. */
function rolesAndBindings(
  { name, subjects }: Binding,
  namespace: string,
  rules: readonly PolicyRule[],
  clusterRules: readonly PolicyRule[],
): object[] {
  const apiVersion = 'rbac.authorization.k8s.io/v1'
  const clusterName = `${namespace}:${name}`
  const isCluster = clusterRules.length > 0
  const roles = [
    { apiVersion, kind: 'Role', metadata: { namespace, name }, rules },
    ...(isCluster ? [{ apiVersion, kind: 'ClusterRole', metadata: { name: clusterName }, rules: clusterRules }] : []),
  ]
  if (subjects.length === 0) return roles
  const apiGroup = 'rbac.authorization.k8s.io'
  return [
    ...roles,
    {
      apiVersion,
      kind: 'RoleBinding',
      metadata: { namespace, name },
      subjects,
      roleRef: { apiGroup, kind: 'Role', name },
    },
    ...(isCluster
      ? [
          {
            apiVersion,
            kind: 'ClusterRoleBinding',
            metadata: { name: clusterName },
            subjects,
            roleRef: { apiGroup, kind: 'ClusterRole', name: clusterName },
          },
        ]
      : []),
  ]
}

function named(resource: string, resourceNames: readonly string[]): PolicyRule[] {
  // A rule without names would allow all.
  return resourceNames.length === 0 ? [] : [{ apiGroups: [''], resources: [resource], resourceNames, verbs: ['get'] }]
}
