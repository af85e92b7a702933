import { Command, Option } from 'commander'
import {
  configOption,
  logLevelOption,
  outputOption,
  requireProvenOption,
  sourceOptions,
  type OutputOptions,
  type SourceOptions,
} from './common-options.js'
import { parseDuration } from './option-values.js'

export interface CheckCommandOptions extends SourceOptions, OutputOptions {
  readonly config?: string
  readonly timeout: number
  readonly requireProven?: true
}

/** `holdfast check --config FILE` */
export function checkCommand(): Command {
  const command = new Command('check')
    .summary('is this node fit: file systems, permissions, API access, free space')
    .description(
      `Tells whether this node is fit for the configuration, and what to do where it is not. For each directory: mount, file
system, an exchange tried beside the target, free space, owners, hooks, certificates against the clock; for the process:
capabilities, AIO, limits; for the source: whether it can be reached, and each permission that is needed. Run it where the
agent runs: in its pod, as its user.

Two empty directories are made beside each target, exchanged, and removed. Nothing else is written, no hook is run, and no
object is read from the API server.`,
    )
    .addOption(configOption())
    .addOption(
      new Option('--timeout <duration>', 'wait so long for each answer of the API server')
        .argParser(parseDuration)
        .default(10_000, '10s'),
    )
    .addOption(requireProvenOption())
  for (const option of sourceOptions()) command.addOption(option)
  return command
    .addOption(outputOption())
    .addOption(logLevelOption())
    .addHelpText(
      'after',
      `
Examples:
  holdfast check --config /etc/holdfast.yaml
  holdfast check --config /etc/holdfast.yaml -o json
  kubectl -n holdfast exec daemonset/holdfast -- holdfast check --config /etc/holdfast/holdfast.yaml

Exit codes: 0 fit (there may be warnings), 2 wrong usage or configuration, 4 a fault was found.`,
    )
    .action(async (options: CheckCommandOptions) => {
      const { runCheck } = await import('./run-check.js')
      await runCheck(options)
    })
}
