import { Command } from 'commander'
import { agentCommand } from './agent.js'
import { demoCommand } from './demo.js'
import { print } from './print.js'
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
      `Keeps certificates, keys and configuration on a Kubernetes node whole and durable: whoever opens a directory sees all of
the old content or all of the new, and what was published survives a power cut.`,
    )
    .version(version(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'explain a command')
    .helpCommand('help [command]', 'explain a command')
    .addHelpText(
      'after',
      `
Examples:
  holdfast agent --config /etc/holdfast.yaml
  holdfast sync --config /etc/holdfast.yaml --timeout 60s
  holdfast replace /etc/kubernetes/certs --from ./certs
  holdfast demo`,
    )
  const versionCommand = new Command('version')
    .description('print the version')
    .action(() => print(`${version()}\n`))
  const commands = [
    agentCommand(),
    syncCommand(),
    replaceCommand(),
    writeCommand(),
    verifyCommand(),
    statusCommand(),
    demoCommand(),
  ]
  for (const command of commands) {
    holdfast.addCommand(command.helpOption('-h, --help', 'explain this command').allowExcessArguments(false))
  }
  // What kubectl's users type first.
  holdfast.addCommand(versionCommand, { hidden: true })
  for (const command of [holdfast, ...commands]) {
    command
      .description(command.description().replace(lineBreak, ' '))
      // Written at once, and a reader that has gone away (`| head`) is no fault.
      .configureOutput({ writeOut: print })
      .exitOverride()
      .showHelpAfterError(
        `(${['holdfast', command.name()].filter((name, index) => index === 0 || name !== 'holdfast').join(' ')} --help explains it)`,
      )
  }
  return holdfast
}
