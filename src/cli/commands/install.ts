import { hostname } from 'node:os'
import type { Log } from '../../log.js'
import type { InstallLine, InstallRequest, InstallResult } from '../../static-pods/install/install-plan.js'
import { UsageError } from '../words/exit-codes.js'
import type { Io } from '../output/io.js'
import { createLogger } from '../output/logger.js'
import { openApi } from '../content/open-api.js'
import { print, changesText, outcomeText } from '../output/print.js'
import { interruptible } from '../signals.js'
import { table } from '../output/table.js'
import { pathArgument } from '../words/target.js'
import { command, flag } from '../words/command.js'
import type { FlagsOf } from '../words/types.js'
import {
  reportFlags,
  apiFlags,
  dryRunFlag,
  requireProvenFlag,
  nodeNameFlag,
  nodeNameOf,
  klogFlags,
  requireFlags,
  revisionFlags,
  placeFlags,
  revisionObjects,
} from '../words/options.js'

const flags = [
  ...revisionFlags,
  ...placeFlags,
  ...klogFlags,
  flag('--resources <dir>', "from files: the directory that holds the revision's content"),
  ...apiFlags,
  nodeNameFlag,
  flag('--check-host-paths', 'refuse a pod whose host paths do not exist on this node'),
  flag('--allow-older', 'install an older revision in place of a newer, live one'),
  dryRunFlag,
  requireProvenFlag,
  ...reportFlags,
]

type InstallFlags = FlagsOf<typeof flags>

/** `holdfast install [MANIFEST] …` */
export const installCommand = command({
  name: 'install',
  summary: 'install one revision of a static pod, from the API or from local files',
  description: `Installs a static pod with all that it needs on this node: first its revision's directory, complete, in one rename; then
its manifest, in one rename, as kubelet needs it. After a crash at any instant, the node has the old pod or the new one, never
a manifest that names missing files.

From the API: the flags are those of OpenShift's installer. In a pod (POD_NAME is set), it first waits for the
other installers on the node, and gives way to one of a newer revision. From files: name a manifest, and with --resources what goes into
the revision beside it; it asks no API server.`,
  words: [['[manifest]', 'a local manifest; without one, the pod comes from the API']],
  flags,
  examples: `  holdfast install -v=4 --revision=6 --namespace=openshift-kube-apiserver --pod=kube-apiserver-pod \\
    --resource-dir=/etc/kubernetes/static-pod-resources --pod-manifest-dir=/etc/kubernetes/manifests \\
    --configmaps=kube-apiserver-pod --configmaps=config --secrets=etcd-client --node-name=master-0
  holdfast install web.yaml --pod-manifest-dir /etc/kubernetes/manifests
  holdfast install web.yaml --pod-manifest-dir /etc/kubernetes/manifests --resources ./web \\
    --resource-dir /var/lib/web --revision 7 --dry-run`,
  exitCodes: `0 installed or already so, 1 not installed (the manifests are as they were), 2 wrong usage or a manifest that
kubelet would refuse, 3 published but not known to be durable, 75 another process holds a lock.`,
  run: ({ io, options, named }, manifest) => runInstall(io, manifest, options, named),
})

/** Flags of an installation from the API: the environment may hold some for other commands, so that only the line counts. */
const ofApi = [
  ...[...revisionFlags, ...apiFlags]
    .map((flag) => flag.attributeName())
    .filter((attribute) => !['revision', 'pod', 'namespace'].includes(attribute)),
  'namespace',
]

/** `named`: the flags that stand on the command line. */
async function runInstall(
  io: Io,
  manifest: string | undefined,
  options: InstallFlags,
  named: ReadonlyMap<string, string>,
): Promise<void> {
  const log = createLogger(io, options)
  if (options.timeoutDuration === 0) throw new UsageError('--timeout-duration must be more than 0')
  const result = await interruptible(io, (signal) =>
    manifest === undefined ? fromApi(io, options, log, signal) : fromFiles(io, manifest, options, named, log, signal),
  )
  await warnOfFirstUnproven(result, log)
  const dryRun = options.dryRun === true
  await print(io.stdout, options.output, dryRun ? { dryRun, ...result } : result, () =>
    installText([...result.directories, ...result.manifests], dryRun),
  )
}

