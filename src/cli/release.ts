import { Command } from 'commander'
import { printJson, type Io } from './io.js'
import { createLogger } from './logger.js'
import { lockTimeoutOption, logFormatOption, logLevelOption, outputOption, type OutputOptions } from './options.js'
import { interruptible } from './signals.js'
import { targetArgument } from './target.js'

/** `holdfast release PATH` */
export function releaseCommand(io: Io): Command {
  return new Command('release')
    .summary('let go of what "hold" or "rollback" keeps as it is')
    .description(
      `Ends the hold of PATH, and the pin that "rollback" has set, on the disk before this command ends with 0. The agent then publishes
what has come meanwhile, and repairs what has drifted. Where PATH is neither held nor pinned, nothing is written.`,
    )
    .argument('<path>', 'a directory or file that is held or pinned')
    .addOption(lockTimeoutOption())
    .addOption(outputOption())
    .addOption(logLevelOption())
    .addOption(logFormatOption())
    .addHelpText(
      'after',
      `
Examples:
  holdfast release /etc/kubernetes/certs
  holdfast release /etc/kubernetes/certs -o json

Exit codes: 0 released, or neither held nor pinned, 1 not released (nothing is published there, or it cannot be written), 2 wrong usage,
75 another process holds PATH's lock.`,
    )
    .action(async (target: string, options: OutputOptions & { lockTimeout: number }) => {
      const path = await targetArgument(target)
      const before = await interruptible(io, async (signal) => {
        const { setHold } = await import('../durable/index.js')
        const { lockTimeout } = options
        return setHold(path, undefined, { lockTimeout, signal, log: createLogger(io, options) })
      })
      if (options.output === 'json') printJson(io.stdout, { path, held: false, released: before !== undefined })
      else io.stdout.write(before === undefined ? `${path} was not held\n` : `released ${path}\n`)
    })
}
