/** What hooks and probes leave in the background, where the agent or the monitor is the first process of its container. */
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { reap } from '../../native/index.js'
import { Node } from '../cli/holdfast.js'
import { executable } from '../project.js'
import { installed } from '../static-pods/monitor/monitored-node.js'
import { until } from '../until.js'

const needsRoot = process.geteuid?.() === 0 ? false : 'needs root'
const first = ['unshare', '--pid', '--fork', '--mount-proc', '--kill-child']

/** `PID STATE` of each child of a process. */
function childrenOf(pid: number | string): string[] {
  const pids = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim().split(' ').filter(Boolean)
  return pids.map((child) => `${child} ${/\) (\w)/.exec(readFileSync(`/proc/${child}/stat`, 'latin1'))?.[1]}`)
}

await t.test(
  'an agent that is PID 1 lets the kernel forget them, and hears of the end of its own',
  { skip: needsRoot },
  async (t) => {
    // The one in the background ends when the file goes away: after the shell, so that the agent inherits it.
    const leaves = (name: string) => `echo . >>${name}; (while [ -e ${name}.on ]; do sleep 0.1; done) &`
    const node = new Node(t, [])
    const hook = { exec: ['/bin/sh', '-c', leaves(node.path('ran'))] }
    node.configure([
      { path: 'disk/web', contents: [{ secret: 'web' }], minInterval: '0s', hookInterval: '0s', afterPublish: [hook] },
    ])
    writeFileSync(node.path('ran.on'), '')
    node.put('Secret', 'web', { key: '0' })
    const agent = node.agentProcess([], first)
    for (let turn = 1; turn <= 4; turn++) {
      await until(`hook ${turn} has run`, () => node.read('ran') === '.\n'.repeat(turn))
      node.put('Secret', 'web', { key: `${turn}` })
    }
    const [line = ''] = childrenOf(agent.pid)
    const [inside = ''] = line.split(' ')
    // The shell of the last hook may have ended a moment ago, and is Node's to ask for.
    const alive = () => childrenOf(inside).filter((child) => !child.endsWith('Z'))
    await until('the agent has inherited them, and they live on', () => alive().length >= 4)
    rmSync(node.path('ran.on'))
    await until('none is left', () => childrenOf(inside).length === 0)
    t.ok(agent.running)
  },
)

await t.test('so does a monitor, of what its probes leave', { skip: needsRoot }, async (t) => {
  const node = installed(t)
  const [ran, on] = [join(node.root, 'ran'), join(node.root, 'on')]
  writeFileSync(on, '')
  const flags = [`--resource-dir=${node.resources}`, `--manifests-dir=${node.manifests}`, '--revision=7']
  const probe = `[ -e ${on} ] || exit 1; echo . >>${ran}; (exec sleep 0.1) & exit 1`
  const monitor = ['monitor', '--target-name=web', '--fallback-timeout-duration=1h', ...flags, '--ready-exec', probe]
  const [program = '', ...rest] = [...first, process.execPath, executable, ...monitor]
  const child = spawn(program, rest, { stdio: 'ignore' })
  t.teardown(() => child.kill('SIGKILL'))
  await until('it has probed', () => existsSync(ran) && readFileSync(ran, 'utf8').length >= 8)
  rmSync(on)
  const [line = ''] = childrenOf(child.pid ?? 0)
  const [inside = ''] = line.split(' ')
  await until('no zombie is left', () => childrenOf(inside).every((one) => !one.endsWith('Z')))
  t.equal(child.exitCode, null)
})

await t.test('reap tells of a process that is no child', async (t) => {
  t.throws(() => reap(1), { code: 'ECHILD', syscall: 'waitpid' })
})
