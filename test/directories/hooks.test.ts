/** Hooks that run a command or send a signal: how they end, how holdfast ends them, and their log. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, open, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { Hook } from '../../src/config/hooks.js'
import { HookError } from '../../src/directories/hook-error.js'
import { runHook } from '../../src/directories/hooks.js'
import { silent } from '../../src/log.js'
import { underGarbageCollection } from '../collect-garbage.js'
import { stateOf } from '../processes.js'
import { until } from '../until.js'
import { canary, policy, outcome, messageOf } from './hook-outcome.js'

const directory = await mkdtemp(join(tmpdir(), 'holdfast-hooks-'))

t.teardown(() => rm(directory, { recursive: true }))

const at = (name: string) => join(directory, name)

const exec = (command: string[], more: Partial<typeof policy> = {}): Extract<Hook, { type: 'exec' }> => ({
  type: 'exec',
  name: 'exec x',
  command,
  ...policy,
  ...more,
})

const shell = (script: string, more: Partial<typeof policy> = {}) =>
  exec(['/bin/sh', '-c', script, 'sh', directory, canary], more)

/** Waits for a process to be gone: the kernel tells no parent but its own. */
function gone(pid: number): Promise<boolean> {
  return until(`process ${pid} is gone`, () => ['Z', undefined].includes(stateOf(`/proc/${pid}`)))
}

/** The number in a file; 0 where it is not there yet, or not whole. */
async function pidIn(path: string): Promise<number> {
  const text = await readFile(path, 'utf8').catch(() => '')
  return text.endsWith('\n') ? Number(text) : 0
}

await t.test('an exec hook runs its command without a shell, and shows no output', async (t) => {
  t.equal(await messageOf(exec(['/bin/true'])), undefined)
  t.equal(await messageOf(shell('echo $2; echo $2$2 >&2; exit 3')), 'exec x: exit code 3; its output is not shown')
  t.equal(await messageOf(exec(['/no/such/program', canary])), 'exec x: could not be started: ENOENT')
  t.equal(await messageOf(exec([directory, canary])), 'exec x: could not be started: EACCES')
  t.equal(await messageOf(exec(['/bin/true', `\0${canary}`])), 'exec x: could not be started: ERR_INVALID_ARG_VALUE')
  t.equal(await messageOf(shell('kill -KILL $$')), 'exec x: ended by SIGKILL')
  t.equal(
    await messageOf(exec(['/bin/sh', '-c', 'exit $#', 'sh', '$(touch /x)', '; rm', '*'])),
    'exec x: exit code 3; its output is not shown',
    'no shell reads the arguments',
  )
})

await t.test('a command gets a clean environment, and no descriptors', async (t) => {
  process.env.HOLDFAST_CANARY = canary
  t.teardown(() => delete process.env.HOLDFAST_CANARY)
  const held = await open(at('held'), 'w')
  t.teardown(() => held.close())
  const script =
    'env > $1/env; pwd > $1/pwd; ls -l /proc/self/fd > $1/fds; cat > $1/stdin; echo $$ > $1/pid; cut -d" " -f6 /proc/$$/stat > $1/session'
  t.equal(await messageOf(shell(script)), undefined)
  const environment = await readFile(at('env'), 'utf8')
  t.notMatch(environment, canary)
  t.match(environment, /^PATH=\/usr\/local\/sbin:/m)
  t.equal(await readFile(at('pwd'), 'utf8'), '/\n')
  t.equal(await readFile(at('stdin'), 'utf8'), '', 'standard input is at its end')
  const descriptors = [...(await readFile(at('fds'), 'utf8')).matchAll(/(\d+) -> (.*)/g)].map(([, fd, to]) => [fd, to])
  t.same(descriptors[0], ['0', '/dev/null'])
  t.equal(await readFile(at('session'), 'utf8'), await readFile(at('pid'), 'utf8'), 'a session of its own')
  // Descriptors that the test's own parent left open are not holdfast's doing.
  t.notOk(descriptors.some(([, to]) => to === at('held')))
})

await t.test('a command that overruns its time ends with all its children', async (t) => {
  const script = (trap: string) => `${trap} sleep 300 & echo $! > $1/child; echo $$ > $1/parent; while :; do wait; done`
  for (const trap of ['', "trap '' TERM;"]) {
    for (const name of ['child', 'parent']) await rm(at(name), { force: true })
    let pids: number[] = []
    // A command that had no time to begin shows nothing: then it gets more.
    for (let timeout = 300; !pids.every((pid) => pid > 0) || pids.length === 0; timeout *= 3) {
      const expected = `exec x: still running after ${timeout} ms: holdfast ended it`
      t.equal(await messageOf(shell(script(trap), { timeout })), expected)
      pids = await Promise.all(['child', 'parent'].map((name) => pidIn(at(name))))
    }
    for (const pid of pids) t.ok(await gone(pid))
  }
})

await t.test('a hanging command ends in a process that collects garbage', async (t) => {
  const hanging = messageOf(exec(['/bin/sleep', '300'], { timeout: 300 }))
  t.equal(await underGarbageCollection(hanging), 'exec x: still running after 300 ms: holdfast ended it')
})

