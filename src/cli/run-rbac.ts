import type { AgentConfiguration } from '../config/types.js'
import { permissionsOf, type Permission } from '../objects/permissions.js'
import { loadForRights } from './load.js'
import { print, printJson } from './print.js'
import type { RbacOptions } from './rbac.js'
import { serviceAccountOf } from './rbac-install.js'

/** Of a service account that is named without one: where deploy/ puts it. */
const defaultNamespace = 'holdfast'

const apiGroup = 'rbac.authorization.k8s.io'

/** Prints the Roles and bindings; throws UsageError, ConfigurationError. */
export async function runRbac(options: RbacOptions): Promise<void> {
  const account = serviceAccountOf(options.serviceAccount, defaultNamespace)
  const configuration = await loadForRights(options, account.namespace)
  // In "default" the Roles of all service accounts stand beside each other.
  const name = options.name ?? `${account.namespace}:${account.name}`
  const roles = rolesOf(permissionsOf(configuration), account, name)
  if (options.output === 'json') {
    printJson({ apiVersion: 'v1', kind: 'List', items: roles })
    return
  }
  const { stringify } = await import('yaml')
  const documents = roles.map((role) => stringify(role, { aliasDuplicateObjects: false }))
  print(headline(configuration) + documents.join('---\n'))
}

function headline({ file, source }: AgentConfiguration): string {
  return source.type === 'files'
    ? `# ${file} has source.files: no API server is asked, and no rights are needed.\n`
    : `# What "holdfast agent" needs for ${file}, and nothing more.\n`
}

/** Each namespace's Role, and after it the binding, in the order of the permissions. */
function rolesOf(
  permissions: readonly Permission[],
  account: { readonly namespace: string; readonly name: string },
  name: string,
): object[] {
  const namespaces = [...new Set(permissions.map(({ namespace }) => namespace))]
  return namespaces.flatMap((namespace) => {
    const metadata = { namespace, name, labels: { 'app.kubernetes.io/name': 'holdfast' } }
    const own = permissions.filter((permission) => permission.namespace === namespace)
    const about = (kind: string) => ({ apiVersion: `${apiGroup}/v1`, kind, metadata })
    return [
      { ...about('Role'), rules: own.map(ruleOf) },
      {
        ...about('RoleBinding'),
        subjects: [{ kind: 'ServiceAccount', ...account }],
        roleRef: { apiGroup, kind: 'Role', name },
      },
    ]
  })
}

function ruleOf({ group, resource, names, verbs }: Permission): object {
  return {
    apiGroups: [group],
    resources: [resource],
    ...(names && { resourceNames: names }),
    verbs,
  }
}
