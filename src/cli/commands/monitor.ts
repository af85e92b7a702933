import { basename, dirname } from 'node:path'
import type { MonitorOutcome, MonitorRequest } from '../../static-pods/monitor/monitor.js'
import { Exit, exitCodes, UsageError } from '../words/exit-codes.js'
import type { Io } from '../output/io.js'
import { logToFile } from '../output/log-file.js'
import { createLogger } from '../output/logger.js'
import { parseDurationFlag, parseName, parseOperator, parseRevisionFlag } from '../words/option-values.js'
import { print } from '../output/print.js'
import { openProbes, readinessFlags, readinessSettings } from '../words/readiness-options.js'
import { interruptible } from '../signals.js'
import { pathArgument } from '../words/target.js'
import { command, flag } from '../words/command.js'
import type { FlagsOf } from '../words/types.js'
import { daemonReportFlags, nodeNameOf, klogFlags, requireFlags } from '../words/options.js'

const flags = [
  ...klogFlags,
  flag('--revision <number>', 'the revision to watch', { parse: parseRevisionFlag }),
  flag('--target-name <name>', 'kube-apiserver: the pod is NAME-pod', { parse: parseName }),
  flag('--resource-dir <dir>', 'where the revisions are'),
  flag('--manifests-dir <dir>', "kubelet's manifest directory"),
  flag('--pod <name>', 'instead of --target-name: the pod as install names it, NAME-REVISION', { parse: parseName }),
  flag('--manifest <file>', "the pod's live manifest (default: NAME.yaml in --manifests-dir)"),
  flag('--fallback-timeout-duration <duration>', 'how long the revision may take to become ready', {
    parse: parseDurationFlag,
    fallback: 33_000,
    shown: '33s',
  }),
  flag('--installer-lock-file <file>', 'lock (flock) that installers hold while manifests change'),
  ...readinessFlags,
  flag('--log-file-path <file>', 'log to this file too: 5 MB, and two older ones, for 28 days'),
  flag(
    '--operator-status <resource>',
    "RESOURCE.GROUP/NAME: write currentRevision into this operator's status, as library-go's monitor does",
    { parse: parseOperator },
  ),
  flag('--keep-own-manifest', "do not remove the monitor's own manifest"),
  ...daemonReportFlags,
]

type MonitorFlags = FlagsOf<typeof flags>

/** `holdfast monitor …` */
export const monitorCommand = command({
  name: 'monitor',
  summary: 'watch a new revision; fall back to the last known good one',
  description: `Watches the revision that was just installed. Ready for --ready-for: the monitor records it as the last known good one. Not
ready in time: the monitor puts back the manifest of the last known good revision, or of the newest older one that is intact,
with annotations that say why. Then it removes its own manifest, NAME-startup-monitor-pod.yaml. It may be killed
at any instant and started again; the timeout runs on.

The revision is ready when all of --ready-url, --ready-exec, --kubelet-url and, with --kubeconfig, the mirror pod say so. What cannot answer (no
right, no program) does not count; if nothing else is known in time, the revision stays, and the exit code is 1.`,
  flags,
  examples: `  holdfast monitor --revision=7 --target-name=kube-apiserver --fallback-timeout-duration=300s \\
    --resource-dir=/etc/kubernetes/static-pod-resources --manifests-dir=/etc/kubernetes/manifests \\
    --installer-lock-file=/var/lock/kube-apiserver-installer.lock \\
    --ready-url=https://localhost:6443/readyz --ready-ca=/etc/kubernetes/ca.crt
  holdfast monitor --revision 3 --target-name web --resource-dir /var/lib/web --manifests-dir /etc/kubernetes/manifests \\
    --ready-exec '/usr/local/bin/web-check'
  holdfast monitor --revision 2 --pod kube-apiserver --manifest /etc/kubernetes/manifests/kube-apiserver.yaml \\
    --resource-dir /var/lib/holdfast/pods --ready-url https://node-1:6443/readyz --ready-ca /etc/kubernetes/pki/ca.crt`,
  exitCodes: `0 ready and recorded, 1 fell back, nothing to fall back to, or readiness unknown, 2 wrong usage, 3 written but
not known to be durable.`,
  run: ({ io, options }) => runMonitor(io, options),
})

