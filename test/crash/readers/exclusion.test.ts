/*
 * Two processes at one target. The first is stopped by strace in the midst of its exchange, for as long as a second wants to: what happens
 * meanwhile takes as long as it takes.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { kept, scratchWith } from '../../durable/scratch.js'
import { until } from '../../until.js'
import { readProc, signalRunning } from '../../processes.js'
import { environment, executable } from '../syscalls/distribution.js'

const hasStrace = spawnSync('strace', ['-V']).status === 0

interface Ended {
  code: number | null
  stdout: string
  stderr: string
}

function start(command: readonly string[]): { child: ChildProcess; ended: Promise<Ended> } {
  const [name = '', ...args] = command
  const child = spawn(name, args, { env: environment, stdio: ['ignore', 'pipe', 'pipe'] })
  const text = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text.stdout += chunk))
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (text.stderr += chunk))
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, ...text }))
  return { child, ended }
}

const run = (command: readonly string[]): Promise<Ended> => start(command).ended

/** Whether a process has opened a lock, which it does before it waits for it. */
function hasLockOpen({ pid }: ChildProcess): boolean {
  try {
    const directory = `/proc/${pid ?? 0}/fd`
    return readdirSync(directory).some((name) => readlinkSync(`${directory}/${name}`).endsWith('.lock'))
  } catch {
    // A descriptor that is closed meanwhile.
    return false
  }
}

/** The command under strace, which writes to `log`: each of these calls takes effect, and stops the program before it returns. */
function stoppedAt(call: string, command: readonly string[], log: string): string[] {
  const trace = ['-e', `trace=${call}`, '-e', `inject=${call}:signal=SIGSTOP`]
  return ['strace', '-f', '-qq', '-o', log, ...trace, ...command]
}

/** Whether it has been stopped. Its state in /proc does not show it: strace stops it for a moment at every call. */
function isStopped(log: string): boolean {
  return existsSync(log) && readFileSync(log, 'latin1').includes('stopped by SIGSTOP')
}

/** Lets the program below this strace go on, up to the next of those calls. */
function goOn(strace: number | undefined): void {
  const child = childOf(strace)
  if (child !== undefined) signalRunning(child, 'SIGCONT')
}

function childOf(strace: number | undefined): number | undefined {
  const children = readProc(`/proc/${strace ?? 0}/task/${strace ?? 0}/children`).trim()
  return children === '' ? undefined : Number(children.split(' ')[0])
}

const forms = ['replace', 'write'] as const
for (const form of forms) {
  await t.test(`${form}: 75 while another holds the lock`, { skip: hasStrace ? false : 'needs strace' }, async (t) => {
    const [root, parent] = scratchWith(t, 'parent')
    const target = join(parent, 'target')
    mkdirSync(parent)
    const sources = ['first', 'second', 'third'].map((name) => {
      mkdirSync(join(root, name))
      writeFileSync(join(root, name, 'file'), name)
      return join(root, name)
    })
    const command = (source: string, ...more: string[]): string[] => {
      const holdfast = [process.execPath, executable(root)]
      return form === 'replace'
        ? [...holdfast, 'replace', target, '--from', source, ...more]
        : [
            'sh',
            '-c',
            'input=$1; shift; exec "$@" < "$input/file"',
            'sh',
            source,
            ...holdfast,
            'write',
            target,
            ...more,
          ]
    }
    const read = (): string => readFileSync(form === 'replace' ? join(target, 'file') : target, 'utf8')
    const [first = '', second = '', third = ''] = sources
    t.equal((await run(command(first))).code, 0)

    const log = join(root, 'strace.log')
    const holder = start(stoppedAt('renameat2', command(second), log))
    t.teardown(() => goOn(holder.child.pid))
    await until('the first process is stopped', () => isStopped(log))
    const before = [lstatSync(target).ino, ...kept(parent)]
    const refused = await run([...command(third), '-o', 'json'])
    t.equal(refused.code, 75)
    const { error } = JSON.parse(refused.stdout) as { error: { reason: string; published: boolean } }
    t.match(error, { reason: 'Busy', published: false, code: 'EAGAIN', syscall: 'flock' })
    t.same([lstatSync(target).ino, ...kept(parent)], before, 'the refused one has changed and removed nothing')

    const waiter = start([...command(third), '--lock-timeout', '120s'])
    await until('the other one waits', () => hasLockOpen(waiter.child))
    goOn(holder.child.pid)
    const waits = await waiter.ended
    t.equal((await holder.ended).code, 0, 'the one that held the lock has published')
    t.equal(waits.code, 0, waits.stderr)
    t.equal(read(), 'third', 'and the one that waited came after it')
    t.same(kept(parent), ['lock', 'record'])
  })
}
