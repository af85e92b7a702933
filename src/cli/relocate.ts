import { setTimeout as sleep } from 'node:timers/promises'
import type { RelocationProgress } from '../durable/index.js'
import { NotPublished } from './exit-codes.js'
import type { Io } from './io.js'
import { createLogger } from './logger.js'
import { Command, Option } from './option.js'
import { parseDuration } from './option-values.js'
import { reportOptions, lockTimeoutOption, type OutputOptions, requireProvenOption } from './options.js'
import { print } from './print.js'
import { refuseConfigured } from './refuse-configured.js'
import { interruptible } from './signals.js'
import { targetArgument } from './target.js'

/** What is left at OLD, as the flag and the output call it. */
const wordsFor = { removed: 'remove', remove: 'remove', link: 'link' } as const

interface RelocateOptions extends OutputOptions {
  readonly as: 'remove' | 'link'
  readonly force: boolean
  readonly dryRun: boolean
  readonly requireProven?: true
  readonly wait?: number
  readonly stateDirectory?: string
  readonly podManifestDir?: string
  readonly lockTimeout: number
}

/** Milliseconds between two looks whether somebody still uses the old path. */
const lookInterval = 1_000

/** `holdfast relocate OLD NEW` */
export function relocateCommand(io: Io): Command {
  return new Command('relocate')
    .summary('move a published directory to another path while programs use it')
    .description(
      `Publishes at NEW what OLD holds, keeps OLD equal to it while somebody uses OLD, and removes OLD then. How far it has come stands in
NEW's record: after a power cut at any instant each of the two is whole, and the same command goes on.

NEW keeps as many earlier contents as OLD from then on; those that OLD has do not come along, and go. OLD must have been published by
hand, as with "replace": for what an agent publishes, write "movedFrom: OLD" at NEW in its
configuration. It goes only while nobody uses it, as with "remove". A program that only opens a file now and then is not seen to use
OLD: let it use NEW first, or leave a link.`,
    )
    .argument('<old>', 'a directory that holdfast has published')
    .argument('<new>', 'its new path')
    .addOption(
      new Option('--as <form>', 'what is left at OLD; link: a symbolic link to NEW')
        .choices(['remove', 'link'])
        .default('remove'),
    )
    .option(
      '--force',
      'even if OLD is not as it was published, not all processes can be looked at, or durability is proven at OLD alone; while it is seen to be in use it stays',
      false,
    )
    .option('--dry-run', 'only look whether the move can begin', false)
    .addOption(new Option('--wait <duration>', 'how long to wait until nobody uses OLD').argParser(parseDuration))
    .addOption(new Option('--state-directory <dir>', 'of the agent that may run here; without it, /var/lib/holdfast'))
    .addOption(
      new Option('--pod-manifest-dir <dir>', "kubelet's manifest directory; without it, /etc/kubernetes/manifests"),
    )
    .addOption(requireProvenOption())
    .addOption(lockTimeoutOption())
    .addOptions(reportOptions())
    .addHelpText(
      'after',
      `
Examples:
  holdfast relocate /etc/kubernetes/certs /etc/pki/web --wait 10m
  holdfast relocate /etc/kubernetes/certs /etc/pki/web --as link

Exit codes: 0 moved, 1 not moved (OLD is in use, held, rolled back, changed, not published by hand; NEW is somebody else's; or one
lies in the other: the error says how far it has come), 2 wrong usage, 3 published at NEW or gone from OLD, but not known to be durable:
do what the error says, then run the same command again, 75 another process holds the lock of one of the two.`,
    )
    .action(async (oldPath: string, newPath: string, options: RelocateOptions) => {
      const [from, to] = [await targetArgument(oldPath), await targetArgument(newPath)]
      const progress = await interruptible(io, (signal) => relocateOnceUnused(io, from, to, options, signal))
      const outcome = options.dryRun ? 'would move' : 'moved'
      const document = {
        ...{ from, to, outcome, as: wordsFor[progress.as ?? options.as], state: progress.state ?? null },
        ...(progress.unproven && { unproven: true }),
      }
      const link = progress.as === 'link' ? '; the old path is a link' : ''
      await print(io.stdout, options.output, document, () => `${outcome} ${from} to ${to}${link}\n`)
    })
}

async function relocateOnceUnused(
  io: Io,
  from: string,
  to: string,
  options: RelocateOptions,
  signal: AbortSignal,
): Promise<RelocationProgress> {
  const [{ relocateByHand, disableCoreDumps }, { describeHostPathUser }, { warnUnproven }] = await Promise.all([
    import('../durable/index.js'),
    import('../static-pods/host-path-users.js'),
    import('../unproven.js'),
  ])
  disableCoreDumps()
  const log = createLogger(io, options)
  const { force, dryRun, requireProven = false, lockTimeout, wait = 0 } = options
  const as = options.as === 'link' ? 'link' : 'removed'
  const usedBy = () => describeHostPathUser(from, options.podManifestDir)
  // The configuration may change while this waits or works.
  const advice = (file: string) => `write "movedFrom: ${from}" at ${to} in ${file} instead`
  const confirm = async (): Promise<void> => {
    for (const path of [from, to]) await refuseConfigured(path, options, advice)
  }
  const deadline = performance.now() + wait
  let said: string | undefined
  for (;;) {
    await confirm()
    const progress = await relocateByHand(from, to, {
      ...{ as, force, dryRun, requireProven, lockTimeout, usedBy, confirm, signal, log },
    })
    const { state, waits, unproven } = progress
    if (unproven) warnUnproven(log, to)
    if (waits === undefined) return progress
    const left = deadline - performance.now()
    if (left <= 0 || dryRun) throw notYet(from, to, progress)
    const problem = `${from} moves to ${to} (${state}): ${waits}`
    if (waits !== said) log.info({ path: from, to, state, reason: 'Relocating' }, `${problem}; holdfast waits`)
    said = waits
    await sleep(Math.min(lookInterval, left), undefined, { signal })
  }
}

/** Both paths stay, until the same command goes on. */
function notYet(from: string, to: string, { state, waits, advice }: RelocationProgress): NotPublished {
  const how = state === undefined ? '' : ` (${state})`
  return new NotPublished(
    `${from} moves to ${to}${how}: ${waits}`,
    from,
    `both stay; ${advice === undefined ? '' : `${advice}, then `}run the same command again, or with --wait`,
  )
}
