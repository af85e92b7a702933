import { Command, Option } from 'commander'
import {
  configOption,
  lockTimeoutOption,
  logLevelOption,
  outputOption,
  requireProvenOption,
  sourceOptions,
  type OutputOptions,
  type SourceOptions,
} from './common-options.js'
import { parseDuration } from './option-values.js'

export interface SyncOptions extends SourceOptions, OutputOptions {
  readonly config?: string
  readonly timeout: number
  readonly allowStale?: true
  readonly dryRun?: true
  readonly hooks?: true
  readonly requireProven?: true
  readonly lockTimeout: number
}

/** `holdfast sync --config FILE` */
export function syncCommand(): Command {
  const command = new Command('sync')
    .summary('publish every configured directory once, then exit: for init containers')
    .description(
      `One pass: asks the source for all objects, publishes every directory that is not as they say, and ends. What is asked for
and how it is written are the agent's own ways; hooks are left to the agent, unless --hooks is given.`,
    )
    .addOption(configOption())
    .addOption(
      new Option('--timeout <duration>', 'how long to wait for the source')
        .argParser(parseDuration)
        .default(60_000, '60s'),
    )
    .option('--allow-stale', 'a source that does not answer is no fault where the directory is whole by its record')
    .option('--dry-run', 'print what would change, paths and digests, and write nothing')
    .option('--hooks', 'run the hooks, too; one that fails is exit code 1, though what it is about is published')
    .addOption(requireProvenOption())
    .addOption(lockTimeoutOption())
  for (const option of sourceOptions()) command.addOption(option)
  return command
    .addOption(outputOption())
    .addOption(logLevelOption())
    .addHelpText(
      'after',
      `
Examples:
  holdfast sync --config /etc/holdfast.yaml --timeout 60s
  holdfast sync --config /etc/holdfast.yaml --dry-run
  holdfast sync --config /etc/holdfast.yaml --allow-stale -o json

Exit codes: 0 every directory is as asked, 1 at least one is not (it was not changed), or a hook failed that --hooks
asked for, 2 wrong usage or configuration, 3 published but not known to be durable, 75 another process holds a lock.`,
    )
    .action(async (options: SyncOptions) => {
      const { runSync } = await import('./run-sync.js')
      await runSync(options)
    })
}
