import { Command, Option } from 'commander'
import { logLevelOption, outputOption, type OutputOptions } from './common-options.js'
import { parseDuration } from './option-values.js'
import { collectRevisions, parseCount, parseName, parseRevisionFlag, verbosityOption } from './static-pod-options.js'

export interface PruneOptions extends OutputOptions {
  readonly maxEligibleRevision?: number
  readonly protectedRevisions?: readonly number[]
  readonly resourceDir?: string
  readonly staticPodName?: string
  readonly podManifestDir?: string
  readonly keep?: number
  readonly dryRun?: true
  readonly lockTimeout: number
  readonly v?: number
}

/** `holdfast prune …` */
export function pruneCommand(): Command {
  return (
    new Command('prune')
      .summary('remove old revisions of a static pod')
      .description(
        `Remove revisions of a static pod, DIR/NAME-REVISION, that nothing needs any more. Whatever the flags say, these stay: the
revision of the live manifest, those that any other manifest names, and the last known good one. Directories with names
that only look similar, and links, are left alone. A crash leaves each revision whole, or gone.`,
      )
      .addOption(
        new Option('--max-eligible-revision <number>', 'the newest revision that may go').argParser(parseRevisionFlag),
      )
      .addOption(
        new Option('--protected-revisions <numbers>', 'revisions that stay; repeat it, or use commas').argParser(
          collectRevisions,
        ),
      )
      .addOption(new Option('--keep <number>', 'so many of the newest stay').argParser(parseCount))
      .option('--resource-dir <dir>', 'where the revisions are')
      .addOption(new Option('--static-pod-name <name>', 'name of the pod: kube-apiserver-pod').argParser(parseName))
      .option(
        '--pod-manifest-dir <dir>',
        'manifests that protect what they name (default: manifests, beside --resource-dir; else /etc/kubernetes/manifests)',
      )
      .option('--dry-run', 'print what would go, and what stays for which reason')
      .addOption(
        new Option('--lock-timeout <duration>', 'wait so long for an installation that is under way')
          .argParser(parseDuration)
          .default(60_000, '1m0s'),
      )
      // Older versions of library-go's pruner took it, for temporary files that holdfast does not leave.
      .addOption(new Option('--cert-dir <dir>').hideHelp())
      .addOption(outputOption())
      .addOption(logLevelOption())
      .addOption(verbosityOption())
      .addHelpText(
        'after',
        `
Examples:
  holdfast prune --max-eligible-revision=7 --protected-revisions=5,6,7 \\
    --resource-dir=/etc/kubernetes/static-pod-resources --static-pod-name=kube-apiserver-pod
  holdfast prune --keep 3 --resource-dir /var/lib/web --static-pod-name web --pod-manifest-dir /etc/kubernetes/manifests --dry-run

Exit codes: 0 done, 1 at least one revision could not be removed, there is no resource directory, or it is not known what is in use, 2 wrong
usage, 75 an installation is under way.`,
      )
      .action(async (options: PruneOptions) => {
        const { runPrune } = await import('./run-prune.js')
        await runPrune(options)
      })
  )
}
