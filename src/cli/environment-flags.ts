import type { Command } from 'commander'
import { UsageError } from './exit-codes.js'

/**
 * Reads the flags that take no value from the environment: commander takes a variable that is merely there for "yes", also where it
 * says `false`. Throws UsageError for what is neither true nor false.
 */
export function readEnvironmentFlags(command: Command): void {
  for (const option of command.options) {
    const variable = option.envVar
    if (variable === undefined || !option.isBoolean()) continue
    const name = option.attributeName()
    if (command.getOptionValueSource(name) !== 'env') continue
    if (!isTrue(variable, process.env[variable] ?? '')) command.setOptionValue(name, undefined)
  }
}

function isTrue(variable: string, text: string): boolean {
  if (/^(true|1|yes)$/i.test(text)) return true
  if (/^(false|0|no|)$/i.test(text)) return false
  throw new UsageError(`${variable} is ${JSON.stringify(text)}: write true or false (1 or 0, yes or no)`)
}
