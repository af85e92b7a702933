import { existsSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { absolutePath } from '../../absolute-path.js'
import type { DirectoryPlanResult } from '../../durable/publish/index.js'
import type { ReplaceResult } from '../../durable/types.js'
import { messageOf } from '../../errors.js'
import type { RolledContent } from '../../static-pods/rollout/refuse-rolled.js'
import { UsageError } from './exit-codes.js'
import type { Io } from '../output/io.js'
import { createLogger, type LogFlags } from '../output/logger.js'
import type { OutputFlags } from './options.js'
import { changesText, outcomeText, print } from '../output/print.js'

/* Shared by `replace` and `write`: one target, named on the command line. */

/** A target as the durable core takes it, absolute. Throws UsageError for a path that can be no target, before any read. */
export async function targetArgument(text: string): Promise<string> {
  const { checkTarget } = await import('../../durable/publishing.js')
  try {
    return checkTarget(text)
  } catch (error) {
    throw new UsageError(messageOf(error))
  }
}

/** A path of an option, absolute. Throws UsageError for a path that leads the kernel elsewhere than its text. */
export function pathArgument(text: string): string {
  try {
    return absolutePath(text)
  } catch (error) {
    throw new UsageError(messageOf(error))
  }
}

/** Refuses what a rollout beside the target may still take back, a file with this content, too. undefined: there was no rollout, or --force. */
export async function rolloutBeside(path: string, force: boolean | undefined) {
  const signs = ['.holdfast-rollout', `.holdfast-rollout-${basename(path)}`]
  if (force === true || !signs.some((name) => existsSync(join(dirname(path), name)))) return undefined
  const { refuseRolled } = await import('../../static-pods/rollout/refuse-rolled.js')
  return (content?: RolledContent) => refuseRolled(path, content)
}

/** Warns of unproven durability at a path; answers the field that tells of it in the printed document. */
export async function warnIfUnproven(
  io: Io,
  options: LogFlags,
  path: string,
  { unproven }: { readonly unproven?: true },
): Promise<{ unproven?: true }> {
  if (!unproven) return {}
  const { warnUnproven } = await import('../../unproven.js')
  warnUnproven(createLogger(io, options), path)
  return { unproven }
}

/** `result`: of a publication, or of its plan. */
export async function printPublished(
  io: Io,
  result: ReplaceResult | DirectoryPlanResult,
  options: OutputFlags & { readonly dryRun?: true },
): Promise<void> {
  await warnIfUnproven(io, options, result.path, result)
  const { dryRun = false } = options
  const text = (): string =>
    `${outcomeText(result.outcome, dryRun)} ${result.path} ${result.digest}\n` +
    ('changes' in result ? changesText(result.changes) : '')
  await print(io.stdout, options.output, { ...(dryRun && { dryRun }), ...result }, text)
}
