/** A target that disappears is noticed at once, and not with the next comparison, which is ten minutes away. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { setHold } from '../../src/durable/index.js'
import { wakeups } from '../e2e/process-figures.js'
import { until } from '../until.js'
import { type Agent, Node } from './holdfast.js'

const web = { path: 'disk/web', contents: [{ secret: 'web' }] }
const mayMount = spawnSync('unshare', ['--mount', 'true']).status === 0
/** Far less than `driftInterval`; the agent itself takes a second. */

async function published(t: Test, more: object = {}) {
  const node = new Node(t, [{ ...web, ...more }])
  node.put('Secret', 'web', { password: 'one', '.hidden': 'two' })
  const agent = node.agentProcess()
  await agent.logged('Published')
  await until('it is ready', async () => (await agent.get('/readyz')).status === 200)
  return { node, agent, path: node.path('disk/web') }
}

/** More wakeups than half a second of an agent at rest has, and fewer than a comparison takes. */
const fewWakeups = 4

/** The watch's report of its own publication would start a comparison, too, and no inotify watch tells of a mount. */
async function atRest(agent: Agent): Promise<void> {
  let before = -Infinity
  const isQuiet = (): boolean => {
    const now = wakeups(agent.pid)
    const quiet = now - before <= fewWakeups
    before = now
    return quiet
  }
  await until('the agent is at rest', isQuiet, { every: 500 })
}

function emptied(path: string): void {
  for (const name of readdirSync(path)) rmSync(join(path, name), { recursive: true })
}

const overmount = (node: Node) => {
  execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', node.path('disk')])
}

const ways: Readonly<Record<string, (node: Node) => void>> = {
  'a target that is removed': (node) => rmSync(node.path('disk/web'), { recursive: true }),
  'a target that is emptied': (node) => emptied(node.path('disk/web')),
  'a target that is moved away, with an empty one in its place': (node) => {
    renameSync(node.path('disk/web'), node.path('elsewhere'))
    mkdirSync(node.path('disk/web'))
  },
  'a parent that is replaced': (node) => {
    renameSync(node.path('disk'), node.path('elsewhere'))
    mkdirSync(node.path('disk'))
  },
  'a parent that is removed': (node) => rmSync(node.path('disk'), { recursive: true }),
  'a disk that is mounted over it': overmount,
}

for (const [name, way] of Object.entries(ways)) {
  for (const publish of ['exchange', 'symlink'] as const) {
    await t.test(
      `${name} is noticed and repaired (${publish})`,
      { skip: way === overmount && !mayMount && 'needs root to mount' },
      async (t) => {
        const { node, agent } = await published(t, { publish })
        t.teardown(() => way === overmount && spawnSync('umount', ['--lazy', node.path('disk')]))
        if (way === overmount) await atRest(agent)
        // Its repair does not come between the steps of one way.
        agent.signal('SIGSTOP')
        way(node)
        agent.signal('SIGCONT')
        await until('it is repaired', () => node.read('disk/web/password') === 'one')
        t.match((await agent.logged('DriftRepaired')).msg, /disk\/web is repaired/)
      },
    )
  }
}

interface Shown {
  readonly directories?: readonly {
    readonly conditions: readonly { readonly type: string; readonly status: string }[]
  }[]
}

function isPublished(node: Node): string | undefined {
  const { directories } = JSON.parse(node.read('state/status.json') ?? '{}') as Shown
  return directories?.[0]?.conditions.find(({ type }) => type === 'Published')?.status
}

async function isTold(node: Node, agent: Agent): Promise<void> {
  await until('it is not ready', async () => (await agent.get('/readyz')).status === 503)
  await until('it is not published', () => isPublished(node) === 'False')
}

await t.test('until it is repaired it is neither ready nor published: while it is held', async (t) => {
  const { node, agent, path } = await published(t)
  await setHold(path, { reason: '', since: Date.now(), until: null }, { lockTimeout: 600_000 })
  emptied(path)
  await isTold(node, agent)
  t.strictSame(readdirSync(path), [])
})

await t.test('until it is repaired it is neither ready nor published: while its content is examined', async (t) => {
  const node = new Node(t, [])
  const script = `while [ -e ${node.path('wait')} ]; do sleep 0.02; done`
  node.configure([{ ...web, beforePublish: [{ exec: ['sh', '-c', script, 'sh', '{dir}'] }] }])
  node.put('Secret', 'web', { password: 'one' })
  const agent = node.agentProcess()
  await agent.logged('Published')
  await until('it is published', () => isPublished(node) === 'True')
  writeFileSync(node.path('wait'), '')
  rmSync(node.path('disk/web'), { recursive: true })
  await isTold(node, agent)
  rmSync(node.path('wait'))
  await until('it is ready again', async () => (await agent.get('/readyz')).status === 200)
  await until('it is published again', () => isPublished(node) === 'True')
  t.equal(node.read('disk/web/password'), 'one')
})

const withoutInotify = [
  ...['unshare', '--user', '--map-root-user', 'sh', '-c'],
  ...['echo 0 > /proc/sys/user/max_inotify_instances && exec "$@"', 'sh'],
]
const mayUnshare = spawnSync('unshare', ['--user', '--map-root-user', 'true']).status === 0

await t.test(
  'without inotify the agent says so, and notices a removed directory long before its comparison',
  { skip: !mayUnshare && 'needs user namespaces' },
  async (t) => {
    const node = new Node(t, [{ path: 'disk/web', contents: [{ secret: 'web' }] }])
    node.put('Secret', 'web', { key: '1' })
    const agent = node.agentProcess([], withoutInotify)
    await agent.logged('Published')
    const said = await until('it says so', () => agent.log().find(({ msg }) => /fs\.inotify\.max_user/.test(msg)))
    t.match(said, { level: 'warn', code: 'EMFILE', msg: /looks every 10 s/ })
    rmSync(node.path('disk/web'), { recursive: true })
    await until('it is there again', () => node.read('disk/web/key') === '1')
    t.equal(await agent.end('SIGTERM'), 0)
    t.equal(agent.log().filter(({ msg }) => msg === said.msg).length, 1, 'once')
  },
)
