import type { Command, Option } from 'commander'
import { UsageError } from './exit-codes.js'
import { parseGoBoolean } from './option.js'

/* Flags as users of kubectl type them, in the forms that commander parses. */

export interface NormalLine {
  readonly words: readonly string[]
  /** Flags without a value that the line denies (`--watch=false`): a variable of the environment does not set them either. */
  readonly denied: readonly Option[]
}

/**
 * A command line in the forms that commander parses: flags stand behind their command, `-o=json` is two words, `--watch=true` is one flag,
 * `-v` has its number. It changes nothing behind `--`, no value, and no word that no flag of the command explains.
 * @throws UsageError for a flag without a value that has one
 */
export function normalLine(argv: readonly string[], holdfast: Command): NormalLine {
  const dashes = argv.indexOf('--')
  const [before, after] = dashes < 0 ? [argv, []] : [argv.slice(0, dashes), argv.slice(dashes)]
  const { path, flags, rest } = commandIn(before, holdfast)
  const command = path.at(-1)
  if (command === undefined) return { words: argv, denied: [] }
  const line = new FlagLine()
  for (const token of tokensOf([...flags, ...rest], command.options)) line.add(token)
  return { words: [...path.map((one) => one.name()), ...line.words, ...after], denied: line.denied }
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
    if (areFlagsOf(flags, command)) return { path: [command], flags, rest }
  }
  return { path: [], flags: above, rest: words }
}

const helpFlags = ['-h', '--help']

function areFlagsOf(words: readonly string[], { options }: Command): boolean {
  return tokensOf(words, options).every(
    ({ option, flag, value }) =>
      helpFlags.includes(flag) ||
      (option !== undefined && (value !== undefined || !option.required || isVerbosity(option))),
  )
}

/** A flag with its value, or a word that is neither. */
interface Token {
  /** undefined: no flag that the command has. */
  readonly option: Option | undefined
  readonly flag: string
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
  const { flag, attached } = parts(word)
  const option = options.find(({ short, long }) => flag === short || flag === long)
  // `-wq` are two flags, which commander takes apart.
  if (option === undefined || (takesNone(option) && attached?.startsWith('=') === false))
    return { option: undefined, flag, value: undefined, typed: [word] }
  if (attached !== undefined) return { option, flag, value: attached.replace(/^=/, ''), typed: [word] }
  const takesNext = isVerbosity(option)
    ? /^\d+$/.test(next ?? '')
    : option.required || (option.optional && next?.startsWith('-') === false)
  return takesNext && next !== undefined
    ? { option, flag, value: next, typed: [word, next] }
    : { option, flag, value: undefined, typed: [word] }
}

/** `--output=json` is `--output` and `=json`, `-ojson` is `-o` and `json`. */
function parts(word: string): { flag: string; attached?: string } {
  const end = word.startsWith('--') ? word.indexOf('=') : /^-[^-]./s.test(word) ? 2 : -1
  return end < 0 ? { flag: word } : { flag: word.slice(0, end), attached: word.slice(end) }
}

function takesNone(option: Option): boolean {
  return !option.required && !option.optional
}

/** klog's, which is a number; alone it asks for everything. */
function isVerbosity({ long }: Option): boolean {
  return long === '--v'
}

/** What `-v` alone means. */
const allVerbosity = '4'

/** The words of a line, as commander takes them. */
class FlagLine {
  #parts: { readonly option: Option | undefined; readonly words: readonly string[] }[] = []
  readonly #denied = new Map<string, Option>()

  get words(): string[] {
    return this.#parts.flatMap(({ words }) => words)
  }

  get denied(): Option[] {
    return [...this.#denied.values()]
  }

  add(token: Token): void {
    const { option, flag, value, typed } = token
    if (option === undefined) this.#add(undefined, typed)
    else if (isVerbosity(option)) this.#add(option, [`--v=${value ?? allVerbosity}`])
    else if (!takesNone(option)) this.#add(option, value === undefined || flag.startsWith('--') ? typed : [flag, value])
    else this.#addTruth(option, flag, value === undefined || truthOf(flag, value))
  }

  #add(option: Option | undefined, words: readonly string[]): void {
    this.#parts.push({ option, words })
  }

  /** As with kubectl, the last of `--watch` and `--watch=false` counts. */
  #addTruth(option: Option, flag: string, isTrue: boolean): void {
    this.#denied.delete(option.attributeName())
    if (isTrue) {
      this.#add(option, [flag])
      return
    }
    this.#parts = this.#parts.filter((part) => part.option !== option)
    this.#denied.set(option.attributeName(), option)
  }
}

/** kubectl's words for where an attempt takes place. */
const attempts: Readonly<Record<string, boolean>> = { client: true, none: false }

/** The value of a flag that needs none, as kubectl reads it. @throws UsageError */
function truthOf(flag: string, text: string): boolean {
  const isAttempt = flag === '--dry-run'
  if (isAttempt && Object.hasOwn(attempts, text)) return attempts[text] === true
  try {
    return parseGoBoolean(text)
  } catch {
    const more = isAttempt ? ', client or none: holdfast asks no server to try it' : ', or has no value'
    throw new UsageError(`${flag}=${text}: it is true or false${more}`)
  }
}
