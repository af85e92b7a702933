/** Which processes count as running. Those that hang in the kernel: test/agent/hung-disk.test.ts. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { dyingHolders } from '../../src/agent/state-lock.js'
import { isDying, isRunning, ownIdentity } from '../../src/agent/process-identity.js'
import { DurableCalls } from '../../src/durable/index.js'
import { scratch } from '../durable/scratch.js'
import { stateOf } from '../processes.js'
import { until } from '../until.js'

/** A program of the shell, and the number that it prints. */
async function shell(t: Test, script: string) {
  const child = spawn('sh', ['-c', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const [printed] = (await once(child.stdout, 'data')) as [Buffer]
  return { child, pid: Number(printed.toString()) }
}

await t.test(
  'a process that runs, or is stopped, is not dying; one without a process behind it is not either',
  async (t) => {
    t.equal(await isDying(process.pid), false)
    const { child, pid } = await shell(t, 'echo $$; exec sleep 600')
    child.kill('SIGSTOP')
    await until('it is stopped', () => stateOf(`/proc/${pid}`) === 'T')
    t.equal(await isDying(pid), false)
    child.kill('SIGKILL')
    await once(child, 'close')
    t.equal(await isDying(pid), false)
  },
)

await t.test('a zombie is dying, and does not run', async (t) => {
  // sleep(1) takes the place of the parent, and waits for no child.
  const { pid } = await shell(t, 'sleep 600 & echo $!; exec sleep 600')
  const startTicks = Number(/\) \S+(?: \S+){18} (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.[1])
  const identity = { ...(await ownIdentity()), pid, startTicks }
  t.equal(await isRunning(identity), true)
  process.kill(pid, 'SIGKILL')
  await until('it is a zombie', () => stateOf(`/proc/${pid}`) === 'Z')
  t.equal(await isDying(pid), true)
  t.equal(await isRunning(identity), false)
})

await t.test('the holder of a lock counts only if it is dying', async (t) => {
  const path = join(scratch(t), 'agent.lock')
  t.strictSame(await dyingHolders(path), [], 'no file')
  const held = await new DurableCalls().lock(path, 0, undefined)
  t.strictSame(await dyingHolders(path), [], 'this process')
  await held.release()
  t.strictSame(await dyingHolders(path), [], 'nobody')
})

await t.test('a process without a free descriptor knows of no blocked thread, and goes on', async (t) => {
  const program = `
    import { openSync } from 'node:fs'
    import { hasBlockedThread } from ${JSON.stringify(new URL('../../src/agent/process-identity.js', import.meta.url).href)}
    try { for (;;) openSync('/dev/null') } catch {}
    console.log(await hasBlockedThread())`
  const args = ['-c', 'ulimit -n 64; exec "$0" --input-type=module --eval "$1"', process.execPath, program]
  t.match(spawnSync('sh', args, { encoding: 'utf8' }), { status: 0, stdout: 'false\n' })
})
