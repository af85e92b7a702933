import { Command } from 'commander'
import type { Io } from '../output/io.js'
import { logLevels, type LogOptions } from '../output/logger.js'
import { Option } from '../words/option.js'
import { logFormatOption } from '../words/options.js'

/** `holdfast demo` */
export function demoCommand(io: Io): Command {
  return new Command('demo')
    .summary('a guided tour: the agent on example objects, no cluster needed')
    .description(
      `Runs the real agent on example objects in files: a Secret with a certificate and its key, and a ConfigMap. Shows what it
publishes, swaps an update in, and runs until Ctrl-C. It touches nothing outside of its own directory.`,
    )
    .option(
      '--directory <dir>',
      'work in this directory and keep it (default: a temporary directory, removed at the end)',
    )
    .addOption(
      new Option('--log-level <level>', 'least severe level that is logged, to standard error')
        .choices(logLevels)
        .default('warn'),
    )
    .addOption(logFormatOption('text'))
    .addHelpText(
      'after',
      `
Examples:
  holdfast demo
  holdfast demo --directory ./demo`,
    )
    .action(async (options: LogOptions & { directory?: string }) => {
      const { runDemo } = await import('../demo/tour.js')
      await runDemo(io, options.directory, options)
    })
}