async function runMonitor(io: Io, options: MonitorFlags): Promise<void> {
  const { revision, resourceDir, installerLockFile } = options
  const places = placesOf(options)
  const standard = createLogger(io, options)
  const log = options.logFilePath ? logToFile(pathArgument(options.logFilePath), standard) : standard
  const { operatorStatus, kubeconfig } = options
  if (operatorStatus && !kubeconfig) throw new UsageError('--operator-status needs --kubeconfig')
  const timeout = options.fallbackTimeoutDuration
  // Nothing would ever be in time; library-go's monitor refuses it, too.
  if (timeout === 0) throw new UsageError('--fallback-timeout-duration must be more than 0')
  const settings = readinessSettings(options, timeout, io.env)
  const { probes, apis } = await openProbes(settings, io.env, log)
  const [api] = apis
  const { OperatorStatus } = await import('../../static-pods/monitor/operator-status.js')
  const request: MonitorRequest = {
    revision: revision ?? 0,
    ...places,
    resourceDirectory: pathArgument(resourceDir ?? ''),
    manifestLock: installerLockFile ? pathArgument(installerLockFile) : undefined,
    timeout,
    readyFor: settings.readyFor,
    probes,
    keepOwnManifest: options.keepOwnManifest === true,
    operator: api && operatorStatus && new OperatorStatus(api, operatorStatus, nodeNameOf(options, io.env) ?? '', log),
  }
  const [{ DurableCalls }, { monitor }, { unprovenPlaces, warnOfUnproven }, { reapOrphans }] = await Promise.all([
    import('../../durable/index.js'),
    import('../../static-pods/monitor/monitor.js'),
    import('../../static-pods/unproven-places.js'),
    import('../../agent/orphans.js'),
  ])
  reapOrphans()
  const durable = new DurableCalls()
  const { resourceDirectory, manifestDirectory } = request
  const directories = [{ path: resourceDirectory }, { path: manifestDirectory }]
  const unproven = warnOfUnproven(await unprovenPlaces(directories, { durable }), log)
  let outcome: MonitorOutcome
  try {
    outcome = await interruptible(io, (signal) => monitor(request, { durable, log, signal }))
  } finally {
    await api?.close()
  }
  await print(io.stdout, options.output, { ...outcome, ...unproven }, () => `${monitorSentence(outcome)}\n`)
  if (outcome.outcome !== 'ready') throw new Exit(exitCodes.failed)
}

/** OpenShift's names, or those of any pod that `install` has installed. @throws UsageError */
function placesOf(options: MonitorFlags): Pick<MonitorRequest, 'target' | 'pod' | 'manifest' | 'manifestDirectory'> {
  const { revision, targetName, resourceDir, manifestsDir, pod, manifest } = options
  if (pod !== undefined && targetName !== undefined) throw new UsageError('--pod and --target-name exclude each other')
  if (manifest !== undefined && pod === undefined) throw new UsageError('--manifest needs --pod')
  if (manifest !== undefined && manifestsDir !== undefined) {
    throw new UsageError('--manifest and --manifests-dir exclude each other')
  }
  requireFlags({
    '--revision': revision,
    ...(pod === undefined && { '--target-name (or --pod)': targetName }),
    '--resource-dir': resourceDir,
    ...(manifest === undefined && { '--manifests-dir': manifestsDir }),
  })
  const target = pod ?? targetName ?? ''
  const named = pod !== undefined && { pod }
  if (manifest === undefined) return { target, ...named, manifestDirectory: pathArgument(manifestsDir ?? '') }
  const live = pathArgument(manifest)
  return { target, ...named, manifest: basename(live), manifestDirectory: dirname(live) }
}

function monitorSentence(outcome: MonitorOutcome): string {
  const { revision } = outcome
  switch (outcome.outcome) {
    case 'ready':
      return `revision ${revision} is ready; the monitor recorded it as the last known good one`
    case 'fell-back':
      return `revision ${revision} did not become ready: fell back to revision ${outcome.to} (${outcome.message})`
    case 'nothing-to-fall-back-to':
      return `revision ${revision} did not become ready, and there is none to fall back to (${outcome.message})`
    case 'not-installed':
      return `revision ${revision} is not installed (${outcome.message})`
    case 'unknown':
      return `could not find out whether revision ${revision} is ready; it stays (${outcome.message})`
    case 'not-recorded':
      return `revision ${revision} is not recorded (${outcome.message})`
  }
}
