import type { Io } from './io.js'
import { createLogger } from './logger.js'
import { Command } from './option.js'
import { reportOptions, lockTimeoutOption, type OutputOptions } from './options.js'
import { print } from './print.js'
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
    .addOptions(reportOptions())
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
      const released = before !== undefined
      await print(io.stdout, options.output, { path, held: false, released }, () =>
        released ? `released ${path}\n` : `${path} was not held\n`,
      )
    })
}
