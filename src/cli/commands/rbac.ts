import { selectionsOf } from '../../config/references.js'
import type { AgentConfiguration } from '../../config/types.js'
import type { Permission } from '../../config/permissions.js'
import type { OperatorResource } from '../../static-pods/monitor/operator-status.js'
import type { KubeletResource, Subject } from '../../static-pods/install/rbac.js'
import { printJson, type Io } from '../output/io.js'
import { loadForRights } from '../content/load.js'
import { Command, Option } from '../words/option.js'
import { parseName, parseOperator } from '../words/option-values.js'
import {
  logOptions,
  addKlogOptions,
  addPlaceOptions,
  addRevisionOptions,
  configOption,
  nodeNameOf,
  nodeNameOption,
  requireFlags,
  requireProvenOption,
  revisionObjects,
  type RevisionFlags,
} from '../words/options.js'
import { printYaml } from '../output/print.js'
import {
  groupOption,
  nodeGroupOption,
  ofNodeGroup,
  serviceAccountOf,
  subjectsOf,
  userOption,
  type SubjectFlags,
} from '../words/rbac-subjects.js'
import { pathArgument } from '../words/target.js'

interface RbacFlags extends SubjectFlags {
  readonly nodeGroup?: string
  readonly config?: string
  readonly namespace?: string
  readonly name?: string
  readonly report?: true
  readonly output: 'yaml' | 'json'
}

