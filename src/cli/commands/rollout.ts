import type { ProbeFiles } from '../../static-pods/ready/probe-files.js'
import { noLimit, type ReadinessSettings } from '../../static-pods/ready/readiness.js'
import type { PlannedRollout, RolloutMeans, RolloutOutcome } from '../../static-pods/rollout/rollout.js'
import type { RolloutRequest } from '../../static-pods/rollout/rollout-plan.js'
import { Exit, exitCodes, UsageError } from '../words/exit-codes.js'
import type { Io } from '../output/io.js'
import { createLogger } from '../output/logger.js'
import { parseDurationFlag } from '../words/option-values.js'
import { escaped } from '../../message-text.js'
import { changesText, outcomeText, print } from '../output/print.js'
import { table } from '../output/table.js'
import { openProbes, readinessFlags, readinessSettings } from '../words/readiness-options.js'
import { interruptible } from '../signals.js'
import { pathArgument, targetArgument } from '../words/target.js'
import { command, flag } from '../words/command.js'
import type { FlagsOf } from '../words/types.js'
import {
  reportFlags,
  type OutputFlags,
  dryRunFlag,
  manifestDirectoryFlag,
  manifestsLockFlag,
  requireProvenFlag,
  requireFlags,
} from '../words/options.js'

const flags = [
  manifestDirectoryFlag(),
  flag('--resources <dir>', 'the new content of --resource-dir; holdfast copies it, with its owners, modes and ACLs'),
  flag('--resource-dir <dir>', 'the directory that the pods read'),
  manifestsLockFlag,
  flag('--timeout <duration>', 'how long each pod may take to become ready; 0: without a limit', {
    parse: parseTimeout,
    fallback: 300_000,
    shown: '5m',
  }),
  flag('--no-fallback', 'leave a pod that is not ready as it is, for what cannot go back (a schema of etcd)'),
  flag('--resume', 'finish or take back a rollout that was interrupted, as its own flags said'),
  flag('--take-back', 'with --resume: take it back at once, without a look at the new pods'),
  flag(
    '--status',
    'show what a rollout stands at, in --pod-manifest-dir or in all usual directories, and change nothing',
  ),
  flag('--allow-older', 'make an older revision live in place of a newer one'),
  ...readinessFlags,
  dryRunFlag,
  requireProvenFlag,
  ...reportFlags,
]

type RolloutFlags = FlagsOf<typeof flags>

/** `holdfast rollout MANIFEST …` */
export const rolloutCommand = command({
  name: 'rollout',
  summary: 'change static pods one after the other; take all back if one does not become ready',
  description: `Makes each MANIFEST live, and watches its pod. Ready for --ready-for: the next one. Not ready in time: every manifest goes back
to what it was before, byte for byte, and the exit code is 1. With --resources, the content of DIR takes the place of --resource-dir in the
same rollout; the old directory stays, out of sight, until every pod is ready and no process uses it, and the way back exchanges the two again.

holdfast finds the live manifest of the same pod, whatever its file name. It writes down each step before it makes it: if it is killed or the
power is cut, the next rollout, or --resume in a unit at boot, finishes it or takes it back.

A pod is ready when all of --ready-url, --ready-exec, --kubelet-url and, with --kubeconfig, the mirror pod say so. The last two tell the new
pod from the old one. The others cannot: with these alone, an answer counts after a failed one, or after 30 s.`,
  words: [['[manifests...]', 'files, each with one pod, in the order in which the pods change']],
  flags,
  examples: `  holdfast rollout kube-apiserver.yaml --pod-manifest-dir /etc/kubernetes/manifests --timeout 5m \\
    --ready-url https://node-1:6443/readyz --ready-ca /etc/kubernetes/pki/ca.crt
  holdfast rollout etcd.yaml kube-apiserver.yaml --pod-manifest-dir /etc/kubernetes/manifests \\
    --resources ./pki.new --resource-dir /etc/kubernetes/pki --kubelet-url https://node-1:10250 \\
    --kubelet-ca /var/lib/kubelet/pki/kubelet.crt --kubelet-cert /root/admin.crt --kubelet-key /root/admin.key
  holdfast rollout --resume --pod-manifest-dir /etc/kubernetes/manifests
  holdfast rollout --status`,
  exitCodes: `0 every pod is ready, or nothing to do, 1 taken back, or not known to be ready, or --resume where no rollout was ever begun, 2 wrong usage, 3 written but not
known to be durable, 75 another rollout is under way,
or another program holds a lock (then --resume goes on).`,
  run: ({ io, options, named }, manifests) => {
    if (options.status)
      return showStatus(io, options, ignoredFlag(named, ofStatus) ?? (manifests.length > 0 && 'MANIFEST'))
    if (options.resume) refuseFlags(named)
    return runRollout(io, manifests, options)
  },
})

