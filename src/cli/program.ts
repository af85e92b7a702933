import { unlink, writeFileSync } from 'node:fs'
import { Argument, Command, Help } from 'commander'
import { wantsColour } from './output/colour.js'
import { fitHelp } from './output/help-text.js'
import type { Io } from './output/io.js'
import { describeOption, Flag } from './words/command.js'
import type { CommandData, TypedFlag } from './words/types.js'
import { globalFlags } from './words/options.js'
import { version } from './words/version.js'

/** The commands; each has a file. The help lists them by their groups. @internal */
export const commands = {
  agent: async () => (await import('./commands/agent.js')).agentCommand,
  sync: async () => (await import('./commands/sync.js')).syncCommand,
  replace: async () => (await import('./commands/replace.js')).replaceCommand,
  write: async () => (await import('./commands/write.js')).writeCommand,
  verify: async () => (await import('./commands/verify.js')).verifyCommand,
  status: async () => (await import('./commands/status.js')).statusCommand,
  diff: async () => (await import('./commands/diff.js')).diffCommand,
  history: async () => (await import('./commands/history.js')).historyCommand,
  rollback: async () => (await import('./commands/rollback.js')).rollbackCommand,
  reload: async () => (await import('./commands/reload.js')).reloadCommand,
  adopt: async () => (await import('./commands/adopt.js')).adoptCommand,
  hold: async () => (await import('./commands/hold.js')).holdCommand,
  release: async () => (await import('./commands/release.js')).releaseCommand,
  remove: async () => (await import('./commands/remove.js')).removeCommand,
  check: async () => (await import('./commands/check.js')).checkCommand,
  torture: async () => (await import('./commands/torture.js')).tortureCommand,
  witness: async () => (await import('./commands/witness.js')).witnessCommand,
  install: async () => (await import('./commands/install.js')).installCommand,
  prune: async () => (await import('./commands/prune.js')).pruneCommand,
  monitor: async () => (await import('./commands/monitor.js')).monitorCommand,
  rollout: async () => (await import('./commands/rollout.js')).rolloutCommand,
  fleet: async () => (await import('./commands/fleet.js')).fleetCommand,
  rbac: async () => (await import('./commands/rbac.js')).rbacCommand,
  schema: async () => (await import('./commands/schema.js')).schemaCommand,
  completion: async () => (await import('./commands/completion.js')).completionCommand,
} satisfies Record<string, () => Promise<CommandData>>

/** The commands as the help lists them, under their purpose. */
const groups: Readonly<Record<string, readonly (keyof typeof commands)[]>> = {
  'Keep directories as a configuration says:': ['agent', 'sync', 'status', 'verify', 'check', 'reload'],
  'Publish by hand:': ['replace', 'write'],
  'Step in:': ['diff', 'history', 'rollback', 'hold', 'release', 'adopt', 'remove'],
  'Static pods:': ['install', 'prune', 'monitor', 'rollout'],
  'All nodes at once:': ['fleet'],
  'Test a disk:': ['torture', 'witness'],
  'Set up and learn:': ['rbac', 'schema', 'completion'],
}

function groupOf(name: string): string {
  return Object.entries(groups).find(([, names]) => (names as readonly string[]).includes(name))?.[0] ?? ''
}

const versionFlags = ['-V', '--version']

/** The parser of a command line, with those of the commands that it needs: without one, with all. */
export async function program(io: Io, argv: readonly string[] = []): Promise<Command> {
  const holdfast = new Command('holdfast')
    .description(
      `Keeps certificates, keys, configuration and static pods on a Kubernetes node intact and durable: whoever opens a directory
sees all of the old content or all of the new, a pod's manifest never names missing files, and what was published
survives a power cut.`,
    )
    .version(version(), versionFlags.join(', '), 'print the version')
    .helpOption('-h, --help', 'explain a command')
    .commandsGroup('Set up and learn:')
    .helpCommand('help [command]', 'explain a command')
    // Needed for the flags of `rbac`: a flag belongs to the command whose name came last.
    .enablePositionalOptions()
    .addHelpText(
      'after',
      `
Examples:
  holdfast agent --config /etc/holdfast.yaml
  holdfast sync --config /etc/holdfast.yaml --timeout 60s
  holdfast replace /etc/kubernetes/certs --from ./certs
  holdfast install web.yaml --pod-manifest-dir /etc/kubernetes/manifests --resources ./web \\
    --resource-dir /var/lib/web --revision 7`,
    )
  const askCommand = new Command('__ask')
    .argument('<file>')
    .argument('<name>')
    .action((file: string, name: string) => {
      writeFileSync('/proc/self/comm', name)
      unlink(file, () => undefined)
    })
  const versionCommand = new Command('version')
    .description('print the version')
    .action(() => io.stdout.write(`${version()}\n`))
  for (const data of await Promise.all(commandNames(argv).map((name) => commands[name]())))
    holdfast.addCommand(parserOf(data, io).helpGroup(groupOf(data.name)))
  // kubectl's users type `version` first.
  holdfast.addCommand(versionCommand, { hidden: true })
  // By it the executable asks a file system (problemOfState): it runs no script.
  holdfast.addCommand(askCommand, { hidden: true })
  if (argv[0] === completeName)
    holdfast.addCommand((await import('./commands/complete.js')).completeCommand(io), { hidden: true })
  return speak(holdfast, 'holdfast', io, globalFlags)
}

