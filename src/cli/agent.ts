import { Command, Option } from 'commander'
import type { ServerConfiguration } from '../config/types.js'
import {
  configOption,
  logLevelOption,
  requireProvenOption,
  sourceOptions,
  type OutputOptions,
  type SourceOptions,
} from './common-options.js'
import { parseListen } from './option-values.js'

interface AgentCommandOptions extends SourceOptions, Pick<OutputOptions, 'logLevel'> {
  readonly config?: string
  readonly listen?: ServerConfiguration
  readonly requireProven?: true
}

/** `holdfast agent --config FILE` */
export function agentCommand(): Command {
  const command = new Command('agent')
    .summary('keep the configured directories as their source says, until it is stopped')
    .description(
      `The daemon: keeps each configured directory as its Secrets and ConfigMaps say, whole and durable, and repairs what
somebody else changed. Logs go to standard error, state to the configured stateDirectory.

SIGHUP: reads the configuration again (an invalid one is reported, and the old one stays in force) and compares the disk.
SIGTERM: finishes or gives up what is in flight where every target is whole, and ends with 0.`,
    )
    .addOption(configOption())
    .addOption(
      new Option('--listen <address:port>', 'serve /livez, /readyz and /metrics here instead of server.address')
        .argParser(parseListen)
        .env('HOLDFAST_LISTEN'),
    )
  for (const option of sourceOptions()) command.addOption(option)
  return command
    .addOption(requireProvenOption().env('HOLDFAST_REQUIRE_PROVEN'))
    .addOption(logLevelOption())
    .addHelpText(
      'after',
      `
Examples:
  holdfast agent --config /etc/holdfast.yaml
  HOLDFAST_CONFIG=/etc/holdfast.yaml NODE_NAME=node-1 holdfast agent --log-level debug
  kill -HUP PID

Exit codes: 0 after SIGTERM, 1 it could not start, 2 wrong usage or configuration, 128+N ended by another signal.`,
    )
    .action(async (options: AgentCommandOptions) => {
      const { runAgent } = await import('./run-agent.js')
      await runAgent(options, options.logLevel)
    })
}
