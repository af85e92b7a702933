import { createLogger } from '../output/logger.js'
import { print } from '../output/print.js'
import { interruptible } from '../signals.js'
import { targetArgument, warnIfUnproven } from '../words/target.js'
import { command } from '../words/command.js'
import { pathReportFlags, requireProvenFlag, lockTimeoutFlag } from '../words/options.js'

const flags = [requireProvenFlag, lockTimeoutFlag, ...pathReportFlags]

/** `holdfast release PATH` */
export const releaseCommand = command({
  name: 'release',
  summary: 'let go of what "hold" or "rollback" keeps as it is',
  description: `Ends the hold of PATH, and the pin that "rollback" has set, on the disk before this command ends with 0. The agent then publishes
what has come meanwhile, and repairs what has drifted. Where PATH is neither held nor pinned, nothing is written.`,
  words: [['<path>', 'a directory or file that is held or pinned']],
  flags,
  examples: `  holdfast release /etc/kubernetes/certs
  holdfast release /etc/kubernetes/certs -o json`,
  exitCodes: `0 released, or neither held nor pinned, 1 not released (nothing is published there, or it cannot be written), 2 wrong usage,
75 another process holds PATH's lock.`,
  run: async ({ io, options }, target) => {
    const path = await targetArgument(target)
    const { before, proof } = await interruptible(io, async (signal) => {
      const { setHold, unprovenAt } = await import('../../durable/index.js')
      const { lockTimeout, requireProven = false } = options
      const log = createLogger(io, options)
      // Before the release: a failure here has changed nothing.
      const proof = await unprovenAt(path, requireProven)
      return { before: await setHold(path, undefined, { lockTimeout, requireProven, signal, log }), proof }
    })
    const released = before !== undefined
    const unproven = await warnIfUnproven(io, options, path, proof)
    await print(io.stdout, options.output, { path, held: false, released, ...unproven }, () =>
      released ? `released ${path}\n` : `${path} was not held\n`,
    )
  },
})
