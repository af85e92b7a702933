import { existsSync } from 'node:fs'
import { Command as CommanderCommand, Help, InvalidArgumentError, Option as CommanderOption } from 'commander'
import { UsageError } from './exit-codes.js'

/** Flags that commands share come in lists. */
export class Command extends CommanderCommand {
  addOptions(options: readonly CommanderOption[]): this {
    for (const option of options) this.addOption(option)
    return this
  }
}

/** A flag that an environment variable may set, too. Commander itself would read the environment of the process. */
export class Option extends CommanderOption {
  variable: string | undefined
  usualFile: string | undefined

  override env(name: string): this {
    this.variable = name
    return this
  }

  /** The file that counts where it exists, and neither the line nor the variable names another. */
  usual(file: string): this {
    this.usualFile = file
    return this
  }
}

/**
 * Sets what the command line left open from the environment. `HOLDFAST_X=` in a pod's template means that X is not set; a flag without
 * a value is set by `true`, and not by `false`. Throws UsageError for another text there, CommanderError for an unfit value.
 */
export function readEnvironment(command: CommanderCommand, environment: NodeJS.ProcessEnv): void {
  for (const option of command.options) {
    if (!(option instanceof Option) || option.variable === undefined) continue
    const name = option.attributeName()
    if (command.getOptionValueSource(name) === 'cli') continue
    const text = environment[option.variable]
    if (text === undefined || text === '') {
      const { usualFile } = option
      if (usualFile !== undefined && existsSync(usualFile)) command.setOptionValueWithSource(name, usualFile, 'default')
      continue
    }
    const value = option.isBoolean() ? isTrue(option.variable, text) || undefined : parse(command, option, text)
    command.setOptionValueWithSource(name, value, 'env')
  }
}

/** As commander reports a wrong value of the command line. */
function parse(command: CommanderCommand, option: Option, text: string): unknown {
  if (option.parseArg === undefined) return text
  try {
    return option.parseArg<unknown>(text, undefined)
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error) || error.code !== 'commander.invalidArgument') throw error
    const where = `value '${text}' from env '${option.variable ?? ''}' is invalid.`
    command.error(`error: option '${option.flags}' ${where} ${error.message}`, { code: error.code })
  }
}

function isTrue(variable: string, text: string): boolean {
  if (/^(true|1|yes)$/i.test(text)) return true
  if (/^(false|0|no)$/i.test(text)) return false
  throw new UsageError(`${variable} is ${JSON.stringify(text)}: write true or false (1 or 0, yes or no)`)
}

const help = new Help()

/** As commander's own help explains it, with the variable. */
export function describeOption(option: CommanderOption): string {
  if (!(option instanceof Option) || option.variable === undefined) return help.optionDescription(option)
  return help.optionDescription(Object.assign(Object.create(option) as CommanderOption, { envVar: option.variable }))
}

// Each command loads these two with the parser of the command line. The other values' parsers load the rules of half the program.

/** As Go's strconv.ParseBool. A manifest's name that follows the flag must not be taken for its value. */
export function parseGoBoolean(text: string): boolean {
  if (!/^(?:1|t|T|true|TRUE|True|0|f|F|false|FALSE|False)$/.test(text))
    throw new InvalidArgumentError('It must be true or false, with "=" before it.')
  return /^[1tT]/.test(text)
}

export function parseCount(text: string): number {
  if (!/^[0-9]{1,6}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.')
  return Number(text)
}
