/** A node that a real systemd has booted, with the agent as deploy/systemd has it. */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { executableForOthers } from '../crash/syscalls/distribution.js'
import { type Owner, workingDirectory } from '../e2e/guard.js'
import { project } from '../project.js'
import { until } from '../until.js'
import { makeCgroups } from './cgroups.js'
import { Space } from './space.js'

const deploy = join(project, 'deploy/systemd')
const vendor = '/lib/systemd/system'
/** Units of systemd's own: the journal, with its sockets. Others are in no unit's way: no unit requires them. */
const vendorUnits = ['systemd-journald.service', 'systemd-journald.socket', 'systemd-journald-dev-log.socket']
const targets = ['default', 'sysinit', 'basic', 'shutdown', 'multi-user']

/** Where the program is on this node, in place of /usr/local/bin, which is the machine's. */
const program = '/opt/holdfast/holdfast'

/** Two ways to hang, which no user has: SIGUSR2 keeps the event loop; after SIGWINCH it turns, timers run, and the queues start nothing. */
const hanging = `
process.on('SIGUSR2', () => { for (;;) {} })
process.on('SIGWINCH', () => { globalThis.setImmediate = () => ({}) })
`

export interface JournalEntry {
  readonly PRIORITY: string
  readonly MESSAGE: string
}

export class SystemdNode {
  private constructor(
    readonly space: Space,
    private readonly units: string,
  ) {}

  /** Boots systemd; what it runs ends with the test. */
  static async boot(t: Owner): Promise<SystemdNode> {
    const directory = mkdtempSync(join(workingDirectory, 'systemd-'))
    const units = join(directory, 'units')
    mkdirSync(units)
    for (const unit of vendorUnits) cpSync(join(vendor, unit), join(units, unit))
    const sockets = vendorUnits.filter((unit) => unit.endsWith('.socket')).join(' ')
    for (const target of targets) {
      const wants = target === 'sysinit' ? `Wants=${sockets}\nAfter=${sockets}\n` : ''
      writeFileSync(join(units, `${target}.target`), `[Unit]\nDescription=${target}\n${wants}`)
    }
    const cgroup = makeCgroups(`holdfast-systemd-${process.pid}-${readdirSync(workingDirectory).length}`)
    const space = await Space.create(directory, { units, cgroup })
    t.teardown(() => space.end())
    const node = new SystemdNode(space, units)
    const answers = async () => (await space.run('systemctl', ['show', '--property=Version'])).code === 0
    await until('systemd answers', answers, { within: 60_000, every: 100 })
    t.teardown(async () => {
      if (!t.passing())
        t.comment(
          (await space.run('journalctl', ['--no-pager', '--lines=60', '_TRANSPORT=stdout', '+', '_PID=1'])).stdout,
        )
    })
    mkdirSync(space.onDisk('/etc/kubernetes/node-certs'), { recursive: true })
    mkdirSync(dirname(space.seen(program)), { recursive: true })
    // Beside it: the unit sees neither /home nor /root nor the machine's /tmp, where the project may lie.
    const seen = relative(space.seen('/'), executableForOthers(dirname(space.seen(program))))
    writeFileSync(space.seen(program), `#!/bin/sh\nexec ${process.execPath} /${seen} "$@"\n`, { mode: 0o755 })
    writeFileSync(space.seen(`${program}.hanging.cjs`), hanging)
    const unit = readFileSync(join(deploy, 'holdfast.service'), 'utf8')
    await node.install('holdfast.service', unit.replaceAll('/usr/local/bin/holdfast', program))
    return node
  }

  /** Puts a unit or a drop-in in place. */
  async install(name: string, text: string): Promise<void> {
    const file = join(this.units, name)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
    await this.space.demand('systemctl', ['daemon-reload'])
  }

  /** Installs a unit that waits for the agent, as deploy/systemd has it. */
  async installAfterHoldfast(name: string, text: string): Promise<void> {
    await this.install(name, text)
    await this.install(`${name}.d/holdfast.conf`, readFileSync(join(deploy, 'after-holdfast.conf'), 'utf8'))
  }

  /** Makes the agent able to hang, and systemd less patient with it. */
  async letHang(seconds: number): Promise<void> {
    const environment = `Environment=NODE_OPTIONS=--require=${program}.hanging.cjs`
    await this.install('holdfast.service.d/hang.conf', `[Service]\nWatchdogSec=${seconds}s\n${environment}\n`)
  }

  configure(directories: readonly object[], source: object): void {
    const document = {
      ...{ apiVersion: 'holdfast.dev/v1alpha1', kind: 'AgentConfiguration' },
      ...{ stateDirectory: '/var/lib/holdfast', source, directories },
    }
    writeFileSync(this.space.onDisk('/etc/holdfast/holdfast.yaml'), JSON.stringify(document))
  }

  async show(property: string, unit = 'holdfast.service'): Promise<string> {
    return (await this.space.demand('systemctl', ['show', '--value', '--property', property, unit])).trim()
  }

  /** All that the agent has written to the journal. */
  async journal(): Promise<JournalEntry[]> {
    const lines = await this.space.demand('journalctl', [
      '--output=json',
      '--unit=holdfast.service',
      '_TRANSPORT=stdout',
    ])
    return lines
      .trim()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as JournalEntry)
  }
}
