/** The commands of this room as a program of their own: `node launcher.js install …`. */
import { Command, CommanderError } from 'commander'
import { exitCodeOf } from '../../src/cli/exit-codes.js'
import { installCommand } from '../../src/cli/install.js'
import { monitorCommand } from '../../src/cli/monitor.js'
import { pruneCommand } from '../../src/cli/prune.js'
import { rbacInstallCommand } from '../../src/cli/rbac-install.js'
import { reportError } from '../../src/cli/report-error.js'

const holdfast = new Command('holdfast')
const commands = [installCommand(), pruneCommand(), monitorCommand()]
const rbac = new Command('rbac').addCommand(rbacInstallCommand().exitOverride())
let running: Command = holdfast
holdfast.hook('preAction', (_, command) => {
  running = command
})
for (const command of [...commands, rbac]) {
  holdfast.addCommand(command.exitOverride().allowExcessArguments(false))
}
try {
  await holdfast.exitOverride().parseAsync(process.argv.slice(2), { from: 'user' })
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2
  else {
    reportError(error, running.opts())
    process.exitCode = exitCodeOf(error)
  }
}