/** As kubectl rollout status has it. */
function parseTimeout(text: string): number {
  return parseDurationFlag(text) || noLimit
}

/** Flags that count for a resume, too. */
const ofResume = new Set(['resume', 'takeBack', 'podManifestDir', ...reportFlags.map((one) => one.attributeName())])

/** Those of a look. */
const ofStatus = new Set([...ofResume, 'status'])
for (const flag of ['resume', 'takeBack']) ofStatus.delete(flag)

/** @throws UsageError for a flag that a resume would ignore: the state file says how the rollout goes on */
function refuseFlags(named: ReadonlyMap<string, string>): void {
  const ignored = ignoredFlag(named, ofResume)
  if (ignored === undefined) return
  throw new UsageError(
    `--resume goes on as the flags of the interrupted rollout said: leave out ${ignored}, or name the manifests and all flags ` +
      'again, without --resume: the same rollout then goes on with them',
  )
}

function ignoredFlag(named: ReadonlyMap<string, string>, known: ReadonlySet<string>): string | undefined {
  return [...named].find(([attribute]) => !known.has(attribute))?.[1]
}

/** `ignored`: what stands on the line without a meaning for a look. */
async function showStatus(io: Io, { podManifestDir, output }: RolloutFlags, ignored: string | false): Promise<void> {
  if (ignored) throw new UsageError(`--status only looks: leave out ${ignored}`)
  const [{ DurableCalls }, { checkManifestDirectory }, { rolloutStatus, rolloutLine, usualManifestDirectories }] =
    await Promise.all([
      import('../../durable/index.js'),
      import('../../static-pods/rollout/rollout-plan.js'),
      import('../../static-pods/rollout/rollout-status.js'),
    ])
  const named = podManifestDir === undefined ? usualManifestDirectories : [pathArgument(podManifestDir)]
  const durable = new DurableCalls()
  if (podManifestDir !== undefined) await checkManifestDirectory(pathArgument(podManifestDir), durable)
  const all = await Promise.all(named.map((directory) => rolloutStatus(directory, durable)))
  // Of directories that nobody named, those that have had a rollout.
  const rollouts = podManifestDir === undefined ? all.filter(({ state }) => state !== 'none') : all
  await print(io.stdout, output, { rollouts }, () =>
    rollouts.length === 0
      ? `no rollout was ever begun in ${named.join(', ')}\n`
      : rollouts.map((rollout) => `${escaped(rolloutLine(rollout))}\n`).join(''),
  )
}

