import { selectionsOf } from '../../config/references.js'
import type { AgentConfiguration } from '../../config/types.js'
import type { Permission } from '../../config/permissions.js'
import type { KubeletResource, Subject } from '../../static-pods/install/rbac.js'
import { printJson, type Io } from '../output/io.js'
import { loadForRights } from '../content/load.js'
import { parseName, parseOperator } from '../words/option-values.js'
import { printYaml } from '../output/print.js'
import { nodeGroupFlag, ofNodeGroup, serviceAccountOf, subjectFlags, subjectsOf } from '../words/rbac-subjects.js'
import { pathArgument } from '../words/target.js'
import { command, flag } from '../words/command.js'
import type { FlagsOf } from '../words/types.js'
import {
  logFlags,
  namespaceFlag,
  configInputFlag,
  anyNodeNameFlag,
  nodeNameOf,
  acceptedFlag,
  klogFlags,
  requireFlags,
  revisionFlags,
  placeFlags,
  revisionObjects,
} from '../words/options.js'

const yamlOutputFlag = flag('-o, --output <format>', 'yaml or json', { choices: ['yaml', 'json'], fallback: 'yaml' })

const flags = [
  configInputFlag,
  ...subjectFlags(' (default: holdfast/holdfast)'),
  nodeGroupFlag,
  flag('--name <name>', "name of the Roles (default: the service account's NAMESPACE:NAME)", { parse: parseName }),
  namespaceFlag,
  flag('--report', 'with the rights of report: true, before the configuration has it'),
  yamlOutputFlag,
  ...logFlags,
]

type RbacFlags = FlagsOf<typeof flags>

/** Of a service account that is named without one: where deploy/ puts it. */
const defaultNamespace = 'holdfast'
const defaultAccount = 'holdfast/holdfast'

const apiGroup = 'rbac.authorization.k8s.io'

/** Prints the Roles and bindings; throws UsageError, ConfigurationError. */
async function runRbac(io: Io, given: RbacFlags): Promise<void> {
  const group = given.nodeGroup === undefined ? undefined : ofNodeGroup(given.nodeGroup, given, defaultNamespace)
  const options = { ...group?.bound, ...given }
  const bound = options.serviceAccount ?? options.user ?? options.group
  const account = serviceAccountOf(options.serviceAccount ?? defaultAccount, defaultNamespace)
  const subjects = subjectsOf(bound === undefined ? { serviceAccount: defaultAccount } : options, defaultNamespace)
  const { permissionsOf } = await import('../../config/permissions.js')
  const configuration = await loadForRights(options, account.namespace, io.stdin)
  // In "default" the Roles of all service accounts stand beside each other.
  const name = options.name ?? group?.name ?? `${account.namespace}:${account.name}`
  const report = options.report ?? configuration.report
  const roles = rolesOf(permissionsOf({ ...configuration, report }), subjects, name)
  const objects = roles.length === 0 || group === undefined ? roles : [group.account, ...roles]
  await printObjects(io, options.output, objects, headline(configuration))
}

const wide = `# source.kubernetes.watch: namespaces takes get, list and watch of all Secrets and ConfigMaps in these namespaces, not only of those
# that the configuration names.`

/** A comment on a separate line. */
const inLine = (line: string): string => `# ${line}\n`

function headline({ file, source, directories }: AgentConfiguration): string {
  if (source.type !== 'kubernetes') {
    return inLine(`${file} has source.${source.type}: holdfast asks no API server, and needs no rights.`)
  }
  const first = inLine(`What "holdfast agent" needs for ${file}, and nothing more.`)
  const selections = directories.flatMap(selectionsOf)
  if (selections.length === 0) {
    return first + (source.watch === 'namespaces' ? `${wide} With watch: objects, the names are enough.\n` : '')
  }
  const each = selections.map(({ place, reference: { kind, namespace, selector } }) =>
    inLine(`Whoever may set labels on ${kind}s of ${namespace} adds files by ${selector} (${place}).`),
  )
  return `${first}${wide} A selector needs that.\n${each.join('')}`
}

/** Each namespace's Role, and after it the binding, in the order of the permissions; at the end, a ClusterRole for resources without namespaces. */
function rolesOf(permissions: readonly Permission[], subjects: readonly Subject[], name: string): object[] {
  const namespaces = [...new Set(permissions.map(({ namespace }) => namespace))]
  return namespaces.flatMap((namespace) => {
    const metadata = {
      ...(namespace !== undefined && { namespace }),
      name,
      labels: { 'app.kubernetes.io/name': 'holdfast' },
    }
    const own = permissions.filter((permission) => permission.namespace === namespace)
    const about = (kind: string) => ({ apiVersion: `${apiGroup}/v1`, kind, metadata })
    const role = namespace === undefined ? 'ClusterRole' : 'Role'
    return [
      { ...about(role), rules: own.map(roleRule) },
      {
        ...about(`${role}Binding`),
        subjects,
        roleRef: { apiGroup, kind: role, name },
      },
    ]
  })
}

function roleRule({ group, resource, names, verbs }: Permission): object {
  return {
    apiGroups: [group],
    resources: [resource],
    ...(names && { resourceNames: names }),
    verbs,
  }
}

const installFlags = [
  ...revisionFlags,
  ...placeFlags,
  ...klogFlags,
  // Users may pass an installation's whole command line: rbac takes flags that say nothing of rights.
  ...[
    '--kubeconfig <file>',
    '--context <name>',
    '--check-host-paths',
    '--allow-older',
    '--dry-run',
    '--require-proven',
  ].map((words) => acceptedFlag(words)),
  ...logFlags,
  anyNodeNameFlag,
  ...subjectFlags(),
  flag('--name <name>', 'name of the Role', { parse: parseName, fallback: 'holdfast-installer' }),
  yamlOutputFlag,
]

