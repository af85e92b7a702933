import { CommanderError, type Command } from 'commander'
import { exitCodeAfter, exitCodeOf, exitCodes, UsageError } from './words/exit-codes.js'
import { processIo, type Io } from './output/io.js'
import { behindDoor } from './output/colour.js'
import { normalLine } from './words/argv.js'
import { readEnvironment } from './words/command.js'
import { isForPrograms, print } from './output/print.js'
import { program } from './program.js'
import { reportError } from './output/report-error.js'
import { isUtf8 } from 'node:buffer'
import { readFileSync } from 'node:fs'

/**
 * Runs a command line and resolves to its exit code. Reports every failure, but rejects where a file of the program itself does
 * not load. Leaves nothing behind in the process, so that several command lines can run in one, also at the same time.
 */
export async function main(argv: readonly string[], process: Io = processIo): Promise<number> {
  const code = await run(argv, behindDoor(process))
  // Node, as it ends, puts the terminal's modes back, and aborts where the terminal is gone. The signal's own action does without.
  if (code === exitCodeAfter('SIGHUP')) process.raise('SIGHUP')
  return code
}

async function run(argv: readonly string[], io: Io): Promise<number> {
  const holdfast = await program(io, argv)
  // The options of the command that ran decide how its error is reported.
  let running: Command = holdfast
  let line = argv
  holdfast.hook('preAction', (_, command) => {
    running = command
    io.closeInspector()
    readEnvironment(command, io.env)
    settleVerbosity(command)
  })
  try {
    refuseUndecodable(argv, io.env)
    line = normalLine(argv, holdfast)
    await holdfast.parseAsync(explainable(line, holdfast), { from: 'user' })
    return exitCodes.done
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return exitCodes.done
    try {
      const isParsed = running !== holdfast && !(error instanceof CommanderError)
      const { output, ...options } = running.opts<{ output?: string }>()
      const format = isParsed ? output : formatIn(line, io.env)
      const meant = isParsed ? running : holdfast.commands.find((command) => line.includes(command.name()))
      const asked = takesErrors(meant ?? holdfast, format) ? format : undefined
      // Commander has reported its own errors.
      if (!(error instanceof CommanderError)) await reportError(error, { ...options, output: asked }, io)
      else if (asked !== undefined)
        await print(io.stdout, asked, { error: { message: error.message.replace(/^error: /, '') } }, () => '')
    } catch {
      // Neither can be reported any more, but the code is still true.
    }
    return error instanceof CommanderError ? exitCodes.usage : exitCodeOf(error)
  }
}

/** What users of kubectl and of a shell type first; commander would propose the name that looks most like it. */
const habits: Readonly<Record<string, string>> = {
  get: 'status',
  describe: 'status',
  list: 'status',
  ls: 'status',
  delete: 'remove',
  rm: 'remove',
  apply: 'sync or replace',
}

/**
 * A command line without a command asks for help, as with kubectl. `help NAME` of an unknown command gets the answer of NAME itself, with
 * the probable command, and `help NAME SUBCOMMAND` explains that one: commander would only print the help of the whole, or of NAME.
 */
function explainable(argv: readonly string[], { commands }: Command): readonly string[] {
  const [first, name, ...rest] = argv
  if (first === undefined) return ['--help']
  const meant = Object.hasOwn(habits, first) ? habits[first] : undefined
  if (meant !== undefined)
    throw new UsageError(`unknown command '${first}': holdfast calls it ${meant} (holdfast --help lists all)`)
  if (first !== 'help' || name === undefined) return argv
  const found = commands.find((command) => command.name() === name)
  if (found === undefined) return argv.slice(1)
  return rest.length > 0 && found.commands.length > 0 ? [name, 'help', ...rest] : argv
}

/** Whether an error is a document, too. What `rbac` prints as YAML is for `kubectl apply`, which takes no errors. */
function takesErrors({ options }: Command, format: string | undefined): format is 'json' | 'yaml' {
  const choices = options.find(({ long }) => long === '--output')?.argChoices
  return isForPrograms(format) && (format === 'json' || choices === undefined || choices.includes('text'))
}

/** The format that arguments which could not be parsed ask for: the last that is for a program. */
function formatIn(argv: readonly string[], environment: NodeJS.ProcessEnv): string | undefined {
  const named = argv.map((word, index) =>
    word === '-o' || word === '--output' ? argv[index + 1] : /^(?:-o|--output=)(.+)$/.exec(word)?.[1],
  )
  return named.findLast(isForPrograms) ?? environment.HOLDFAST_OUTPUT
}

/** Node puts it in the place of bytes that are no UTF-8: a path with it names another file than the user did. */
const replacement = '\uFFFD'

/**
 * Refuses arguments and variables that are no UTF-8: Linux's paths are bytes, Node's are text, and a path that Node had to decode with
 * replacements names another file. /proc has the original bytes; this reads it only where Node had to replace something.
 * @throws UsageError, which names the argument or the variable
 */
function refuseUndecodable(argv: readonly string[], environment: NodeJS.ProcessEnv): void {
  const index = argv.findIndex((argument) => argument.includes(replacement))
  if (index >= 0) {
    const bytes = given('cmdline').at(index - argv.length)
    if (bytes !== undefined && !isUtf8(bytes)) throw refusal(`argument ${index + 1}`, bytes)
  }
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith('HOLDFAST_') || value?.includes(replacement) !== true) continue
    const bytes = given('environ').find((variable) =>
      variable.subarray(0, name.length + 1).equals(Buffer.from(`${name}=`)),
    )
    if (bytes !== undefined && !isUtf8(bytes)) throw refusal(name, bytes)
  }
}

/** This process's arguments or variables, each as its bytes. */
function given(what: 'cmdline' | 'environ'): Buffer[] {
  const all = readFileSync(`/proc/self/${what}`)
  const found: Buffer[] = []
  for (let start = 0; start < all.length;) {
    const end = all.indexOf(0, start)
    found.push(all.subarray(start, end < 0 ? all.length : end))
    start = end < 0 ? all.length : end + 1
  }
  return found
}

function refusal(what: string, bytes: Buffer): UsageError {
  const shown = Array.from(bytes, (byte) =>
    byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`,
  ).join('')
  return new UsageError(`${what} is not UTF-8: $'${shown}': rename the file, or name a directory above it`)
}

/** klog's: from this number on, everything is logged. */
const everything = 4

/**
 * Has the flags of a command say the same: level and output follow from `-q` and `-v`.
 * @internal
 */
export function settleVerbosity(command: Command): void {
  const { quiet, v, logLevel, output } = command.opts<{
    quiet?: true
    v?: number
    logLevel?: string
    output?: string
  }>()
  if (v !== undefined && v >= everything && logLevel === 'info') command.setOptionValue('logLevel', 'debug')
  if (quiet !== true) return
  if (logLevel !== 'silent') command.setOptionValue('logLevel', 'error')
  if (output === 'text' || output === 'wide') command.setOptionValue('output', 'none')
}