async function runRollout(io: Io, paths: readonly string[], options: RolloutFlags): Promise<void> {
  requireFlags({ '--pod-manifest-dir': options.podManifestDir })
  const manifestDirectory = pathArgument(options.podManifestDir ?? '')
  if (options.resume && paths.length > 0)
    throw new UsageError('--resume takes no MANIFEST: it ends what was interrupted')
  if (options.takeBack && !options.resume) throw new UsageError('--take-back goes with --resume')
  const log = createLogger(io, options)
  const request = options.resume ? undefined : await rolloutRequest(io, paths, manifestDirectory, options)
  const [{ DurableCalls }, { rehearse, rollout, resume }] = await Promise.all([
    import('../../durable/index.js'),
    import('../../static-pods/rollout/rollout.js'),
  ])
  const closing: (() => Promise<unknown>)[] = []
  const open = async (settings: ReadinessSettings, files?: ProbeFiles) => {
    const { probes, apis } = await openProbes(settings, io.env, log, files)
    closing.push(...apis.map((api) => () => api.close()))
    return probes
  }
  let outcome: RolloutOutcome | PlannedRollout
  try {
    // A mistake in the readiness flags must show before anything changes.
    if (request) await open(request.readiness)
    outcome = await interruptible<RolloutOutcome | PlannedRollout>(io, async (signal) => {
      const means: RolloutMeans = { durable: new DurableCalls(), log, signal, openProbes: open }
      if (request && options.dryRun) return rehearse(request, means)
      return request
        ? rollout(request, means)
        : resume(manifestDirectory, means, { takeBack: options.takeBack === true })
    })
  } finally {
    for (const close of closing) await close()
  }
  if (!('outcome' in outcome)) return printPlan(io, options, outcome)
  const lines = [rolloutSentence(outcome), ...(outcome.kept ?? [])]
  await print(io.stdout, options.output, outcome, () => lines.map((line) => `${line}\n`).join(''))
  const isDone = ['ready', 'unchanged', 'nothing-to-resume'].includes(outcome.outcome)
  if (!isDone) throw new Exit(exitCodes.failed)
}

/** @throws UsageError, InvalidInput */
async function rolloutRequest(
  io: Io,
  paths: readonly string[],
  manifestDirectory: string,
  options: RolloutFlags,
): Promise<RolloutRequest> {
  const { resources, resourceDir, podManifestsLockFile } = options
  if (paths.length === 0) throw new UsageError('name at least one MANIFEST, or --resume')
  if ((resources === undefined) !== (resourceDir === undefined)) {
    throw new UsageError('--resources and --resource-dir go together: what is new, and where the pods read it')
  }
  const readiness = readinessSettings(options, options.timeout, io.env)
  const [{ readManifests }, { readRolloutTree }] = await Promise.all([
    import('../../static-pods/rollout/rollout-plan.js'),
    import('../../static-pods/rollout/rollout-tree.js'),
  ])
  const manifests = await readManifests(paths.map(pathArgument))
  return {
    manifestDirectory,
    manifests,
    tree:
      resources && resourceDir
        ? await readRolloutTree(
            pathArgument(resources),
            await targetArgument(resourceDir),
            options.requireProven === true,
          )
        : undefined,
    manifestLock: podManifestsLockFile ? pathArgument(podManifestsLockFile) : undefined,
    timeout: options.timeout,
    fallback: options.fallback,
    allowOlder: options.allowOlder === true,
    requireProven: options.requireProven === true,
    readiness,
  }
}

async function printPlan(io: Io, { output }: OutputFlags, plan: PlannedRollout): Promise<void> {
  const { manifests, tree } = plan
  await print(io.stdout, output, { dryRun: true, ...plan }, () => {
    if (manifests.length === 0) return `${nothingToDo}\n`
    const exchanged = tree ? table([[outcomeText('replaced', true), tree.path]]) + changesText(tree.changes) : ''
    return exchanged + manifests.map(({ path, outcome }) => table([[outcomeText(outcome, true), path]])).join('')
  })
}

const nothingToDo = 'unchanged: the manifests and the directory are live already'

function rolloutSentence({ outcome, manifests, message = '', old }: RolloutOutcome): string {
  switch (outcome) {
    case 'ready':
      return `ready: ${manifests.join(', ')}`
    case 'unchanged':
      return nothingToDo
    case 'taken-back':
      return `taken back${manifests.length > 0 ? ` (${manifests.join(', ')})` : ''}: ${[message, ...(old === undefined ? [] : [old])].join('; ')}`
    case 'not-ready':
      return `not ready, and it stays (--no-fallback): ${message}`
    case 'nothing-to-resume':
      return `no rollout was interrupted: ${message}`
    case 'never-begun':
      return `${message}: is this the directory of the rollout's --pod-manifest-dir?`
  }
}
