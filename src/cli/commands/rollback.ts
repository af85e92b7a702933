import { InvalidArgumentError } from 'commander'
import type { Pin } from '../../durable/types.js'
import { findConditions } from '../content/content-check.js'
import type { Io } from '../output/io.js'
import { parseDurationFlag, parseSequence } from '../words/option-values.js'
import { changesText, print } from '../output/print.js'
import { createLogger } from '../output/logger.js'
import { interruptible } from '../signals.js'
import { targetArgument, warnIfUnproven } from '../words/target.js'
import { command, flag } from '../words/command.js'
import type { FlagsOf } from '../words/types.js'
import { pathReportFlags, dryRunFlag, lockTimeoutFlag, stateDirectoryFlag } from '../words/options.js'

const flags = [
  flag('--to <sequence>', 'which content; without it, the newest one that differs', { parse: parseSequence }),
  flag('--reason <text>', 'why, for those who meet the pin', { fallback: '' }),
  flag('--pin <until>', 'newer, released, or how long (2h)', { parse: parsePin, fallback: 'newer' }),
  flag('--force', 'even if a certificate in it has expired, or an object in it has been replaced by another one', {
    fallback: false,
  }),
  flag('--release', 'even if PATH is held, which ends the hold', { fallback: false }),
  // No variable and no usual file: the configuration that the agent has in force decides.
  flag('-c, --config <file>', 'the configuration file'),
  stateDirectoryFlag,
  flag('--no-check', 'without the commands of "beforePublish"'),
  dryRunFlag,
  lockTimeoutFlag,
  ...pathReportFlags,
]

type RollbackFlags = FlagsOf<typeof flags>

/** `holdfast rollback PATH` */
export const rollbackCommand = command({
  name: 'rollback',
  summary: 'publish an earlier content again',
  description: `Publishes an earlier content of PATH again (see "holdfast history PATH"), by the same steps as any publication: whoever opens PATH
sees all of the present content or all of the earlier one. The present content becomes history.

PATH is pinned then, so that neither the agent nor "sync" undoes it: with --pin newer until an object is newer than those that were
rolled back from, is deleted or is another one of the same name; with --pin released until "holdfast release PATH"; or for a time.
While it is pinned, drift is reported and not repaired. The agent runs the hooks.

The commands of "beforePublish" examine the earlier content first, and what they reject is not published. Without --config, they are those
of the configuration that the agent of this node has in force: where its file is not what the agent has read, nothing is published.
Where no agent's state leads to PATH, a warning says so. A dry run starts no such command.`,
  words: [['<path>', 'a directory with "history" in its configuration']],
  flags,
  examples: `  holdfast rollback /etc/kubernetes/certs --reason 'INC-1234: old clients'
  holdfast rollback /etc/kubernetes/certs --to 7 --pin 2h
  holdfast rollback /etc/kubernetes/certs --dry-run
  holdfast release /etc/kubernetes/certs`,
  exitCodes: `0 published, 1 not published (PATH is as it was), 2 wrong usage, 3 published, but its durability is unknown,
75 another process holds PATH's lock.`,
  run: ({ io, options }, path) => rollback(io, path, options),
})

/** Publishes the chosen content, and prints the result. */
async function rollback(io: Io, path: string, options: RollbackFlags): Promise<void> {
  const target = await targetArgument(path)
  const { reason, force, release, lockTimeout, to, dryRun = false } = options
  const until = typeof options.pin === 'number' ? Date.now() + options.pin : options.pin
  const log = createLogger(io, options)
  const result = await interruptible(io, async (signal) => {
    const { disableCoreDumps, history } = await import('../../durable/index.js')
    disableCoreDumps()
    const confirmFiles = force ? undefined : await expiryCheck(target)
    const conditions = await findConditions(target, options, { log, signal })
    return history.rollBack(target, {
      to,
      pin: { reason, until },
      force,
      release,
      lockTimeout,
      dryRun,
      signal,
      log,
      ...(confirmFiles && { confirmFiles }),
      ...conditions,
    })
  })
  await warnIfUnproven(io, options, target, result)
  const shown = typeof until === 'number' ? new Date(until).toISOString() : until
  const { outcome, digest, sequence, unproven, changes } = result
  const said = { path: target, outcome, digest, sequence, pin: shown, ...(unproven && { unproven }) }
  const document = { ...(dryRun && { dryRun }), ...said, ...(changes && { changes }) }
  const would = dryRun ? 'would be ' : ''
  await print(
    io.stdout,
    options.output,
    document,
    () =>
      `${would}rolled back ${target} to ${sequence} ${digest}\n${changesText(changes)}${would}${pinned(until, shown)}\n`,
  )
}

/** Refuses an expired certificate. A certificate that is not valid yet passes: the clock may be wrong. */
async function expiryCheck(target: string): Promise<(files: ReadonlyMap<string, Uint8Array>) => void> {
  const [{ DurableWriteError }, { certificateBlocks }, { certificateDate }] = await Promise.all([
    import('../../durable/errors.js'),
    import('../../x509/certificates.js'),
    import('../../directories/validate.js'),
  ])
  return (files) => {
    for (const [path, content] of files) {
      const date = certificateDate(path, certificateBlocks(content))
      if (date === undefined || date.notAfter > new Date()) continue
      throw new DurableWriteError(
        `${path} of the earlier content: a certificate expired at ${date.notAfter.toISOString()}`,
        {
          code: 'ESTALE',
          syscall: 'none',
          path: target,
          reason: 'CertificateExpired',
          state: 'nothing was changed',
          advice: 'to publish it all the same, use --force',
        },
      )
    }
  }
}

function pinned(until: Pin['until'], shown: string): string {
  if (until === 'newer') return 'pinned until an object is newer than those that were rolled back from'
  return until === 'released' ? 'pinned until it is released' : `pinned until ${shown}`
}

function parsePin(text: string): 'newer' | 'released' | number {
  if (text === 'newer' || text === 'released') return text
  try {
    return parseDurationFlag(text)
  } catch {
    throw new InvalidArgumentError(
      'It must be newer, released, or less than 24 days as a duration with units: 2h, 1m30s.',
    )
  }
}
