import type { ReplaceResult } from '../durable/types.js'
import type { OutputOptions } from './common-options.js'
import { createLogger } from './logger.js'
import { print, printJson } from './print.js'

/** Tells what became of one target that was named on the command line. */
export async function tellPublished(result: ReplaceResult, { output, logLevel }: OutputOptions): Promise<void> {
  if (result.unproven) {
    const { warnUnproven } = await import('../agent/report-log.js')
    warnUnproven(createLogger(logLevel), result.path)
  }
  if (output === 'json') printJson(result)
  else print(`${result.outcome} ${result.path} ${result.digest}\n`)
}
