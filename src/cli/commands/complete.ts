import { Command, type Option } from 'commander'
import type { Io } from '../output/io.js'

/**
 * `holdfast __complete -- WORD…`: what a shell may offer for the last word, '' where none is begun. A line is a word and, behind a tab, its
 * description; `:path` stands for the shell's own completion of paths. Read from the parser itself: a new flag is completed at once.
 */
export function completeCommand({ stdout }: Io): Command {
  const command = new Command('__complete')
  return command.argument('[words...]').action((words: readonly string[]) => {
    // bash takes --flag=value for three words.
    const typed = words.map((word, index) => (word === '=' && index === words.length - 1 ? '' : word))
    const before = typed.slice(0, -1).filter((word) => word !== '=')
    const offers = offersFor(command.parent ?? command, before, typed.at(-1) ?? '')
    stdout.write(offers.map((offer) => `${offer}\n`).join(''))
  })
}

const path = ':path'

function offersFor(holdfast: Command, before: readonly string[], current: string): readonly string[] {
  if (before.includes('--')) return [path]
  const command = before.reduce((at, word) => at.commands.find((one) => one.name() === word) ?? at, holdfast)
  const flags = command.options.filter(({ hidden }) => !hidden)
  const [attached = '', flag = before.at(-1)] = /^(--[^=]+)=/.exec(current) ?? []
  const option = flags.find(({ short, long }) => flag !== undefined && (flag === short || flag === long))
  const begins = (offer: string): boolean => offer.startsWith(current)
  if (option && (option.required || option.optional))
    return valuesOf(option)
      .map((value) => (value === path ? path : `${attached}${value}`))
      .filter((offer) => offer === path || begins(offer))
  if (current.startsWith('-')) return [...flags.flatMap(flagLines), ...helpLines].filter(begins)
  const [argument] = command.registeredArguments
  const subcommands = command.createHelp().visibleCommands(command).map(commandLine)
  const words = [...subcommands, ...(argument?.argChoices ?? [])].filter(begins)
  return argument !== undefined && argument.argChoices === undefined ? [...words, path] : words
}

/** None: free text, which nobody can guess. */
function valuesOf({ argChoices, flags }: Option): readonly string[] {
  return argChoices ?? (/<(?:file|dir)>$/.test(flags) ? [path] : [])
}

const line = (word: string, description: string): string => `${word}\t${description.replace(/\s+/g, ' ').trim()}`
const flagLines = ({ short, long, description }: Option): string[] =>
  [short, long].flatMap((name) => (name === undefined ? [] : [line(name, description)]))
const helpLines = ['-h', '--help'].map((name) => line(name, 'explain this command'))
const commandLine = (command: Command): string => line(command.name(), command.summary() || command.description())
