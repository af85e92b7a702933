/** The status in memory: what the agent's own user reads, and what another program left there. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { pathToFileURL } from 'node:url'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readStatusInMemory, StatusInMemory } from '../../../src/agent/report/status-in-memory.js'
import { project } from '../../project.js'

const written = (second: number, version = '1') =>
  JSON.stringify({ agent: { version, writtenAt: new Date(second * 1000).toISOString() }, directories: [] })
const text = written(1)
const needsRoot = process.geteuid?.() === 0 ? false : 'needs root'

/** Another process that keeps this status, behind a command that changes what it is. */
async function otherKeeps(t: Test, stateDirectory: string, prefix: readonly string[]): Promise<void> {
  const module = pathToFileURL(join(project, 'dist/src/agent/report/status-in-memory.js')).href
  const script = `
    const { StatusInMemory } = await import(${JSON.stringify(module)})
    new StatusInMemory(${JSON.stringify(stateDirectory)}).write(${JSON.stringify(text)})
    console.log('kept')
    setInterval(() => {}, 1000)`
  const command = [...prefix, process.execPath, '--input-type=module', '--eval', script]
  const child = spawn('env', command, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
}

await t.test('status reads what a process of its user keeps in memory, until the disk answers again', async (t) => {
  const stateDirectory = '/srv/state-in-memory-1'
  const memory = new StatusInMemory(stateDirectory)
  t.teardown(() => memory.drop())
  t.equal(await readStatusInMemory(stateDirectory), undefined)
  memory.write(text)
  t.match(await readStatusInMemory(stateDirectory), { agent: { version: '1' } })
  memory.drop()
  t.equal(await readStatusInMemory(stateDirectory), undefined)
  await otherKeeps(t, stateDirectory, [])
  t.match(await readStatusInMemory(stateDirectory), { agent: { version: '1' } })
})

await t.test('status reads the newest while the agent writes the next one', async (t) => {
  const stateDirectory = '/srv/state-in-memory-4'
  const memory = new StatusInMemory(stateDirectory)
  t.teardown(() => memory.drop())
  for (let second = 1; second <= 5; second++) {
    memory.write(written(second, `${second}`))
    t.match(await readStatusInMemory(stateDirectory), { agent: { version: `${second}` } })
  }
  // A write replaces nothing that a reader may be about to open.
  const reading = readStatusInMemory(stateDirectory)
  memory.write(written(6, '6'))
  t.match(await reading, { agent: { version: /^[56]$/ } })
  memory.drop()
  t.equal(await readStatusInMemory(stateDirectory), undefined)
})

await t.test('root takes no status from a process of another user', { skip: needsRoot }, async (t) => {
  const stateDirectory = '/srv/state-in-memory-2'
  await otherKeeps(t, stateDirectory, ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'])
  t.equal(await readStatusInMemory(stateDirectory), undefined)
})

await t.test(
  'a file of that name with a lease, by another user, holds root up at no descriptor',
  { skip: needsRoot },
  async (t) => {
    const stateDirectory = '/srv/state-in-memory-5'
    // open(2) waits for the holder of a lease (fcntl(2), F_SETLEASE, F_WRLCK) for 45 s.
    const script = `
    $| = 1; $SIG{IO} = "IGNORE"; my $name = "holdfast-status:${stateDirectory}";
    my $fd = syscall(${process.arch === 'x64' ? 319 : 279}, $name, 0);
    open(my $leased, "<", "/proc/self/fd/$fd") or die; fcntl($leased, 1024, 1) or die "no lease: $!";
    print "leased"; sleep 60`
    const command = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', 'perl', '-e', script]
    const child = spawn('env', command, { stdio: ['ignore', 'pipe', 'inherit'] })
    t.teardown(() => child.kill('SIGKILL'))
    await once(child.stdout, 'data')
    const began = performance.now()
    t.equal(await readStatusInMemory(stateDirectory), undefined)
    t.ok(performance.now() - began < 30_000, `${performance.now() - began} ms`)
  },
)

await t.test('root takes no status from root of another container', { skip: needsRoot }, async (t) => {
  const stateDirectory = '/srv/state-in-memory-3'
  await otherKeeps(t, stateDirectory, ['unshare', '--mount'])
  t.equal(await readStatusInMemory(stateDirectory), undefined)
})
