import { Command } from 'commander'
import { agentCommand } from './agent.js'
import { checkCommand } from './check.js'
import { demoCommand } from './demo.js'
import { installCommand } from './install.js'
import { monitorCommand } from './monitor.js'
import { print } from './print.js'
import { pruneCommand } from './prune.js'
import { rbacCommand } from './rbac.js'
import { replaceCommand } from './replace.js'
import { statusCommand } from './status.js'
import { syncCommand } from './sync.js'
import { verifyCommand } from './verify.js'
import { version } from './version.js'
import { writeCommand } from './write.js'

/** A line break inside a paragraph of a description: where the source wraps, not the terminal. */
const lineBreak = /(?<!\n)\n(?!\n)/g

/** The command table. Nothing here does work: each command loads what it needs when it runs. */
export function program(): Command {
  const holdfast = new Command('holdfast')
    .description(
      `Keeps certificates, keys, configuration and static pods on a Kubernetes node whole and durable: whoever opens a directory
sees all of the old content or all of the new, a pod's manifest never names what is not there, and what was published
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
  const versionCommand = new Command('version').description('print the version').action(() => print(`${version()}\n`))
  const commands = [
    agentCommand(),
    syncCommand(),
    replaceCommand(),
    writeCommand(),
    verifyCommand(),
    statusCommand(),
    checkCommand(),
    installCommand(),
    pruneCommand(),
    monitorCommand(),
    rbacCommand(),
    demoCommand(),
  ]
  for (const command of commands) holdfast.addCommand(command)
  // What kubectl's users type first.
  holdfast.addCommand(versionCommand, { hidden: true })
  for (const command of commands) present(command, 'holdfast')
  speak(holdfast, 'holdfast')
  return holdfast
}

/** A command and its subcommands, as all of ours look; `parent`: what is typed before its name. */
function present(command: Command, parent: string): void {
  const path = `${parent} ${command.name()}`
  command.helpOption('-h, --help', 'explain this command').allowExcessArguments(false)
  if (command.commands.length > 0) command.helpCommand('help [command]', 'explain a command')
  speak(command, path)
  for (const subcommand of command.commands) present(subcommand, path)
}

function speak(command: Command, path: string): void {
  command
    .description(command.description().replace(lineBreak, ' '))
    // Written at once, and a reader that has gone away (`| head`) is no fault.
    .configureOutput({ writeOut: print })
    .exitOverride()
    .showHelpAfterError(`(${path} --help explains it)`)
}
