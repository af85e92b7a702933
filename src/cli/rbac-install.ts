import { Command, Option } from 'commander'
import { resolve } from 'node:path'
import { addPlaceOptions, addRevisionOptions, revisionObjects, type RevisionFlags } from './install-options.js'
import { logLevelOption, requireProvenOption } from './common-options.js'
import { nodeNameOf, nodeNameOption, parseName, verbosityOption } from './static-pod-options.js'
import { print, printJson } from './print.js'
import { UsageError } from './exit-codes.js'

interface RbacInstallOptions extends RevisionFlags {
  readonly nodeName?: string
  readonly serviceAccount?: string
  readonly name: string
  readonly output: 'yaml' | 'json'
}

/** `holdfast rbac install …`: for the command `rbac`, as its subcommand. */
export function rbacInstallCommand(): Command {
  const command = new Command('install').summary('print the smallest Role that an installation needs').description(
    `Print what "holdfast install" needs to be allowed, from the same flags: get on exactly the named objects, list of pods to
settle with other installers, get of the node, create and patch of events. With --service-account, the bindings too.`,
  )
  addPlaceOptions(addRevisionOptions(command))
  // An installation's command line may be given whole: what says nothing of rights is taken, and not explained.
  for (const flag of ['--kubeconfig <file>', '--context <name>', '--check-host-paths', '--dry-run'])
    command.addOption(new Option(flag).hideHelp())
  return command
    .addOption(requireProvenOption().hideHelp())
    .addOption(logLevelOption().hideHelp())
    .addOption(nodeNameOption('the node (default: any; also: NODE_NAME)'))
    .option('--service-account <name>', 'whom to bind: [NAMESPACE/]NAME')
    .addOption(new Option('--name <name>', 'name of the Role').argParser(parseName).default('holdfast-installer'))
    .addOption(verbosityOption())
    .addOption(new Option('-o, --output <format>', 'yaml or json').choices(['yaml', 'json']).default('yaml'))
    .addHelpText(
      'after',
      `
Example:
  holdfast rbac install --revision=6 --namespace=kube-system --pod=web --configmaps=web --secrets=tls \\
    --node-name=n1 --service-account=installer | kubectl apply -f -

Exit codes: 0 printed, 2 wrong usage.`,
    )
    .action(async (options: RbacInstallOptions) => {
      const objects = revisionObjects(options)
      const { rbacObjects } = await import('../static-pods/rbac.js')
      const roles = rbacObjects({
        objects: {
          ...objects,
          certificates: objects.certificates && {
            ...objects.certificates,
            directory: resolve(objects.certificates.directory),
          },
        },
        nodeName: nodeNameOf(options),
        serviceAccount:
          options.serviceAccount === undefined
            ? undefined
            : serviceAccountOf(options.serviceAccount, objects.namespace),
        name: options.name,
      })
      if (options.output === 'json') {
        printJson({ apiVersion: 'v1', kind: 'List', items: roles })
        return
      }
      const { stringify } = await import('yaml')
      print(roles.map((role) => stringify(role, { aliasDuplicateObjects: false })).join('---\n'))
    })
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
