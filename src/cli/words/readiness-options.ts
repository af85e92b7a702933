/* How `monitor` and `rollout` find out whether a pod is ready: their flags, and the probes that these open. */
import { InvalidArgumentError } from 'commander'
import type { Log } from '../../log.js'
import type { ApiClient } from '../../kubernetes/connection/client.js'
import type { ReadinessSettings, Probe } from '../../static-pods/ready/readiness.js'
import type { ProbeFiles } from '../../static-pods/ready/probe-files.js'
import type { ApiWay } from '../../static-pods/ready/probe-mirror-pod.js'
import { UsageError } from './exit-codes.js'
import { openApi, openApiWays, type ApiFlags } from '../content/open-api.js'
import { flag } from './command.js'
import type { FlagsOf } from './types.js'
import { parseDurationFlag, parseName } from './option-values.js'
import { apiFlags, nodeNameFlag, nodeNameOf, requireFlags } from './options.js'
import { pathArgument } from './target.js'

export const readinessFlags = [
  flag('--ready-url <url>', 'ready when a GET answers 200 to 299; repeat it for several', { parse: collectUrls }),
  flag('--ready-ca <file>', 'certificate authorities for --ready-url, PEM'),
  flag('--ready-exec <command>', 'ready when /bin/sh -c COMMAND exits with 0; REVISION is in its environment', {
    parse: collectCommands,
  }),
  flag(
    '--ready-for <duration>',
    'how long it must answer so, without a failure, within the timeout (default: 10s, or 5s longer than a liveness probe needs to kill within 30s; half of the timeout, if that is shorter)',
    { parse: parseDurationFlag },
  ),
  flag('--kubelet-url <url>', 'ask this kubelet for the pod: https://NODE:10250', { parse: parseUrlFlag }),
  flag('--kubelet-ca <file>', 'certificate authorities for --kubelet-url, PEM'),
  flag('--kubelet-cert <file>', 'client certificate for --kubelet-url, PEM'),
  flag('--kubelet-key <file>', 'its key, PEM'),
  flag('--kubelet-token-file <file>', 'a token for --kubelet-url'),
  ...apiFlags,
  flag('-n, --namespace <name>', 'namespace of the pod, if its manifest names none', {
    parse: parseName,
    env: 'HOLDFAST_NAMESPACE',
  }),
  nodeNameFlag,
]

type ReadinessFlags = FlagsOf<typeof readinessFlags>

function parseUrlFlag(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !['http:', 'https:'].includes(url.protocol) || url.username || url.password) {
    throw new InvalidArgumentError(
      'It must be an http or https URL without credentials: https://localhost:6443/readyz.',
    )
  }
  return url
}

function collectUrls(text: string, before: readonly URL[] = []): URL[] {
  return [...before, parseUrlFlag(text)]
}

function collectCommands(text: string, before: readonly string[] = []): string[] {
  // The shell would end with 0.
  if (text.trim() === '') throw new InvalidArgumentError('It is empty; an empty command always succeeds.')
  return [...before, text]
}

/** The flags, checked together, with absolute paths: as a file can keep them. `timeout`: the command's. @throws UsageError */
export function readinessSettings(flags: ReadinessFlags, timeout: number, env: NodeJS.ProcessEnv): ReadinessSettings {
  refuseReadinessFlags(flags, timeout)
  const { readyFor, readyUrl = [], readyExec = [], kubeconfig, kubeletUrl } = flags
  const path = (text: string | undefined): string | null => (text ? pathArgument(text) : null)
  const nodeName = kubeconfig ? nodeNameOf(flags, env) : undefined
  if (kubeconfig) requireFlags({ '--node-name (or NODE_NAME)': nodeName })
  return {
    ...(readyFor !== undefined && { readyFor }),
    urls: readyUrl.map(({ href }) => href),
    authority: path(flags.readyCa),
    commands: readyExec,
    kubelet: kubeletUrl
      ? {
          url: kubeletUrl.href,
          authority: path(flags.kubeletCa),
          certificate: path(flags.kubeletCert),
          key: path(flags.kubeletKey),
          tokenFile: path(flags.kubeletTokenFile),
        }
      : null,
    mirrorPod:
      kubeconfig && nodeName
        ? {
            kubeconfig: pathArgument(kubeconfig),
            context: flags.context ?? null,
            namespace: flags.namespace ?? null,
            nodeName,
          }
        : null,
  }
}

