import { absolutePath } from '../absolute-path.js'
import type { ReplaceResult } from '../durable/types.js'
import { messageOf } from '../errors.js'
import { UsageError } from './exit-codes.js'
import type { Io } from './io.js'
import { createLogger } from './logger.js'
import type { OutputOptions } from './options.js'
import { print } from './print.js'

/* What `replace` and `write` share: one target, named on the command line. */

/** A target as the durable core takes it, absolute. Throws UsageError for what can be no target, before anything is read. */
export async function targetArgument(text: string): Promise<string> {
  const { checkTarget } = await import('../durable/index.js')
  try {
    return checkTarget(text)
  } catch (error) {
    throw new UsageError(messageOf(error))
  }
}

/** A path of an option, absolute. Throws UsageError for one that leads the kernel elsewhere than its text. */
export function pathArgument(text: string): string {
  try {
    return absolutePath(text)
  } catch (error) {
    throw new UsageError(messageOf(error))
  }
}

export async function printPublished(io: Io, result: ReplaceResult, options: OutputOptions): Promise<void> {
  if (result.unproven) {
    const { warnUnproven } = await import('../unproven.js')
    warnUnproven(createLogger(io, options), result.path)
  }
  await print(io.stdout, options.output, result, () => `${result.outcome} ${result.path} ${result.digest}\n`)
}
