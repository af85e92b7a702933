import { existsSync } from 'node:fs'
import { type Command, Help, InvalidArgumentError, Option } from 'commander'
import { UsageError } from './exit-codes.js'
import type { CommandData, CommandOf, FlagSettings, TypedFlag, ValueOf, Word } from './types.js'

/** A flag of a command, as commander parses it; its type knows its words and its value. */
export class Flag<F extends string = string, V = unknown> extends Option implements TypedFlag {
  declare readonly flags: F
  declare readonly value: V

  constructor(
    flags: F,
    description: string,
    readonly settings: FlagSettings<unknown, unknown>,
  ) {
    super(flags, description)
    const { parse, choices, fallback, shown, conflicts = [], hidden = false } = settings
    if (parse) this.argParser(parse)
    if (choices) this.choices(choices as readonly string[])
    if (fallback !== undefined) this.default(fallback, shown)
    this.conflicts([...conflicts]).hideHelp(hidden)
  }
}

export function flag<const F extends string, const V = string, const D extends V | boolean | undefined = undefined>(
  flags: F,
  description = '',
  settings: FlagSettings<V, D> = {},
): Flag<F, ValueOf<F, V, D>> {
  return new Flag(flags, description, settings as FlagSettings<unknown, unknown>)
}

/** A command, whose action gets words and flags in the types that follow from these. */
export function command<const W extends readonly Word[] = [], F extends readonly TypedFlag[] = []>(
  data: CommandOf<W, F>,
): CommandData {
  return data
}

/**
 * Sets what the command line left open from the environment. `HOLDFAST_X=` in a pod's template means that X is not set; a flag without
 * a value is set by `true`, and not by `false`. Throws UsageError for another text there, CommanderError for an unfit value.
 */
export function readEnvironment(command: Command, environment: NodeJS.ProcessEnv): void {
  for (const option of command.options) {
    if (!(option instanceof Flag) || option.settings.env === undefined) continue
    const { env, usual } = option.settings
    const name = option.attributeName()
    if (command.getOptionValueSource(name) === 'cli') continue
    const text = environment[env]
    if (text === undefined || text === '') {
      if (usual !== undefined && existsSync(usual)) command.setOptionValueWithSource(name, usual, 'default')
      continue
    }
    const value = option.isBoolean() ? isTrue(env, text) || undefined : parseVariable(command, option, env, text)
    command.setOptionValueWithSource(name, value, 'env')
  }
}

/** As commander reports a wrong value of the command line. */
function parseVariable(command: Command, option: Option, variable: string, text: string): unknown {
  if (option.parseArg === undefined) return text
  try {
    return option.parseArg<unknown>(text, undefined)
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error) || error.code !== 'commander.invalidArgument') throw error
    const where = `value '${text}' from env '${variable}' is invalid.`
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
export function describeOption(option: Option): string {
  if (!(option instanceof Flag) || option.settings.env === undefined) return help.optionDescription(option)
  return help.optionDescription(Object.assign(Object.create(option) as Option, { envVar: option.settings.env }))
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
