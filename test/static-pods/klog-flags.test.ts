import { Command } from 'commander'
import t from 'tap'
import { installCommand } from '../../src/cli/commands/install.js'
import { monitorCommand } from '../../src/cli/commands/monitor.js'
import { pruneCommand } from '../../src/cli/commands/prune.js'
import { rbacCommand } from '../../src/cli/commands/rbac.js'
import { normalLine } from '../../src/cli/words/argv.js'
import { testIo } from '../cli/in-process.js'

const { io } = testIo()

/** Every flag that klog registers, and library-go's commands take. */
const klogFlags = [
  ...['--add-dir-header', '--alsologtostderr=false', '--log-backtrace-at=:0', '--log-dir=/x', '--log-file=/y'],
  ...['--log-file-max-size=1800', '--logtostderr=true', '--one-output', '--skip-headers', '--skip-log-headers=0'],
  ...['--stderrthreshold=2', '-v=2', '--vmodule=a=1,b=2'],
]

function parse(command: Command, args: readonly string[]): Command {
  command.exitOverride().configureOutput({ writeErr: () => undefined })
  const { words } = normalLine([command.name(), ...args], new Command('holdfast').addCommand(command))
  const { operands, unknown } = command.parseOptions(words.slice(1))
  if (operands.length + unknown.length > 0) throw new Error(`not read: ${[...operands, ...unknown].join(' ')}`)
  return command
}

await t.test("static-pod commands accept klog's flags, and leave them out of the help", async (t) => {
  const rbacInstall = rbacCommand(io).commands.find((command) => command.name() === 'install')
  for (const made of [installCommand(io), monitorCommand(io), pruneCommand(io), rbacInstall]) {
    if (made === undefined) throw new Error('rbac has no command install')
    const command = parse(made, klogFlags)
    t.notMatch(command.helpInformation(), /vmodule|logtostderr|skip-headers/)
  }
})

await t.test("--logtostderr does not take a manifest's name for its value", async (t) => {
  t.throws(() => parse(installCommand(io), ['--logtostderr', 'web.yaml']), /true or false, with "="/)
})
