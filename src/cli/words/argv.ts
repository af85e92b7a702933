import type { Command, Option } from 'commander'

/* Flags as users of kubectl type them, in the forms that commander parses. */

/**
 * A command line whose flags stand behind their command: `-o=json` is two words, `-v` has its number. It changes nothing behind `--`, no
 * value, and no word that no flag of the command explains.
 */
export function normalLine(argv: readonly string[], holdfast: Command): readonly string[] {
  const dashes = argv.indexOf('--')
  const end = dashes < 0 ? argv.length : dashes
  const { path, flags, rest } = commandIn(argv.slice(0, end), holdfast)
  const command = path.at(-1)
  if (command === undefined) return argv
  const words = tokensOf([...flags, ...rest], command.options).flatMap(wordsOf)
  return [...path.map((one) => one.name()), ...words, ...argv.slice(end)]
}

interface FoundCommand {
  /** The command, and its subcommand. */
  readonly path: readonly Command[]
  /** The flags before it. */
  readonly flags: readonly string[]
  readonly rest: readonly string[]
}

/** The first command before which only flags of it stand. A word may be a flag's value and a command's name: the flags decide. */
function commandIn(words: readonly string[], parent: Command, above: readonly string[] = []): FoundCommand {
  for (const [index, word] of words.entries()) {
    const command = parent.commands.find((one) => one.name() === word)
    const flags = [...above, ...words.slice(0, index)]
    if (command === undefined) continue
    const rest = words.slice(index + 1)
    const below = commandIn(rest, command, flags)
    if (below.path.length > 0) return { ...below, path: [command, ...below.path] }
    if (tokensOf(flags, command.options).every(isFlag)) return { path: [command], flags, rest }
  }
  return { path: [], flags: above, rest: words }
}

/** A flag with its value, or a word that is neither. */
interface Token {
  /** undefined: no flag that the command has. */
  readonly option: Option | undefined
  readonly value: string | undefined
  /** The words of it, as they were typed. */
  readonly typed: readonly string[]
}

function tokensOf(words: readonly string[], options: readonly Option[]): Token[] {
  const tokens: Token[] = []
  for (let index = 0; index < words.length; index += tokens.at(-1)?.typed.length ?? 1)
    tokens.push(tokenAt(words, index, options))
  return tokens
}

function tokenAt(words: readonly string[], index: number, options: readonly Option[]): Token {
  const [word = '', next] = words.slice(index)
  // `--output=json` is `--output` and `=json`, `-ojson` is `-o` and `json`.
  const [, flag = word, attached] = /^(--[^=]+(?==)|-[^-](?=.))(.*)$/s.exec(word) ?? []
  const option = options.find(({ short, long }) => flag === short || flag === long)
  // `-wq` are two flags, which commander takes apart.
  if (option === undefined || (attached !== undefined && !option.required))
    return { option: undefined, value: undefined, typed: [word] }
  if (attached !== undefined) return { option, value: attached.replace(/^=/, ''), typed: [word] }
  const takesNext = option.required && next !== undefined && (!isVerbosity(option) || /^\d+$/.test(next))
  return { option, value: takesNext ? next : undefined, typed: takesNext ? [word, next] : [word] }
}

const isFlag = ({ option, value, typed }: Token): boolean =>
  option === undefined
    ? ['-h', '--help'].includes(typed[0] ?? '')
    : !option.required || value !== undefined || isVerbosity(option)

/** klog's, which is a number; alone it asks for everything. */
const isVerbosity = ({ long }: Option): boolean => long === '--v'

function wordsOf({ option, value, typed: [word = '', ...more] }: Token): readonly string[] {
  if (option && isVerbosity(option)) return [`--v=${value ?? '4'}`]
  return value !== undefined && /^-[^-]=/.test(word) ? [word.slice(0, 2), value] : [word, ...more]
}
