import { unlink, writeFileSync } from 'node:fs'
import { Command } from 'commander'
import { wantsColour } from './output/colour.js'
import { fitHelp } from './output/help-text.js'
import type { Io } from './output/io.js'
import { describeOption } from './words/option.js'
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
} satisfies Record<string, () => Promise<(io: Io) => Command>>

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

/** A line break inside a paragraph of a description: where the source wraps, not the terminal. */
const lineBreak = /(?<!\n)\n(?!\n)/g

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
  const made = await Promise.all(namesFor(argv).map(async (name) => (await commands[name]())(io)))
  for (const command of made) holdfast.addCommand(command.helpGroup(groupOf(command.name())))
  // kubectl's users type `version` first.
  holdfast.addCommand(versionCommand, { hidden: true })
  // By it the executable asks a file system (problemOfState): it runs no script.
  holdfast.addCommand(askCommand, { hidden: true })
  if (argv[0] === completeName)
    holdfast.addCommand((await import('./commands/complete.js')).completeCommand(io), { hidden: true })
  for (const command of made) present(command, 'holdfast', io)
  speak(holdfast, 'holdfast', io)
  return holdfast
}

const completeName = '__complete'

/**
 * A command line that names its command loads that one alone, for a start that takes half the time. Help and the suggestion for an unknown
 * name describe all of them.
 */
function namesFor([first = '', ...rest]: readonly string[]): (keyof typeof commands)[] {
  if ([...versionFlags, 'version', '__ask'].includes(first)) return []
  // Behind `--`; the last word is the one that is completed.
  if (first === completeName && rest.length > 2) return namesFor(rest.slice(1))
  return isCommand(first) ? [first] : (Object.keys(commands) as (keyof typeof commands)[])
}

function isCommand(name: string): name is keyof typeof commands {
  return Object.hasOwn(commands, name)
}

/** A command and its subcommands, in the form of all of ours; `parent`: the words before its name. */
function present(command: Command, parent: string, io: Io): void {
  const path = `${parent} ${command.name()}`
  command.helpOption('-h, --help', 'explain this command').allowExcessArguments(false)
  if (command.commands.length > 0) command.helpCommand('help [command]', 'explain a command')
  speak(command, path, io)
  for (const subcommand of command.commands) present(subcommand, path, io)
}

function speak(command: Command, path: string, { stdout, stderr, env }: Io): void {
  command
    .description(command.description().replace(lineBreak, ' '))
    .configureHelp({ optionDescription: describeOption, minWidthToWrap: 24 })
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
