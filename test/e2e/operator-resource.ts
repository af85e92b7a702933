/** The operator's resource that startup monitors report to, on a cluster that is not OpenShift's. */
import type { Cluster } from './cluster.js'

export const operator = { resource: 'kubeapiservers', group: 'operator.openshift.io', name: 'cluster' }
export const operatorPath = `/apis/${operator.group}/v1/${operator.resource}`

/** As OpenShift's, as far as a monitor sees it: with a status subresource, and node statuses as one list. */
const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${operator.resource}.${operator.group}` },
  spec: {
    group: operator.group,
    scope: 'Cluster',
    names: {
      plural: operator.resource,
      singular: 'kubeapiserver',
      kind: 'KubeAPIServer',
      listKind: 'KubeAPIServerList',
    },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
}

/** Defines the resource, and makes the one object of it that there is in OpenShift. */
export async function addOperator(cluster: Cluster): Promise<void> {
  await cluster.kubectl(['apply', '-f', '-'], JSON.stringify(definition))
  await cluster.kubectl(['wait', '--for=condition=Established', `crd/${definition.metadata.name}`, '--timeout=60s'])
  const object = { apiVersion: `${operator.group}/v1`, kind: 'KubeAPIServer', metadata: { name: operator.name } }
  await cluster.api.admin.demand('POST', operatorPath, object)
}