await t.test('a child in the background writes on after its hook', async (t) => {
  t.equal(spawnSync('mkfifo', [at('go')]).status, 0)
  const child = '(read line < $1/go; echo out; echo err >&2; echo 1 > $1/wrote)'
  t.equal(await messageOf(shell(`${child} & echo $! > $1/child`)), undefined)
  await writeFile(at('go'), '\n')
  t.ok(await gone(await pidIn(at('child'))))
  t.equal(await pidIn(at('wrote')), 1, 'no SIGPIPE ended it')
})

await t.test('a child that holds the output open does not hold the hook', async (t) => {
  t.equal(await messageOf(shell('sleep 300 & echo $! > $1/child')), undefined, 'not after 300 s')
  process.kill(Number(await readFile(at('child'), 'utf8')), 'SIGKILL')
})

await t.test('much output does not stop a command, and is not kept', async (t) => {
  const { message, log } = await outcome(shell('head -c 5000000 /dev/zero; head -c 10 /dev/zero >&2'))
  t.equal(message, undefined)
  t.match(log.join('\n'), '"exitCode":0')
})

await t.test('an abandoned hook ends at once, with its command', async (t) => {
  const abandoned = new AbortController()
  const reason = new Error('going down')
  await rm(at('parent'), { force: true })
  const running = outcome(shell('echo $$ > $1/parent; exec sleep 300', { retries: 5 }), {
    signal: abandoned.signal,
  })
  const pid = await until('it has begun', () => pidIn(at('parent')))
  abandoned.abort(reason)
  t.equal((await running).error, reason)
  t.ok(await gone(pid))
  t.equal((await outcome(exec(['/bin/true']), { signal: abandoned.signal })).error, reason, 'before it began')
  const pausing = new AbortController()
  const failing = outcome(exec(['/bin/false'], { retries: 5 }), { signal: pausing.signal, pause: 60_000 })
  setTimeout(() => pausing.abort(reason), 100)
  t.equal((await failing).error, reason, 'between two tries')
})

await t.test('a hook tries again as often as retries says', async (t) => {
  const counting = 'echo x >> $1/tries; [ $(wc -l < $1/tries) -ge 3 ]'
  const { message, log } = await outcome(shell(counting, { retries: 2 }))
  t.equal(message, undefined)
  t.match(
    log.join('\n'),
    /exit code 1.*the agent retries it[^]*exit code 1.*the agent retries it[^]*"attempt":3.*hook done/,
  )
  await rm(at('tries'))
  const failed = await outcome(shell(counting, { retries: 1 }))
  t.match(failed.message, /^exec x: exit code 1; .* \(try 2 of 2\)$/)
  t.ok(failed.error instanceof HookError && failed.error.hook === 'exec x')
  await rm(at('tries'))
  t.match(await messageOf(shell(counting)), /not shown$/, 'a single try is not counted')
  t.equal(await readFile(at('tries'), 'utf8'), 'x\n')
})

await t.test('a signal hook signals the process of its pid file', async (t) => {
  const pidFile = at('x.pid')
  const hook = {
    type: 'signal' as const,
    name: 'signal SIGHUP x',
    signal: 'SIGHUP' as const,
    pidFile,
    ...policy,
  }
  const problem = async (content: string) => {
    await writeFile(pidFile, content)
    return (await messageOf(hook))?.replace(`signal SIGHUP x: ${pidFile}: `, '')
  }
  const sleeper = spawn('/bin/sleep', ['300'])
  t.teardown(() => sleeper.kill('SIGKILL'))
  for (const content of [String(sleeper.pid), ` ${sleeper.pid}\n`, `${sleeper.pid}\n/var/lib/postgresql\n${canary}`]) {
    const process = content === String(sleeper.pid) ? sleeper : spawn('/bin/sleep', ['300'])
    const ended: Promise<unknown[]> = once(process, 'exit')
    t.equal(await problem(content.replace(String(sleeper.pid), String(process.pid))), undefined)
    t.same(await ended, [null, 'SIGHUP'])
  }
  t.match(
    await problem(String(sleeper.pid)),
    /^no such process \d+: the pid file is stale, or holdfast runs in a PID namespace/,
  )
  for (const content of ['', canary, `-1`, `12${canary}`, '1 2', '0x10', '99999999999']) {
    t.equal(await problem(content), 'does not start with a process ID', JSON.stringify(content))
  }
  for (const pid of ['0', '1', '4194305'])
    t.equal(await problem(pid), `names process ${pid}, which holdfast never signals`)
  t.equal(await problem(String(process.pid)), 'names holdfast itself')
  await writeFile(pidFile, '2')
  await chmod(pidFile, 0o666)
  t.match(await messageOf(hook), /is writable by everybody: holdfast does not trust it$/)
  await chmod(pidFile, 0o600)
  const named = (path: string): Hook => ({ ...hook, pidFile: path })
  t.match(await messageOf(named(at('none'))), /no such file: is the process running\?$/)
  t.match(await messageOf(named(directory)), /is not a regular file$/)
  t.match(await messageOf(named('/dev/zero')), /is not a regular file$/)
  await symlink(at('loop'), at('loop'))
  t.match(await messageOf(named(at('loop'))), /loop: holdfast does not follow the symbolic link .*\/loop: /)
})

await t.test('a hook runs without a log', (t) =>
  t.resolves(runHook(exec(['/bin/true']), { signal: new AbortController().signal, log: silent })),
)
