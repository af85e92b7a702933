import type { ReplaceResult } from '../durable/types.js'
import { UsageError } from './exit-codes.js'
import { printJson, type Io } from './io.js'
import { createLogger } from './logger.js'
import type { OutputOptions } from './options.js'

/* What `replace` and `write` share: one target, named on the command line. */

/** A target as the durable core takes it, absolute. Throws UsageError for what can be no target, before anything is read. */
export async function targetArgument(text: string): Promise<string> {
  const { checkTarget } = await import('../durable/index.js')
  try {
    return checkTarget(text)
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

export async function printPublished(io: Io, result: ReplaceResult, options: OutputOptions): Promise<void> {
  if (result.unproven) {
    const { warnUnproven } = await import('../agent/report-log.js')
    warnUnproven(createLogger(io, options.logLevel), result.path)
  }
  if (options.output === 'json') printJson(io.stdout, result)
  else io.stdout.write(`${result.outcome} ${result.path} ${result.digest}\n`)
}
