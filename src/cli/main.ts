import { CommanderError, type Command } from 'commander'
import { exitCodeOf, exitCodes } from './exit-codes.js'
import { printJson, processIo, type Io } from './io.js'
import { readEnvironment } from './option.js'
import { program } from './program.js'
import { reportError } from './report-error.js'
import { refuseUndecodable } from './undecodable.js'

/**
 * Runs a command line and resolves to its exit code. Never rejects: whatever failed has been reported. Leaves nothing behind in the
 * process, so that several can run in one, also at the same time.
 */
export async function main(argv: readonly string[], io: Io = processIo): Promise<number> {
  const holdfast = program(io)
  // The options of the command that ran decide how its error is reported.
  let running: Command = holdfast
  holdfast.hook('preAction', (_, command) => {
    running = command
    readEnvironment(command, io.env)
  })
  try {
    refuseUndecodable(argv, io.env)
    await holdfast.parseAsync(explainable(argv, holdfast), { from: 'user' })
    return exitCodes.done
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return exitCodes.done
    try {
      // Commander has reported what it could not parse.
      if (!(error instanceof CommanderError)) reportError(error, running.opts(), io)
      else if (asksForJson(argv, io.env)) {
        printJson(io.stdout, { error: { message: error.message.replace(/^error: /, '') } })
      }
    } catch {
      // Neither can be reported any more, but the code is still true.
    }
    return error instanceof CommanderError ? exitCodes.usage : exitCodeOf(error)
  }
}

/**
 * No command at all asks for help, as with kubectl. `help NAME` of no command is answered as NAME itself would be, with what was probably meant, and `help NAME SUBCOMMAND` explains that
 * one: commander would only print the help of the whole, or of NAME.
 */
function explainable(argv: readonly string[], { commands }: Command): readonly string[] {
  const [first, name, ...rest] = argv
  if (first === undefined) return ['--help']
  if (first !== 'help' || name === undefined) return argv
  const found = commands.find((command) => command.name() === name)
  if (found === undefined) return argv.slice(1)
  return rest.length > 0 && found.commands.length > 0 ? [name, 'help', ...rest] : argv
}

/** Whether a JSON document was asked for, by arguments that could not be parsed. */
function asksForJson(argv: readonly string[], environment: NodeJS.ProcessEnv): boolean {
  const asked = argv.some((word, index) => {
    if (word === '-o' || word === '--output') return argv[index + 1] === 'json'
    return word === '-ojson' || word === '--output=json'
  })
  return asked || environment.HOLDFAST_OUTPUT === 'json'
}
