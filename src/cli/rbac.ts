import { Command, Option } from 'commander'
import { configOption, logLevelOption } from './common-options.js'
import { rbacInstallCommand } from './rbac-install.js'
import { parseName } from './static-pod-options.js'

export interface RbacOptions {
  readonly config?: string
  readonly namespace?: string
  readonly serviceAccount: string
  readonly name?: string
  readonly output: 'yaml' | 'json'
}

/** `holdfast rbac --config FILE`, and `holdfast rbac install …`. */
export function rbacCommand(): Command {
  return (
    new Command('rbac')
      .summary('print the smallest Roles that are needed')
      .description(
        `Print the smallest Roles and bindings that "holdfast agent" needs for a configuration, as objects for kubectl apply: one
Role for each namespace, with get, list and watch of exactly the named Secrets and ConfigMaps, and create and patch of events (which
cannot be limited to names), there and in "default" for those about the Node. No API server is asked.

"holdfast rbac install" does the same for an installation of a static pod.`,
      )
      .addOption(configOption())
      .addOption(new Option('--service-account <name>', 'whom to bind: [NAMESPACE/]NAME').default('holdfast/holdfast'))
      .addOption(
        new Option('--name <name>', "name of the Roles (default: the service account's NAMESPACE:NAME)").argParser(
          parseName,
        ),
      )
      .addOption(
        new Option('-n, --namespace <name>', 'namespace of objects that are named without one').env(
          'HOLDFAST_NAMESPACE',
        ),
      )
      .addOption(new Option('-o, --output <format>', 'yaml or json').choices(['yaml', 'json']).default('yaml'))
      .addOption(logLevelOption())
      // What stands behind "install" is the subcommand's, also where both have a flag of that name.
      .enablePositionalOptions()
      .addCommand(rbacInstallCommand())
      .addHelpText(
        'after',
        `
Examples:
  holdfast rbac --config /etc/holdfast.yaml | kubectl apply -f -
  holdfast rbac --config /etc/holdfast.yaml --service-account node-agents/certs -o json
  holdfast rbac install --revision=6 --namespace=kube-system --pod=web --configmaps=web --secrets=tls \\
    --node-name=n1 --service-account=installer | kubectl apply -f -

Exit codes: 0 printed (source.files needs no rights, and there is nothing to apply), 2 wrong usage or configuration.`,
      )
      .action(async (options: RbacOptions) => {
        const { runRbac } = await import('./run-rbac.js')
        await runRbac(options)
      })
  )
}