const completeName = '__complete'

/**
 * A command line that names its command loads that one alone, for a start that takes half the time. Help and the suggestion for an unknown
 * name describe all of them.
 */
function commandNames([first = '', ...rest]: readonly string[]): (keyof typeof commands)[] {
  if ([...versionFlags, 'version', '__ask'].includes(first)) return []
  // Behind `--`; the last word is the one that is completed.
  if (first === completeName && rest.length > 2) return commandNames(rest.slice(1))
  return isCommand(first) ? [first] : (Object.keys(commands) as (keyof typeof commands)[])
}

function isCommand(name: string): name is keyof typeof commands {
  return Object.hasOwn(commands, name)
}

/** Knows what stood behind `--`, which commander takes away. */
class Parser extends Command {
  afterDashes: readonly string[] | undefined

  override parseOptions(argv: string[]) {
    const dashes = argv.indexOf('--')
    this.afterDashes = dashes < 0 ? undefined : argv.slice(dashes + 1)
    return super.parseOptions(argv)
  }
}

/** The parser of a command and of those below it. `parent`: the words before its name. @internal */
export function parserOf(data: CommandData, io: Io, parent = 'holdfast'): Command {
  const { name, words = [], flags = [], commands = [], usage, run } = data
  const path = `${parent} ${name}`
  const parser = new Parser(name)
    .summary(data.summary)
    .description(data.description)
    .helpOption('-h, --help', 'explain this command')
    .allowExcessArguments(false)
    .addHelpText('after', textAfter(data))
  if (usage !== undefined) parser.usage(usage)
  for (const [usual, description, choices] of words) {
    const argument = new Argument(usual, description)
    parser.addArgument(choices ? argument.choices(choices) : argument)
  }
  for (const one of flags) parser.addOption(one)
  for (const one of commands) parser.addCommand(parserOf(one, io, path))
  // A flag behind the name of a subcommand is the subcommand's, also where both have one of that name.
  if (commands.length > 0) parser.helpCommand('help [command]', 'explain a command').enablePositionalOptions()
  if (run) {
    const act = run as unknown as (...given: readonly unknown[]) => unknown
    parser.action(async (...called: unknown[]) => {
      const named = parser.options
        .map((option) => [option.attributeName(), option.long ?? ''] as const)
        .filter(([attribute]) => parser.getOptionValueSource(attribute) === 'cli')
      const given = { io, options: parser.opts(), named: new Map(named), afterDashes: parser.afterDashes }
      await act(given, ...called.slice(0, -2))
    })
  }
  return speak(parser, path, io)
}

/** The help of many commands names them alone. */
const isGlobal = (option: unknown): boolean => option instanceof Flag && option.settings.global === true

function textAfter({ flags = [], more, examples, exitCodes }: CommandData): string {
  const shared = flags.filter(isGlobal).map(({ short, long }) => short ?? long)
  return [
    ...(shared.length > 0 ? [`Global options ("holdfast --help" explains them): ${shared.join(', ')}`] : []),
    ...(more === undefined ? [] : [more]),
    `Examples:\n${examples}`,
    `Exit codes: ${exitCodes}`,
  ]
    .map((block) => `\n${block}`)
    .join('\n')
}

/** A line break inside a paragraph of a description: where the source wraps, not the terminal. */
const lineBreak = /(?<!\n)\n(?!\n)/g

/** Has a parser write in the form of all of ours. `global`: the flags that its help explains for all commands. */
function speak(parser: Command, path: string, { stdout, stderr, env }: Io, global: readonly TypedFlag[] = []): Command {
  return parser
    .description(parser.description().replace(lineBreak, ' '))
    .configureHelp({
      optionDescription: describeOption,
      // Commander sets the width where it lays out the help. The proposal for a misspelt flag, and a manual page, look at all flags.
      visibleOptions(one) {
        const all = Help.prototype.visibleOptions.call(this, one)
        return this.helpWidth === undefined ? all : all.filter((option) => !isGlobal(option))
      },
      showGlobalOptions: true,
      visibleGlobalOptions: () => [...global],
      minWidthToWrap: 24,
    })
    .configureOutput({
      writeOut: (text) => stdout.write(fitHelp(text, stdout.columns ?? 80)),
      writeErr: stderr.write,
      getOutHelpWidth: () => stdout.columns ?? 80,
      getErrHelpWidth: () => stderr.columns ?? 80,
      getOutHasColors: () => wantsColour(stdout, env),
      getErrHasColors: () => wantsColour(stderr, env),
    })
    .exitOverride()
    .showHelpAfterError(`(${path} --help explains it)`)
}
