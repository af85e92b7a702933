import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { OtherAgents, runsHere } from '../../src/agent/other-keeper.js'
import { flockHolders } from '../../src/durable/index.js'
import { scratch } from '../durable/scratch.js'
import { until } from '../until.js'

await t.test('another agent has ended once it was seen to run, and stays away for an interval', async (t) => {
  const answers: (boolean | undefined)[] = []
  let interval = 0
  const others = new OtherAgents(
    () => interval,
    () => Promise.resolve(answers.shift()),
  )
  const asked = async (...runs: (boolean | undefined)[]): Promise<boolean[]> => {
    answers.push(...runs)
    const ended: boolean[] = []
    while (answers.length > 0) ended.push(await others.hasEnded('other'))
    return ended
  }
  t.strictSame(await asked(false, undefined, false), [false, false, false], 'it was never seen')
  t.strictSame(await asked(true, undefined, false), [false, false, true])
  interval = Infinity
  t.strictSame(await asked(true, false, false), [false, false, false], 'as while it restarts')
  interval = 0
  t.strictSame(await asked(undefined), [false], 'nobody can tell')
  t.strictSame(await asked(false), [true])
})

await t.test('one that has lost the file of its identity has not ended', async (t) => {
  const agent = '0123456789abcdef'.repeat(2)
  const directory = scratch(t)
  writeFileSync(join(directory, 'agent.id'), `${agent}\n`)
  writeFileSync(join(directory, 'agent.lock'), '')
  const child = spawn('flock', [join(directory, 'agent.lock'), 'cat'], { stdio: ['pipe', 'ignore', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const ended = once(child, 'exit')
  // A process of another user on this machine, which may be an agent, leaves nobody sure.
  const holder = (): number[] => flockHolders().filter((pid) => pid === child.pid)
  await until('it has the lock', () => holder().length === 1)
  const others = new OtherAgents(
    () => 0,
    (agent) => runsHere(agent, holder()),
  )
  t.equal(await others.hasEnded(agent), false, 'it is seen')
  rmSync(join(directory, 'agent.id'))
  t.equal(await others.hasEnded(agent), false)
  child.stdin.end()
  await ended
  await until('it has ended', () => others.hasEnded(agent))
})
