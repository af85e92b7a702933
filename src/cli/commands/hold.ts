import { parseDurationFlag } from '../words/option-values.js'
import { print } from '../output/print.js'
import { createLogger } from '../output/logger.js'
import { interruptible } from '../signals.js'
import { targetArgument, warnIfUnproven } from '../words/target.js'
import { command, flag } from '../words/command.js'
import { pathReportFlags, requireProvenFlag, lockTimeoutFlag } from '../words/options.js'

const flags = [
  flag('--reason <text>', 'why, for those who meet the hold', { fallback: '' }),
  flag('--for <duration>', 'how long; without it, until it is released', { parse: parseDurationFlag }),
  requireProvenFlag,
  lockTimeoutFlag,
  ...pathReportFlags,
]

/** `holdfast hold PATH` */
export const holdCommand = command({
  name: 'hold',
  summary: 'keep a published directory or file as it is',
  description: `Holds PATH: from now on, neither the agent nor another command publishes there. Drift is reported and not repaired. The hold is on
the disk before this command ends with 0: it stays over restarts and power cuts, until "holdfast release PATH", or until its time
is over. Holding a path again changes reason and time.

While PATH is held, commands that would publish there exit with 1 and the reason Held; with --release they publish all the same, which
ends the hold. A pin that "rollback" has set stays beside the hold; "holdfast release PATH" ends both.`,
  words: [['<path>', 'a directory or file that holdfast has published']],
  flags,
  examples: `  holdfast hold /etc/kubernetes/certs --reason 'INC-1234: old clients' --for 2h
  holdfast release /etc/kubernetes/certs`,
  exitCodes: `0 held, 1 not held (nothing is published there, or it cannot be written), 2 wrong usage, 75 another process holds
PATH's lock.`,
  run: async ({ io, options }, target) => {
    const since = Date.now()
    const hold = { reason: options.reason, since, until: options.for === undefined ? null : since + options.for }
    const path = await targetArgument(target)
    const proof = await interruptible(io, async (signal) => {
      const { setHold, unprovenAt } = await import('../../durable/index.js')
      const { lockTimeout, requireProven = false } = options
      const log = createLogger(io, options)
      // Before the hold: a failure here has changed nothing.
      const found = await unprovenAt(path, requireProven)
      await setHold(path, hold, { lockTimeout, requireProven, signal, log })
      return found
    })
    const unproven = await warnIfUnproven(io, options, path, proof)
    const until = hold.until === null ? null : new Date(hold.until).toISOString()
    const document = { path, held: true, reason: hold.reason, until, ...unproven }
    await print(io.stdout, options.output, document, () => `held ${path}${until === null ? '' : ` until ${until}`}\n`)
  },
})
