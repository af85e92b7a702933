import { Command } from 'commander'
import { adoptCommand } from './adopt.js'
import { agentCommand } from './agent.js'
import { checkCommand } from './check.js'
import { wantsColour } from './colour.js'
import { completionCommand } from './completion.js'
import { demoCommand } from './demo.js'
import { diffCommand } from './diff.js'
import { historyCommand } from './history.js'
import { holdCommand } from './hold.js'
import { installCommand } from './install.js'
import type { Io } from './io.js'
import { monitorCommand } from './monitor.js'
import { describeOption } from './option.js'
import { pruneCommand } from './prune.js'
import { rbacCommand } from './rbac.js'
import { releaseCommand } from './release.js'
import { relocateCommand } from './relocate.js'
import { reloadCommand } from './reload.js'
import { removeCommand } from './remove.js'
import { replaceCommand } from './replace.js'
import { rollbackCommand } from './rollback.js'
import { rolloutCommand } from './rollout.js'
import { schemaCommand } from './schema.js'
import { statusCommand } from './status.js'
import { syncCommand } from './sync.js'
import { tortureCommand } from './torture.js'
import { verifyCommand } from './verify.js'
import { version } from './version.js'
import { witnessCommand } from './witness.js'
import { writeCommand } from './write.js'

/** The commands, in the order of the help. None does work here: each loads what it needs when it runs. @internal */
export const commands = {
  agent: agentCommand,
  sync: syncCommand,
  replace: replaceCommand,
  write: writeCommand,
  verify: verifyCommand,
  status: statusCommand,
  diff: diffCommand,
  history: historyCommand,
  rollback: rollbackCommand,
  reload: reloadCommand,
  adopt: adoptCommand,
  hold: holdCommand,
  release: releaseCommand,
  relocate: relocateCommand,
  remove: removeCommand,
  check: checkCommand,
  torture: tortureCommand,
  witness: witnessCommand,
  install: installCommand,
  prune: pruneCommand,
  monitor: monitorCommand,
  rollout: rolloutCommand,
  rbac: rbacCommand,
  schema: schemaCommand,
  demo: demoCommand,
  completion: completionCommand,
} satisfies Record<string, (io: Io) => Command>

/** A line break inside a paragraph of a description: where the source wraps, not the terminal. */
const lineBreak = /(?<!\n)\n(?!\n)/g

/** The parser of the command line. */
export function program(io: Io): Command {
  const holdfast = new Command('holdfast')
    .description(
      `Keeps certificates, keys, configuration and static pods on a Kubernetes node intact and durable: whoever opens a directory
sees all of the old content or all of the new, a pod's manifest never names missing files, and what was published
survives a power cut.`,
    )
    .version(version(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'explain a command')
    .helpCommand('help [command]', 'explain a command')
    // Needed for those of `rbac`: a flag belongs to the command whose name was given last.
    .enablePositionalOptions()
    .addHelpText(
      'after',
      `
Examples:
  holdfast agent --config /etc/holdfast.yaml
  holdfast sync --config /etc/holdfast.yaml --timeout 60s
  holdfast replace /etc/kubernetes/certs --from ./certs
  holdfast install web.yaml --pod-manifest-dir /etc/kubernetes/manifests --resources ./web \\
    --resource-dir /var/lib/web --revision 7
  holdfast demo`,
    )
  const versionCommand = new Command('version')
    .description('print the version')
    .action(() => io.stdout.write(`${version()}\n`))
  const made = Object.values(commands).map((make) => make(io))
  for (const command of made) holdfast.addCommand(command)
  // What kubectl's users type first.
  holdfast.addCommand(versionCommand, { hidden: true })
  for (const command of made) present(command, 'holdfast', io)
  speak(holdfast, 'holdfast', io)
  return holdfast
}

/** A command and its subcommands, as all of ours look; `parent`: what is typed before its name. */
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
    .configureHelp({ optionDescription: describeOption })
    .configureOutput({
      writeOut: stdout.write,
      writeErr: stderr.write,
      getOutHelpWidth: () => stdout.columns ?? 80,
      getErrHelpWidth: () => stderr.columns ?? 80,
      getOutHasColors: () => wantsColour(stdout, env),
      getErrHasColors: () => wantsColour(stderr, env),
    })
    .exitOverride()
    .showHelpAfterError(`(${path} --help explains it)`)
}
