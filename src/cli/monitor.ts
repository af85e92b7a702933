import { Command, InvalidArgumentError, Option } from 'commander'
import { logLevelOption, outputOption, type OutputOptions } from './common-options.js'
import { parseDuration } from './option-values.js'
import { nodeNameOption, parseName, parseRevisionFlag, verbosityOption } from './static-pod-options.js'

export interface MonitorOptions extends OutputOptions {
  readonly kubeconfig?: string
  readonly context?: string
  readonly namespace?: string
  readonly revision?: number
  readonly fallbackTimeoutDuration: number
  readonly resourceDir?: string
  readonly manifestsDir?: string
  readonly targetName?: string
  readonly installerLockFile?: string
  readonly nodeName?: string
  readonly logFilePath?: string
  readonly readyUrl?: readonly URL[]
  readonly readyCa?: string
  readonly readyExec?: readonly string[]
  readonly keepOwnManifest?: true
  readonly v?: number
}

/** `holdfast monitor …` */
export function monitorCommand(): Command {
  return new Command('monitor')
    .summary('watch a new revision; fall back to the last known good one')
    .description(
      `Watch the revision that was just installed. Ready three times in a row: it is recorded as the last known good one. Not
ready in time: the manifest of the last known good revision takes its place, or that of the newest older one that is whole,
with annotations that say why. Then the monitor removes its own manifest, NAME-startup-monitor-pod.yaml. It may be killed
at any instant and started again; the time runs on.

Ready is what --ready-url, --ready-exec and, with --kubeconfig, the mirror pod say: all that are given. What cannot be asked (no
right, no program) says nothing; where nothing else is known in time, the revision stays, and the exit code is 1.`,
    )
    .addOption(new Option('--revision <number>', 'the revision to watch').argParser(parseRevisionFlag))
    .addOption(new Option('--target-name <name>', 'kube-apiserver: the pod is NAME-pod').argParser(parseName))
    .option('--resource-dir <dir>', 'where the revisions are')
    .option('--manifests-dir <dir>', "kubelet's manifest directory")
    .addOption(
      new Option('--fallback-timeout-duration <duration>', 'how long the revision may take to become ready')
        .argParser(parseDuration)
        .default(33_000, '33s'),
    )
    .option('--installer-lock-file <file>', 'lock (flock) that installers hold while manifests change')
    .addOption(
      new Option('--ready-url <url>', 'ready when a GET answers 200 to 299; repeat it for several').argParser(
        collectUrls,
      ),
    )
    .option('--ready-ca <file>', 'certificate authorities for --ready-url, PEM')
    .addOption(
      new Option(
        '--ready-exec <command>',
        'ready when /bin/sh -c COMMAND ends with 0; REVISION is in its environment',
      ).argParser(collectCommands),
    )
    .addOption(new Option('--kubeconfig <file>', 'kubeconfig to ask for the mirror pod').env('HOLDFAST_KUBECONFIG'))
    .addOption(new Option('--context <name>', "the kubeconfig's context to use").env('HOLDFAST_CONTEXT'))
    .addOption(
      new Option('-n, --namespace <name>', 'namespace of the pod, if its manifest names none')
        .argParser(parseName)
        .env('HOLDFAST_NAMESPACE'),
    )
    .addOption(nodeNameOption('this node, as the cluster calls it (also: NODE_NAME)'))
    .option('--log-file-path <file>', 'log to this file too: 5 MB, and two older ones, for 28 days')
    .option('--keep-own-manifest', "leave the monitor's own manifest where it is")
    .addOption(outputOption())
    .addOption(logLevelOption())
    .addOption(verbosityOption())
    .addHelpText(
      'after',
      `
Examples:
  holdfast monitor --revision=7 --target-name=kube-apiserver --fallback-timeout-duration=300s \\
    --resource-dir=/etc/kubernetes/static-pod-resources --manifests-dir=/etc/kubernetes/manifests \\
    --installer-lock-file=/var/lock/kube-apiserver-installer.lock \\
    --ready-url=https://localhost:6443/readyz --ready-ca=/etc/kubernetes/ca.crt
  holdfast monitor --revision 3 --target-name web --resource-dir /var/lib/web --manifests-dir /etc/kubernetes/manifests \\
    --ready-exec '/usr/local/bin/web-check'

Exit codes: 0 ready and recorded, 1 fell back, nothing to fall back to, or readiness could not be asked, 2 wrong usage, 3 written but not known to be durable.`,
    )
    .action(async (options: MonitorOptions) => {
      const { runMonitor } = await import('./run-monitor.js')
      await runMonitor(options)
    })
}

function collectUrls(text: string, before: readonly URL[] = []): URL[] {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !['http:', 'https:'].includes(url.protocol) || url.username || url.password) {
    throw new InvalidArgumentError(
      'It must be an http or https URL without credentials: https://localhost:6443/readyz.',
    )
  }
  return [...before, url]
}

function collectCommands(text: string, before: readonly string[] = []): string[] {
  // The shell would end with 0.
  if (text.trim() === '') throw new InvalidArgumentError('It is empty, and would always be ready.')
  return [...before, text]
}