type RbacInstallFlags = FlagsOf<typeof installFlags>

/** `holdfast rbac install …`: a subcommand of `rbac`. */
const rbacInstallCommand = command({
  name: 'install',
  summary: 'print the smallest Role that an installation needs',
  description: `Prints the rights that "holdfast install" needs with the same flags: get on exactly the named objects, list of pods to
wait for other installers, get of the node, create and patch of events. With --service-account, --user or --group, the
bindings too.`,
  flags: installFlags,
  examples: `  holdfast rbac install --revision=6 --namespace=kube-system --pod=web --configmaps=web --secrets=tls \\
    --node-name=n1 --service-account=installer | kubectl apply -f -`,
  exitCodes: `0 printed, 2 wrong usage.`,
  run: ({ io, options }) => runRbacInstall(io, options),
})

async function runRbacInstall(io: Io, options: RbacInstallFlags): Promise<void> {
  const objects = revisionObjects(options)
  const { certificates } = objects
  const { rbacObjects } = await import('../../static-pods/install/rbac.js')
  const roles = rbacObjects({
    objects: {
      ...objects,
      certificates: certificates && { ...certificates, directory: pathArgument(certificates.directory) },
    },
    nodeName: nodeNameOf(options, io.env),
    subjects: subjectsOf(options, objects.namespace),
    name: options.name,
  })
  await printObjects(io, options.output, roles)
}

const monitorFlags = [
  flag('--target-name <name>', 'name of the pod in its manifest', { parse: parseName }),
  flag('-n, --namespace <name>', 'namespace of the pod', { parse: parseName, env: 'HOLDFAST_NAMESPACE' }),
  anyNodeNameFlag,
  flag('--operator-status <resource>', 'RESOURCE.GROUP/NAME, as for monitor', { parse: parseOperator }),
  flag('--kubelet-access <resource>', 'the right for --kubelet-url', {
    choices: ['nodes/pods', 'nodes/proxy'] satisfies KubeletResource[],
  }),
  ...subjectFlags(),
  flag('--name <name>', 'name of the Role', { parse: parseName, fallback: 'holdfast-monitor' }),
  yamlOutputFlag,
]

type RbacMonitorFlags = FlagsOf<typeof monitorFlags>

/** `holdfast rbac monitor …`: a subcommand of `rbac`. */
const rbacMonitorCommand = command({
  name: 'monitor',
  summary: 'print the smallest Role that a monitor needs',
  description: `Prints the rights that "holdfast monitor" needs with --kubeconfig: get of the mirror pod, TARGET-NODE, and with --operator-status
get of that resource and patch of its status. With --kubelet-access, the right by which the node's kubelet answers --kubelet-url: nodes/pods, or
nodes/proxy for a kubelet before 1.33, which also lets its owner run commands in every pod of the node. With --service-account, --user or --group, the bindings too.`,
  flags: monitorFlags,
  examples: `  holdfast rbac monitor --target-name=kube-apiserver --namespace=openshift-kube-apiserver --node-name=master-0 \\
    --operator-status=kubeapiservers.operator.openshift.io/cluster --service-account=monitor | kubectl apply -f -`,
  exitCodes: `0 printed, 2 wrong usage.`,
  run: ({ io, options }) => runRbacMonitor(io, options),
})

async function runRbacMonitor(io: Io, options: RbacMonitorFlags): Promise<void> {
  const { targetName = '', namespace = '', operatorStatus, name } = options
  requireFlags({ '--target-name': options.targetName, '--namespace': options.namespace })
  const { monitorRbacObjects } = await import('../../static-pods/install/rbac.js')
  const roles = monitorRbacObjects({
    namespace,
    podName: targetName,
    nodeName: nodeNameOf(options, io.env),
    operator: operatorStatus,
    kubelet: options.kubeletAccess,
    name,
    subjects: subjectsOf(options, namespace),
  })
  await printObjects(io, options.output, roles)
}

/** `holdfast rbac --config FILE`, `holdfast rbac install …` and `holdfast rbac monitor …`. */
export const rbacCommand = command({
  name: 'rbac',
  summary: 'print the smallest Roles that the agent needs',
  description: `Prints the smallest Roles and bindings that "holdfast agent" needs for a configuration, as objects for kubectl apply: one
Role for each namespace, with get, list and watch of exactly the named Secrets and ConfigMaps, and create and patch of events (which
cannot be limited to names), there and in "default" for those about the Node. With report: true, a ClusterRole for the report of the
node, too. It asks no API server.

"holdfast rbac install" does the same for an installation of a static pod, "holdfast rbac monitor" for its monitor.`,
  flags,
  commands: [rbacInstallCommand, rbacMonitorCommand],
  examples: `  holdfast rbac --config /etc/holdfast.yaml | kubectl apply -f -
  holdfast rbac --config /etc/holdfast.yaml --service-account node-agents/certs -o json
  holdfast rbac --config edge.yaml --node-group edge | kubectl apply -f -
  holdfast rbac install --revision=6 --namespace=kube-system --pod=web --configmaps=web --secrets=tls \\
    --node-name=n1 --service-account=installer | kubectl apply -f -`,
  exitCodes: `0 printed (for source.files, nothing to apply), 2 wrong usage or configuration.`,
  run: ({ io, options }) => runRbac(io, options),
})

async function printObjects({ stdout }: Io, output: 'yaml' | 'json', items: readonly object[], headline = '') {
  if (output === 'json') {
    printJson(stdout, { apiVersion: 'v1', kind: 'List', items })
    return
  }
  await printYaml(stdout, items, headline)
}
