import type { PruneLine } from '../../static-pods/prune/prune.js'
import { Exit, exitCodes, UsageError } from '../words/exit-codes.js'
import type { Io } from '../output/io.js'
import { createLogger } from '../output/logger.js'
import { collectRevisions, parseDurationFlag, parseName, parseEligibleRevision } from '../words/option-values.js'
import { print, outcomeText } from '../output/print.js'
import { interruptible } from '../signals.js'
import { table } from '../output/table.js'
import { pathArgument } from '../words/target.js'
import { command, flag, parseCount } from '../words/command.js'
import type { FlagsOf } from '../words/types.js'
import { reportFlags, requireProvenFlag, acceptedFlag, klogFlags, requireFlags } from '../words/options.js'

const flags = [
  ...klogFlags,
  flag('--max-eligible-revision <number>', 'the newest revision that may be removed', { parse: parseEligibleRevision }),
  flag('--protected-revisions <numbers>', 'revisions that stay; repeat it, or use commas', { parse: collectRevisions }),
  flag('--keep <number>', 'how many of the newest revisions stay', { parse: parseCount }),
  flag('--resource-dir <dir>', 'where the revisions are'),
  flag('--static-pod-name <name>', 'name of the pod: kube-apiserver-pod', { parse: parseName }),
  flag(
    '--pod-manifest-dir <dir>',
    'manifests that protect what they name (default: manifests, beside --resource-dir; else /etc/kubernetes/manifests)',
  ),
  requireProvenFlag,
  flag('--dry-run', 'print what would be removed, and why the rest stays'),
  flag('--lock-timeout <duration>', 'how long to wait for a running installation', {
    parse: parseDurationFlag,
    fallback: 60_000,
    shown: '1m0s',
  }),
  // Older versions of library-go's pruner took it, for temporary files that holdfast does not leave.
  acceptedFlag('--cert-dir <dir>'),
  ...reportFlags,
]

type PruneFlags = FlagsOf<typeof flags>

/** `holdfast prune …` */
export const pruneCommand = command({
  name: 'prune',
  summary: 'remove old revisions of a static pod',
  description: `Removes revisions of a static pod, DIR/NAME-REVISION, that nothing needs any more. Whatever the flags say, these stay: the
revision of the live manifest, those that any other manifest names, and the last known good one. Directories with names
that only look similar, and links, stay too. After a crash, each revision is intact or gone.`,
  flags,
  examples: `  holdfast prune --max-eligible-revision=7 --protected-revisions=5,6,7 \\
    --resource-dir=/etc/kubernetes/static-pod-resources --static-pod-name=kube-apiserver-pod
  holdfast prune --keep 3 --resource-dir /var/lib/web --static-pod-name web --pod-manifest-dir /etc/kubernetes/manifests --dry-run`,
  exitCodes: `0 done, 1 at least one revision was not removed, there is no resource directory, or it is unknown what is in use, 2 wrong
usage, 75 an installation is running.`,
  run: ({ io, options }) => runPrune(io, options),
})

async function runPrune(io: Io, options: PruneFlags): Promise<void> {
  const { resourceDir, staticPodName, podManifestDir, maxEligibleRevision, keep, protectedRevisions } = options
  requireFlags({ '--resource-dir': resourceDir, '--static-pod-name': staticPodName })
  if (maxEligibleRevision === undefined && keep === undefined) {
    throw new UsageError('name --max-eligible-revision or --keep: what may be removed?')
  }
  const [{ DurableCalls }, { manifestDirectoryOf }, { prune }] = await Promise.all([
    import('../../durable/index.js'),
    import('../../static-pods/prune/revisions-in-use.js'),
    import('../../static-pods/prune/prune.js'),
  ])
  const resourceDirectory = pathArgument(resourceDir ?? '')
  const dryRun = options.dryRun === true
  const log = createLogger(io, options)
  const named = podManifestDir ? pathArgument(podManifestDir) : undefined
  const manifestDirectory = await manifestDirectoryOf(named, resourceDirectory, log)
  const request = {
    resourceDirectory,
    manifestDirectory,
    dryRun,
    pod: staticPodName ?? '',
    maxEligible: maxEligibleRevision,
    protectedRevisions: protectedRevisions ?? [],
    keep: keep ?? 0,
    lockTimeout: options.lockTimeout,
    requireProven: options.requireProven === true,
  }
  const lines = await interruptible(io, (signal) => prune(request, new DurableCalls(), log, signal))
  await print(io.stdout, options.output, { ...(dryRun && { dryRun }), revisions: lines }, () =>
    lines.length === 0
      ? `${resourceDirectory} holds no revision of ${staticPodName ?? ''}\n`
      : table(lines.map((line) => revisionRow(line, dryRun))),
  )
  if (lines.some(({ outcome }) => outcome === 'failed')) throw new Exit(exitCodes.failed)
}

function revisionRow({ outcome, path, why }: PruneLine, dry: boolean): string[] {
  return [outcomeText(outcome, dry), path, why ?? '']
}
