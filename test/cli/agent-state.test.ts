/** The agent's state directory: one agent at a time, and whose state is in it. */
import { renameSync, rmSync } from 'node:fs'
import t from 'tap'
import { until } from '../until.js'
import { type Agent, Node } from './holdfast.js'

interface Shown {
  readonly agent: { readonly pid: number } | null
  readonly running: boolean
  readonly configurationChanged: boolean
  readonly otherConfiguration: string | null
  readonly directories: readonly {
    readonly path: string
    readonly conditions: readonly { readonly type: string; readonly status: string; readonly reason: string }[]
  }[]
}

const directory = (name: string) => ({ path: `disk/${name}`, contents: [{ secret: 'web' }] })

async function shown(node: Node): Promise<Shown> {
  const { code, stdout, stderr } = await node.run('status', '-o', 'json')
  if (code !== 0) throw new Error(stderr)
  return JSON.parse(stdout) as Shown
}

/** Starts an agent, and waits until it has published and said so in its status. */
async function started(node: Node): Promise<Agent> {
  const agent = node.agentProcess()
  await agent.logged('Published')
  await until('its status', () => node.read('state/status.json')?.includes('"Published"'))
  return agent
}

await t.test('a second agent with the same stateDirectory exits with 75, and says what to do', async (t) => {
  const node = new Node(t, [directory('web')])
  node.put('Secret', 'web', { key: '1' })
  const first = await started(node)
  const second = node.agentProcess()
  t.equal(await second.end(), 75)
  const said = second.log().findLast(({ level }) => level === 'error')
  t.match(said, { reason: 'Busy' })
  t.match(
    said?.msg,
    `another agent keeps its state in ${node.path('state')}: process ${first.pid}; nothing was changed; stop it, or give each agent a stateDirectory of its own`,
  )
  node.put('Secret', 'web', { key: '2' })
  await first.logged('Published', 2)
  // Killed, with no chance to let go.
  await first.end('SIGKILL')
  const third = node.agentProcess()
  await third.address()
  t.equal(await third.end('SIGTERM'), 0)
})

await t.test('an agent whose state directory is taken away ends, and lets the next one be', async (t) => {
  const node = new Node(t, [directory('web')])
  node.put('Secret', 'web', { key: '1' })
  const first = await started(node)
  renameSync(node.path('state'), node.path('away'))
  const second = node.agentProcess()
  await until('the second has begun', () => node.read('state/status.json'))
  await until('the first ends', () => !first.running)
  t.equal(await first.end(), 1)
  const said = first.log().find(({ level, reason }) => level === 'error' && reason === 'Busy')
  t.match(said?.msg, /agent\.lock is gone, or another file.*this agent ends.*start it again/)
  t.match(await shown(node), { running: true, agent: { pid: second.pid } })
  node.put('Secret', 'web', { key: '2' })
  await until('the second publishes', () => node.read('disk/web/key') === '2')
  t.equal(await second.end('SIGTERM'), 0)
  t.notOk(
    second.log().some(({ reason }) => reason === 'TargetForeign'),
    'it alone publishes',
  )
})

await t.test('status says when the configuration file has changed since the agent read it', async (t) => {
  const node = new Node(t, [directory('web')])
  node.put('Secret', 'web', { key: '1' })
  const agent = await started(node)
  t.match(await shown(node), { running: true, configurationChanged: false, otherConfiguration: null })
  node.configure([directory('web'), directory('added')])
  t.match(await shown(node), { running: true, configurationChanged: true, otherConfiguration: null })
  const changed = `${node.configuration} has changed since the agent read it: run "holdfast reload", or see its log`
  t.match((await node.run('status')).stdout, changed)
  const reload = await node.run('reload')
  t.equal(reload.code, 0, reload.stderr)
  t.match(await shown(node), { configurationChanged: false, directories: [{}, { path: node.path('disk/added') }] })
  t.notMatch((await node.run('status')).stdout, /has changed since/)
  t.equal(await agent.end('SIGTERM'), 0)
  t.match(await shown(node), { running: false })
})

await t.test("status hides the directories of another configuration's state", async (t) => {
  const node = new Node(t, [directory('web')])
  node.put('Secret', 'web', { key: '1' })
  const agent = await started(node)
  const other = new Node(t, [{ path: node.path('disk/other'), contents: [{ secret: 'web' }] }], {
    stateDirectory: node.path('state'),
  })
  const unpublished = { path: node.path('disk/other'), conditions: [{ type: 'Published', status: 'False' }, {}] }
  const found = await shown(other)
  t.match(found, { agent: null, otherConfiguration: node.configuration })
  t.equal(found.directories.length, 1)
  t.match(found.directories, [unpublished])
  const said = `the state in ${node.path('state')} is of another configuration, ${node.configuration}`
  t.match((await other.run('status')).stdout, said)
  t.equal(await agent.end('SIGTERM'), 0)
  t.match(await shown(other), { agent: null, otherConfiguration: node.configuration, directories: [unpublished] })
})

await t.test('status compares the disk once the agent was killed, and shows nothing of its old report', async (t) => {
  const node = new Node(t, [directory('web')])
  node.put('Secret', 'web', { key: '1' })
  const agent = await started(node)
  await agent.end('SIGKILL')
  rmSync(node.path('disk/web'), { recursive: true })
  const { directories, running } = await shown(node)
  t.equal(running, false)
  const conditions = [
    { type: 'Published', status: 'False' },
    { type: 'Fresh', status: 'Unknown', reason: 'NotConfirmed' },
  ]
  t.match(directories, [{ path: node.path('disk/web'), conditions }])
  t.match((await node.run('status')).stdout, /is not running: it was killed, and last reported \d+s ago/)
})