/** @throws UsageError: flags that mean nothing together */
function refuseReadinessFlags(flags: ReadinessFlags, timeout: number): void {
  const { readyFor, readyUrl = [], readyExec = [], kubeconfig, kubeletUrl } = flags
  if (readyFor !== undefined && readyFor > 0 && readyFor >= timeout) {
    throw new UsageError('--ready-for must be shorter than the timeout: a pod needs time to start before it answers')
  }
  if (flags.readyCa !== undefined && !readyUrl.some(({ protocol }) => protocol === 'https:')) {
    throw new UsageError('--ready-ca needs a --ready-url with https')
  }
  const secure = {
    '--kubelet-ca': flags.kubeletCa,
    '--kubelet-cert': flags.kubeletCert,
    '--kubelet-key': flags.kubeletKey,
  }
  const given = Object.entries({ ...secure, '--kubelet-token-file': flags.kubeletTokenFile }).find(([, value]) => value)
  if (given && kubeletUrl?.protocol !== 'https:') throw new UsageError(`${given[0]} needs a --kubelet-url with https`)
  if ((flags.kubeletCert === undefined) !== (flags.kubeletKey === undefined)) {
    throw new UsageError('--kubelet-cert and --kubelet-key go together')
  }
  if (!kubeconfig && !kubeletUrl && readyUrl.length === 0 && readyExec.length === 0) {
    throw new UsageError(
      'name at least one check of readiness: --ready-url, --ready-exec, --kubelet-url or --kubeconfig',
    )
  }
}

export interface OpenProbes {
  readonly probes: readonly Probe[]
  /** To be closed in the end. */
  readonly apis: readonly ApiClient[]
}

/**
 * Opens the probes that the settings name. `files`: of a rollout.
 * @throws UsageError, InvalidInput for files that cannot be right
 */
export async function openProbes(
  settings: ReadinessSettings,
  env: NodeJS.ProcessEnv,
  log: Log,
  files?: ProbeFiles,
): Promise<OpenProbes> {
  const { urls, authority, commands, kubelet, mirrorPod } = settings
  const [{ checkAuthority, urlProbe }, { execProbe }, { kubeletProbe }, { mirrorPodProbe }] = await Promise.all([
    import('../../static-pods/ready/probe-url.js'),
    import('../../static-pods/ready/probe-exec.js'),
    import('../../static-pods/ready/probe-kubelet.js'),
    import('../../static-pods/ready/probe-mirror-pod.js'),
  ])
  // A rollout that has begun, or is resumed, may have lost them: that is its failure, and no wrong flag.
  if (files === undefined) {
    if (authority !== null) await checkAuthority(authority)
    if (kubelet?.authority) await checkAuthority(kubelet.authority, '--kubelet-ca')
    if (kubelet?.certificate) await checkAuthority(kubelet.certificate, '--kubelet-cert')
  }
  const probes: Probe[] = [
    ...urls.map((url) => urlProbe(new URL(url), authority ?? undefined, files)),
    ...commands.map((command) => execProbe(command)),
    ...(kubelet ? [kubeletProbe(kubelet, files)] : []),
  ]
  if (kubelet?.key || kubelet?.tokenFile) (await import('../../durable/index.js')).disableCoreDumps()
  if (mirrorPod === null) return { probes, apis: [] }
  const { kubeconfig, context, nodeName } = mirrorPod
  const namespace = mirrorPod.namespace ?? undefined
  const ways = files
    ? await openApiWays({ kubeconfig, context: context ?? '' }, env, log, files.versions)
    : [await wayOf({ kubeconfig, ...(context !== null && { context }) }, env, log)]
  probes.push(mirrorPodProbe(ways, nodeName, namespace))
  return { probes, apis: ways.map(({ api }) => api) }
}

/** @throws UsageError */
async function wayOf(flags: ApiFlags, env: NodeJS.ProcessEnv, log: Log): Promise<ApiWay> {
  const { api } = await openApi(flags, env, log)
  return { api, namespace: () => Promise.resolve(api.defaultNamespace) }
}
