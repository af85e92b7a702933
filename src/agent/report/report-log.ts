import type { Log } from '../../log.js'
import type { Context, Meaning } from '../outcome.js'

/** Writes the log's lines about one pass over a directory. */
export function reportLog(log: Log, { lines }: Pick<Meaning, 'lines'>, context: Context): void {
  const { operation, directory, causes } = context
  const milliseconds = Math.round(context.milliseconds * 10) / 10
  for (const { level, reason, message, fields } of lines) {
    log[level]({ ...(reason && { reason }), operation, directory, causes, milliseconds, ...fields }, message)
  }
}