async function fromApi({ env }: Io, options: InstallFlags, log: Log, signal: AbortSignal): Promise<InstallResult> {
  const { resourceDir, podManifestDir, resources } = options
  const nodeName = nodeNameOf(options, env)
  const objects = revisionObjects(options, {
    '--resource-dir': resourceDir,
    '--pod-manifest-dir': podManifestDir,
    '--node-name (or NODE_NAME)': nodeName,
  })
  if (resources !== undefined)
    throw new UsageError('--resources belongs to an installation from files: name a manifest too')
  const { certificates } = objects
  const { api } = await openApi(options, env, log)
  const [{ DurableCalls }, { installFromApi }] = await Promise.all([
    import('../../durable/index.js'),
    import('../../static-pods/install/install-from-api.js'),
  ])
  try {
    return await installFromApi(
      {
        objects: {
          ...objects,
          certificates: certificates && { ...certificates, directory: pathArgument(certificates.directory) },
        },
        nodeName: nodeName ?? '',
        // Where it runs as an installer pod.
        podName: env.POD_NAME || undefined,
        resourceDirectory: pathArgument(resourceDir ?? ''),
        ...installRequest(options),
      },
      { api, durable: new DurableCalls(), log, signal, instance: env.POD_NAME || hostname() },
    )
  } finally {
    await api.close()
  }
}

async function fromFiles(
  { env }: Io,
  manifest: string,
  options: InstallFlags,
  named: ReadonlyMap<string, string>,
  log: Log,
  signal: AbortSignal,
): Promise<InstallResult> {
  const { podManifestDir, resourceDir, revision, resources } = options
  requireFlags({ '--pod-manifest-dir': podManifestDir })
  if (revision === undefined && (resources !== undefined || resourceDir !== undefined)) {
    throw new UsageError('--revision is missing: --resources and --resource-dir install a revision')
  }
  if (revision !== undefined) requireFlags({ '--resource-dir': resourceDir })
  const foreign = ofApi.find((attribute) => named.has(attribute))
  if (foreign !== undefined)
    throw new UsageError(
      `${named.get(foreign) ?? ''} belongs to an installation from the API: leave it out, or name no manifest`,
    )
  const [{ DurableCalls, disableCoreDumps }, { installFromFiles }] = await Promise.all([
    import('../../durable/index.js'),
    import('../../static-pods/install/install-from-files.js'),
  ])
  disableCoreDumps()
  return installFromFiles({
    durable: new DurableCalls(),
    log,
    signal,
    files: {
      manifest,
      pod: options.pod,
      revision:
        revision === undefined
          ? undefined
          : { number: revision, resourceDirectory: pathArgument(resourceDir ?? ''), resources },
      nodeName: nodeNameOf(options, env),
    },
    ...installRequest(options),
  })
}

function installRequest(options: InstallFlags): InstallRequest {
  const { podManifestDir = '', podManifestsLockFile, timeoutDuration } = options
  return {
    manifestDirectory: pathArgument(podManifestDir),
    manifestLock: podManifestsLockFile ? pathArgument(podManifestsLockFile) : undefined,
    timeout: timeoutDuration,
    dryRun: options.dryRun === true,
    requireProven: options.requireProven === true,
    allowOlder: options.allowOlder === true,
    checkHostPaths: options.checkHostPaths === true,
  }
}

async function warnOfFirstUnproven(result: InstallResult, log: Log): Promise<void> {
  const unproven = [...result.directories, ...result.manifests].find((line) => line.unproven)
  if (unproven === undefined) return
  const { warnUnproven } = await import('../../unproven.js')
  warnUnproven(log, unproven.path)
}

function installText(lines: readonly InstallLine[], dry: boolean): string {
  return lines
    .map(
      ({ path, outcome, digest, changes }) =>
        table([[outcomeText(outcome, dry), path, digest ?? '']]) + changesText(changes),
    )
    .join('')
}
