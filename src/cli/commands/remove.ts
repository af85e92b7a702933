import { sleep } from '../../deadline.js'
import type { KeptRecord } from '../../durable/record/index.js'
import type { Log } from '../../log.js'
import { createLogger } from '../output/logger.js'
import { parseDurationFlag } from '../words/option-values.js'
import { outcomeText, print } from '../output/print.js'
import { refuseConfigured, refuseOthers } from '../content/refuse-configured.js'
import { NotPublished } from '../words/exit-codes.js'
import { interruptible } from '../signals.js'
import { targetArgument, warnIfUnproven } from '../words/target.js'
import { command, flag } from '../words/command.js'
import type { FlagsOf } from '../words/types.js'
import {
  manifestDirectoryFlag,
  pathReportFlags,
  requireProvenFlag,
  lockTimeoutFlag,
  stateDirectoryFlag,
} from '../words/options.js'

/** Milliseconds between two looks whether a process still uses it. */
const lookInterval = 1_000

const removeItFirst = (file: string): string => `remove it from ${file} first`

const flags = [
  flag(
    '--force',
    'even if PATH is not as it was published, an agent or sync has published it and it has not left their configuration, or not all processes can be looked at; what is seen to be in use stays',
    { fallback: false },
  ),
  flag('--release', 'even if PATH is held or rolled back', { fallback: false }),
  flag('--wait <duration>', 'how long to wait until nobody uses it', { parse: parseDurationFlag }),
  stateDirectoryFlag,
  manifestDirectoryFlag('; without it, /etc/kubernetes/manifests'),
  flag('--dry-run', 'print what would be removed, or why it stays; remove nothing'),
  requireProvenFlag,
  lockTimeoutFlag,
  ...pathReportFlags,
]

type RemoveFlags = FlagsOf<typeof flags>

/** `holdfast remove PATH` */
export const removeCommand = command({
  name: 'remove',
  summary: 'take a published directory or file away',
  description: `Removes PATH, with its earlier contents and, last, its record, on the disk before this command ends with 0: a power cut at any
instant leaves PATH whole, or the removal is finished by the same command.

PATH goes only while nobody uses it: no process has something of it open, mapped or mounted, or works in it, and no static pod
mounts it by itself. What holdfast did not publish stays in any case; what has changed since, and what an agent that runs here is
configured to publish, stays, too.`,
  words: [['<path>', 'a directory or file that holdfast has published']],
  flags,
  examples: `  holdfast remove /etc/kubernetes/certs
  holdfast remove /etc/kubernetes/certs --dry-run
  holdfast remove /etc/kubernetes/certs --wait 10m`,
  exitCodes: `0 removed, 1 not removed (in use, held, rolled back, changed, configured, or nothing is published there; PATH is as it
was), 2 wrong usage, 3 gone from its place, but not all of it is known to be removed: do what the error says, then run the same command
again, 75 another process holds PATH's lock.`,
  run: async ({ io, options }, path) => {
    const target = await targetArgument(path)
    const log = createLogger(io, options)
    await refuseConfigured(target, options, removeItFirst)
    const proof = await interruptible(io, (signal) => removeOnceUnused(target, options, signal, log))
    const unproven = await warnIfUnproven(io, options, target, proof)
    const { dryRun = false } = options
    const document = { ...(dryRun && { dryRun }), path: target, removed: true, ...unproven }
    await print(io.stdout, options.output, document, () => `${outcomeText('removed', dryRun)} ${target}\n`)
  },
})

/** Answers whether it is on a file system on which durability is not proven. */
async function removeOnceUnused(
  target: string,
  options: RemoveFlags,
  signal: AbortSignal,
  log: Log,
): Promise<{ unproven?: true }> {
  const [{ keeper, removePublished, unprovenAt }, { DurableWriteError }, { describeHostPathUser }] = await Promise.all([
    import('../../durable/index.js'),
    import('../../durable/errors.js'),
    import('../../static-pods/host-path-users.js'),
  ])
  const { force, release, requireProven = false, lockTimeout, wait = 0, dryRun = false } = options
  const usedBy = () => describeHostPathUser(target, options.podManifestDir)
  // The configuration may change while this waits.
  const confirm = async (record: KeptRecord) => {
    await refuseConfigured(target, options, removeItFirst)
    if (force || keeper.letGoSince(record) !== undefined) return
    await refuseOthers(target, keeper.agentOf(record), options.stateDirectory)
    if (record.publisher === 'agent') throw keptByAgent(target)
  }
  // Before the removal: a failure here has changed nothing.
  const proof = await unprovenAt(target, requireProven)
  const deadline = performance.now() + wait
  let said: string | undefined
  for (;;) {
    try {
      await removePublished(target, {
        force,
        release,
        dryRun,
        requireProven,
        lockTimeout,
        usedBy,
        confirm,
        signal,
        log,
      })
      return proof
    } catch (error) {
      const left = deadline - performance.now()
      if (!(error instanceof DurableWriteError) || error.reason !== 'InUse' || left <= 0) throw error
      if (error.problem !== said) log.info({ path: target, reason: 'InUse' }, `${error.problem}; holdfast waits`)
      said = error.problem
      await sleep(Math.min(lookInterval, left), { signal })
    }
  }
}

function keptByAgent(target: string): NotPublished {
  return new NotPublished(
    `an agent or "holdfast sync" publishes ${target}, and would publish it again`,
    target,
    `holdfast left ${target} as it was; take it out of the configuration, and have the agent or sync read that, which lets it go; or, if neither publishes it any more, use --force`,
  )
}
