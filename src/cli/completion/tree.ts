import type { Command, Option } from 'commander'

/* The words that a shell may complete, read from the parser itself: a new flag is completed at once. */

export interface Flag {
  /** `-o`, `--output`. */
  readonly names: readonly string[]
  readonly description: string
  /** The flag's value: none, a path, free text that the shell cannot guess, or one of these words. */
  readonly value: 'none' | 'path' | 'text' | readonly string[]
}

export interface Word {
  readonly word: string
  readonly description: string
}

export interface CommandNode {
  /** The words after `holdfast`: '' for none, `rbac install`. */
  readonly path: string
  /** Its subcommands, and the words that its argument may be. */
  readonly words: readonly Word[]
  /** Whether its argument is a path. */
  readonly takesPath: boolean
  readonly flags: readonly Flag[]
}

/** The program and all its commands, parents first. */
export function completionTree(program: Command): CommandNode[] {
  const commands = visibleCommands(program)
  const help: CommandNode = { path: 'help', words: commands.map(wordFor), takesPath: false, flags: [] }
  const root = nodeFor(program, '')
  const helpWord = { word: 'help', description: 'explain a command' }
  return [
    { ...root, words: [...root.words, helpWord] },
    ...commands.flatMap((command) => nodesBelow(command, '')),
    help,
  ]
}

function nodesBelow(command: Command, parent: string): CommandNode[] {
  const path = parent === '' ? command.name() : `${parent} ${command.name()}`
  return [nodeFor(command, path), ...visibleCommands(command).flatMap((child) => nodesBelow(child, path))]
}

function nodeFor(command: Command, path: string): CommandNode {
  const help: Flag = { names: ['-h', '--help'], description: 'explain this command', value: 'none' }
  const [argument] = command.registeredArguments
  return {
    path,
    words: [
      ...visibleCommands(command).map(wordFor),
      ...(argument?.argChoices ?? []).map((word) => ({ word, description: '' })),
    ],
    takesPath: argument !== undefined && argument.argChoices === undefined,
    flags: [...command.options.filter((option) => !option.hidden).map(flagFor), help],
  }
}

function visibleCommands(command: Command): Command[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .filter((child) => child.name() !== 'help')
}

function wordFor(command: Command): Word {
  return { word: command.name(), description: oneLine(command.summary() || command.description()) }
}

function flagFor(option: Option): Flag {
  const names = [option.short, option.long].filter((name) => name !== undefined)
  return { names, description: oneLine(option.description), value: valueOf(option) }
}

function valueOf(option: Option): Flag['value'] {
  if (!option.required && !option.optional) return 'none'
  if (option.argChoices !== undefined) return option.argChoices
  return /<(?:file|dir)>$/.test(option.flags) ? 'path' : 'text'
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}