/** `holdfast rbac --config FILE`, `holdfast rbac install …` and `holdfast rbac monitor …`. */
export function rbacCommand(io: Io): Command {
  return (
    new Command('rbac')
      .summary('print the smallest Roles that the agent needs')
      .description(
        `Prints the smallest Roles and bindings that "holdfast agent" needs for a configuration, as objects for kubectl apply: one
Role for each namespace, with get, list and watch of exactly the named Secrets and ConfigMaps, and create and patch of events (which
cannot be limited to names), there and in "default" for those about the Node. With report: true, a ClusterRole for the report of the
node, too. It asks no API server.

"holdfast rbac install" does the same for an installation of a static pod, "holdfast rbac monitor" for its monitor.`,
      )
      .addOption(configOption({ input: true }))
      .option('--service-account <name>', 'service account to bind: [NAMESPACE/]NAME (default: holdfast/holdfast)')
      .addOption(userOption())
      .addOption(groupOption())
      .addOption(nodeGroupOption())
      .addOption(
        new Option('--name <name>', "name of the Roles (default: the service account's NAMESPACE:NAME)").argParser(
          parseName,
        ),
      )
      .addOption(
        new Option('-n, --namespace <name>', 'namespace for objects named without one').env('HOLDFAST_NAMESPACE'),
      )
      .option('--report', 'with the rights of report: true, before the configuration has it')
      .addOption(new Option('-o, --output <format>', 'yaml or json').choices(['yaml', 'json']).default('yaml'))
      .addOptions(logOptions())
      // Flags behind "install" are the subcommand's, also where both have a flag of that name.
      .enablePositionalOptions()
      .addCommand(rbacInstallCommand(io))
      .addCommand(rbacMonitorCommand(io))
      .addHelpText(
        'after',
        `
Examples:
  holdfast rbac --config /etc/holdfast.yaml | kubectl apply -f -
  holdfast rbac --config /etc/holdfast.yaml --service-account node-agents/certs -o json
  holdfast rbac --config edge.yaml --node-group edge | kubectl apply -f -
  holdfast rbac install --revision=6 --namespace=kube-system --pod=web --configmaps=web --secrets=tls \\
    --node-name=n1 --service-account=installer | kubectl apply -f -

Exit codes: 0 printed (for source.files, nothing to apply), 2 wrong usage or configuration.`,
      )
      .action((options: RbacFlags) => runRbac(io, options))
  )
}

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
      { ...about(role), rules: own.map(ruleOf) },
      {
        ...about(`${role}Binding`),
        subjects,
        roleRef: { apiGroup, kind: role, name },
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

interface RbacInstallFlags extends RevisionFlags, SubjectFlags {
  readonly nodeName?: string
  readonly name: string
  readonly output: 'yaml' | 'json'
}

/** `holdfast rbac install …`: a subcommand of `rbac`. */
function rbacInstallCommand(io: Io): Command {
  const command = new Command('install').summary('print the smallest Role that an installation needs').description(
    `Prints the rights that "holdfast install" needs with the same flags: get on exactly the named objects, list of pods to
wait for other installers, get of the node, create and patch of events. With --service-account, --user or --group, the
bindings too.`,
  )
  addKlogOptions(addPlaceOptions(addRevisionOptions(command)))
  // Users may pass an installation's whole command line: rbac takes flags that say nothing of rights, and does not explain them.
  for (const flag of ['--kubeconfig <file>', '--context <name>', '--check-host-paths', '--allow-older', '--dry-run'])
    command.addOption(new Option(flag).hideHelp())
  return command
    .addOption(requireProvenOption().hideHelp())
    .addOptions(logOptions().map((option) => option.hideHelp()))
    .addOption(nodeNameOption('the node (default: any; also: NODE_NAME)'))
    .option('--service-account <name>', 'service account to bind: [NAMESPACE/]NAME')
    .addOption(userOption())
    .addOption(groupOption())
    .addOption(new Option('--name <name>', 'name of the Role').argParser(parseName).default('holdfast-installer'))
    .addOption(new Option('-o, --output <format>', 'yaml or json').choices(['yaml', 'json']).default('yaml'))
    .addHelpText(
      'after',
      `
Example:
  holdfast rbac install --revision=6 --namespace=kube-system --pod=web --configmaps=web --secrets=tls \\
    --node-name=n1 --service-account=installer | kubectl apply -f -

Exit codes: 0 printed, 2 wrong usage.`,
    )
    .action((options: RbacInstallFlags) => runRbacInstall(io, options))
}

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

interface RbacMonitorFlags extends SubjectFlags {
  readonly targetName?: string
  readonly namespace?: string
  readonly nodeName?: string
  readonly operatorStatus?: OperatorResource
  readonly kubeletAccess?: KubeletResource
  readonly name: string
  readonly output: 'yaml' | 'json'
}

/** `holdfast rbac monitor …`: a subcommand of `rbac`. */
function rbacMonitorCommand(io: Io): Command {
  return new Command('monitor')
    .summary('print the smallest Role that a monitor needs')
    .description(
      `Prints the rights that "holdfast monitor" needs with --kubeconfig: get of the mirror pod, TARGET-NODE, and with --operator-status
get of that resource and patch of its status. With --kubelet-access, the right by which the node's kubelet answers --kubelet-url: nodes/pods, or
nodes/proxy for a kubelet before 1.33, which also lets its owner run commands in every pod of the node. With --service-account, --user or --group, the bindings too.`,
    )
    .addOption(new Option('--target-name <name>', 'name of the pod in its manifest').argParser(parseName))
    .addOption(
      new Option('-n, --namespace <name>', 'namespace of the pod').argParser(parseName).env('HOLDFAST_NAMESPACE'),
    )
    .addOption(nodeNameOption('the node (default: any; also: NODE_NAME)'))
    .addOption(
      new Option('--operator-status <resource>', 'RESOURCE.GROUP/NAME, as for monitor').argParser(parseOperator),
    )
    .addOption(
      new Option('--kubelet-access <resource>', 'the right for --kubelet-url').choices([
        'nodes/pods',
        'nodes/proxy',
      ] satisfies KubeletResource[]),
    )
    .option('--service-account <name>', 'service account to bind: [NAMESPACE/]NAME')
    .addOption(userOption())
    .addOption(groupOption())
    .addOption(new Option('--name <name>', 'name of the Role').argParser(parseName).default('holdfast-monitor'))
    .addOption(new Option('-o, --output <format>', 'yaml or json').choices(['yaml', 'json']).default('yaml'))
    .addHelpText(
      'after',
      `
Example:
  holdfast rbac monitor --target-name=kube-apiserver --namespace=openshift-kube-apiserver --node-name=master-0 \\
    --operator-status=kubeapiservers.operator.openshift.io/cluster --service-account=monitor | kubectl apply -f -

Exit codes: 0 printed, 2 wrong usage.`,
    )
    .action((options: RbacMonitorFlags) => runRbacMonitor(io, options))
}

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

async function printObjects({ stdout }: Io, output: 'yaml' | 'json', items: readonly object[], headline = '') {
  if (output === 'json') {
    printJson(stdout, { apiVersion: 'v1', kind: 'List', items })
    return
  }
  await printYaml(stdout, items, headline)
}
