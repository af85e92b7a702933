import type { DirectoryConfiguration } from '../../config/types.js'
import type { AdoptionResult, ReplaceResult } from '../../durable/types.js'
import type { Log } from '../../log.js'
import { askSource, type Asked } from '../content/ask-source.js'
import { contentCheck } from '../content/content-check.js'
import { Exit, exitCodes, UsageError } from '../words/exit-codes.js'
import type { Io } from '../output/io.js'
import { createLogger } from '../output/logger.js'
import { print } from '../output/print.js'
import { interruptible } from '../signals.js'
import { table } from '../output/table.js'
import { targetArgument, warnIfUnproven } from '../words/target.js'
import { command, flag } from '../words/command.js'
import type { FlagsOf } from '../words/types.js'
import { pathReportFlags, sourceFlags, configFlag, timeoutFlag, lockTimeoutFlag } from '../words/options.js'

const flags = [
  configFlag,
  flag('--dry-run', 'print what each check finds, and change nothing'),
  timeoutFlag('how long to wait for the source', 60_000, '60s'),
  lockTimeoutFlag,
  ...sourceFlags,
  ...pathReportFlags,
]

type AdoptFlags = FlagsOf<typeof flags>

/** `holdfast adopt PATH` */
export const adoptCommand = command({
  name: 'adopt',
  summary: "take over another program's directory",
  description: `Takes over a directory that holdfast did not publish: puts what the source says in its place, once seven checks have passed. Changes nothing
before that, but for two empty directories beside PATH, which it exchanges and removes. What was there stays as content 0 of its history (see "holdfast history PATH") until the next publication. Where the
content is equal, no hook runs; else the agent runs them.

The directory needs no "adopt" in its configuration: the command is its own consent. With "adopt: replace", it is taken over even if
it holds what the new content does not have.`,
  words: [['<path>', 'a directory of the configuration']],
  flags,
  examples: `  holdfast adopt /etc/kubernetes/certs --config /etc/holdfast.yaml --dry-run
  holdfast adopt /etc/kubernetes/certs --config /etc/holdfast.yaml`,
  exitCodes: `0 adopted, or holdfast's already (with --dry-run: it would be), 1 a check has not passed, and nothing was changed, 2 wrong
usage or configuration, 3 published but not known to be durable, 75 another process holds the lock.`,
  run: ({ io, options }, path) => runAdopt(io, path, options),
})

async function runAdopt(io: Io, path: string, options: AdoptFlags): Promise<void> {
  const target = await targetArgument(path)
  const { adoption, disableCoreDumps, planDirectory, replaceDirectory } = await import('../../durable/index.js')
  disableCoreDumps()
  const log = createLogger(io, options)
  const { own, checks, result } = await interruptible(io, async (signal) => {
    const request = await requestBy(await askSource(target, { io, options, signal, as: adopting }), log, signal)
    const { own, checks } = await adoption.examine(request, request.adopt ?? { replace: false })
    if (own || !hasPassed(checks)) return { own, checks, result: undefined }
    if (options.dryRun === true) {
      await planDirectory(request)
      return { own, checks, result: undefined }
    }
    const { lockTimeout } = options
    // Looks again, under the lock.
    const result = await replaceDirectory(target, { ...request, lockTimeout, signal, log })
    return { own, checks, result }
  })
  if (result) await warnIfUnproven(io, options, target, result)
  await print(io.stdout, options.output, shown(target, own, checks, result), () => textOf(target, own, checks, result))
  if (!own && !hasPassed(checks)) throw new Exit(exitCodes.failed)
}

/** As the agent publishes: a check that refuses content, or a file system, refuses it here, too. */
async function requestBy({ request, configuration, directory }: Asked, log: Log, signal: AbortSignal) {
  const { requireProven, stateDirectory } = configuration
  const agent = await (await import('../../agent/identity.js')).passIdentity(stateDirectory)
  const check = await contentCheck(directory, { log, signal })
  return { ...request, requireProven, agent, ...(check && { check }) }
}

function adopting(directory: DirectoryConfiguration): DirectoryConfiguration {
  const { adopt, path, publish } = directory
  if (publish === 'exchange') return { ...directory, adopt: adopt === false ? true : adopt }
  throw new UsageError(`${path} has publish: ${publish}, and only publish: exchange takes a directory over`)
}

function hasPassed(checks: readonly AdoptionResult[]): boolean {
  return checks.every(({ verdict }) => verdict === 'passed')
}

function shown(path: string, own: boolean, checks: readonly AdoptionResult[], result: ReplaceResult | undefined) {
  const { outcome = null, digest = null, unproven } = result ?? {}
  return { path, own, checks, outcome, digest, ...(unproven && { unproven }) }
}

function textOf(
  path: string,
  own: boolean,
  checks: readonly AdoptionResult[],
  result: ReplaceResult | undefined,
): string {
  if (own) return `${path} is holdfast's already\n`
  const rows = checks.flatMap(({ check, verdict, message, advice }) => [
    [check, verdict, message],
    ...(advice === null ? [] : [['', '', `-> ${advice}`]]),
  ])
  return table([['CHECK', 'VERDICT', 'FOUND'], ...rows]) + (result ? `adopted ${path} ${result.digest}\n` : '')
}
