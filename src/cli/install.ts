import { Command, Option } from 'commander'
import { logLevelOption, outputOption, requireProvenOption, type OutputOptions } from './common-options.js'
import { addPlaceOptions, addRevisionOptions, type PlaceFlags, type RevisionFlags } from './install-options.js'
import { nodeNameOption, verbosityOption } from './static-pod-options.js'

export interface InstallOptions extends RevisionFlags, PlaceFlags, OutputOptions {
  readonly kubeconfig?: string
  readonly context?: string
  readonly nodeName?: string
  readonly resources?: string
  readonly checkHostPaths?: true
  readonly requireProven?: true
  readonly dryRun?: true
  readonly v?: number
}

/** `holdfast install [MANIFEST] …` */
export function installCommand(): Command {
  const command = new Command('install')
    .summary('install one revision of a static pod, from the API or from local files')
    .description(
      `Install a static pod with all that it needs on this node: first its revision's directory, whole, in one rename; then
its manifest, in one rename, as kubelet needs it. Killed at any instant, the node has the old pod or the new one, never
a manifest that names what is not there.

From the API: the flags are those of OpenShift's installer. In a pod whose name POD_NAME tells, it first waits for the
other installers on the node, and gives way to one of a newer revision. From files: name a manifest, and --resources for what goes into
the revision beside it; no API server is asked.`,
    )
    .argument('[manifest]', 'a local manifest; without it, the API is asked')
  addPlaceOptions(addRevisionOptions(command))
  return command
    .option('--resources <dir>', "from files: what goes into the revision's directory")
    .addOption(new Option('--kubeconfig <file>', 'kubeconfig to use').env('HOLDFAST_KUBECONFIG'))
    .addOption(new Option('--context <name>', "the kubeconfig's context to use").env('HOLDFAST_CONTEXT'))
    .addOption(nodeNameOption('this node, as the cluster calls it (also: NODE_NAME)'))
    .option('--check-host-paths', 'refuse a pod whose host paths do not exist on this node')
    .option('--dry-run', 'print what would change, paths and digests, and write nothing')
    .addOption(requireProvenOption())
    .addOption(outputOption())
    .addOption(logLevelOption())
    .addOption(verbosityOption())
    .addHelpText(
      'after',
      `
Examples:
  holdfast install -v=4 --revision=6 --namespace=openshift-kube-apiserver --pod=kube-apiserver-pod \\
    --resource-dir=/etc/kubernetes/static-pod-resources --pod-manifest-dir=/etc/kubernetes/manifests \\
    --configmaps=kube-apiserver-pod --configmaps=config --secrets=etcd-client --node-name=master-0
  holdfast install web.yaml --pod-manifest-dir /etc/kubernetes/manifests
  holdfast install web.yaml --pod-manifest-dir /etc/kubernetes/manifests --resources ./web \\
    --resource-dir /var/lib/web --revision 7 --dry-run

Exit codes: 0 installed or already so, 1 not installed (the manifests are what they were), 2 wrong usage or a manifest that
kubelet would refuse, 3 published but not known to be durable, 75 another process holds a lock.`,
    )
    .action(async (manifest: string | undefined, options: InstallOptions, self: Command) => {
      const { runInstall } = await import('./run-install.js')
      const typed = ['kubeconfig', 'context', 'namespace'].filter((name) => self.getOptionValueSource(name) === 'cli')
      await runInstall(
        manifest,
        options,
        typed.map((name) => `--${name}`),
      )
    })
}
