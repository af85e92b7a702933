import { CommanderError, type Command } from 'commander'
import { readEnvironmentFlags } from './environment-flags.js'
import { exitCodeOf, exitCodes } from './exit-codes.js'
import { program } from './program.js'
import { printJson } from './print.js'
import { reportError } from './report-error.js'

/** Runs the command line and resolves to its exit code. Never rejects: whatever failed has been told. */
export async function main(argv: readonly string[]): Promise<number> {
  dropEmptyVariables()
  const holdfast = program()
  // The options of the command that ran decide how its error is told.
  let running: Command = holdfast
  holdfast.hook('preAction', (_, command) => {
    running = command
    readEnvironmentFlags(command)
  })
  try {
    await holdfast.parseAsync(explainable(argv, holdfast), { from: 'user' })
    return exitCodes.done
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return exitCodes.done
    try {
      // Commander has told of what it could not parse.
      if (!(error instanceof CommanderError)) reportError(error, running.opts())
      else if (asksForJson(argv)) printJson({ error: { message: error.message.replace(/^error: /, '') } })
    } catch {
      // Neither may be told any more, but the code is still true.
    }
    return error instanceof CommanderError ? exitCodes.usage : exitCodeOf(error)
  }
}

/**
 * `help NAME` of no command is answered as NAME itself would be, with what was probably meant, and `help NAME SUBCOMMAND` explains that
 * one: commander would only print the help of the whole, or of NAME.
 */
function explainable(argv: readonly string[], { commands }: Command): readonly string[] {
  const [first, name, ...rest] = argv
  if (first !== 'help' || name === undefined) return argv
  const found = commands.find((command) => command.name() === name)
  if (found === undefined) return argv.slice(1)
  return rest.length > 0 && found.commands.length > 0 ? [name, 'help', ...rest] : argv
}

/** Whether a JSON document was asked for, by arguments that could not be parsed. */
function asksForJson(argv: readonly string[]): boolean {
  const asked = argv.some((word, index) => {
    if (word === '-o' || word === '--output') return argv[index + 1] === 'json'
    return word === '-ojson' || word === '--output=json'
  })
  return asked || process.env.HOLDFAST_OUTPUT === 'json'
}

/** `HOLDFAST_X=` in a pod's template means that X is not set. */
function dropEmptyVariables(): void {
  for (const [name, value] of Object.entries(process.env)) {
    if (name.startsWith('HOLDFAST_') && value === '') Reflect.deleteProperty(process.env, name)
  }
}
