/** The disk goes back to older or other content that has a valid record: an agent and `sync` go by what the source says, not by that record. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { chmodSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import t, { type Test } from 'tap'
import { replaceDirectory, setHold } from '../../src/durable/index.js'
import { until } from '../until.js'
import { executable } from '../project.js'
import { type Agent, ended, holdfast, Node } from './holdfast.js'

interface Shown {
  readonly directories?: readonly {
    readonly conditions: readonly {
      readonly type: string
      readonly status: string
      readonly reason: string
      readonly message: string
    }[]
  }[]
}

const web = { path: 'disk/web', contents: [{ secret: 'web' }] }
const often = { driftInterval: '1s' }
const quiet = ['--log-level', 'error']
const mayMount = spawnSync('unshare', ['--mount', 'true']).status === 0

/** An agent that has published `one`, then does `between`, and then publishes `two`. */
async function published(t: Test, between: (node: Node, agent: Agent) => unknown = () => {}, more: object = often) {
  const node = new Node(t, [web], more)
  node.put('Secret', 'web', { password: 'one' })
  const agent = node.agent()
  await agent.logged('Published')
  await between(node, agent)
  node.put('Secret', 'web', { password: 'two' })
  // It has ended then, so that its publication does not undo the move.
  await agent.logged('Published', 2)
  t.equal(node.read('disk/web/password'), 'two')
  return { node, agent, path: node.path('disk/web') }
}

const warnings = (agent: Agent) => agent.log().filter(({ level, msg }) => level === 'warn' && msg.includes('differs'))

async function counted(agent: Agent): Promise<number> {
  const { text } = await agent.get('/metrics')
  return Number(/^holdfast_drift_total\{.*\} (\d+)$/m.exec(text)?.[1])
}

async function isRepaired(t: Test, node: Node, agent: Agent): Promise<void> {
  await until('it is repaired', () => node.read('disk/web/password') === 'two')
  const line = await agent.logged('DriftRepaired')
  t.match(line.msg, /disk\/web is repaired; on the disk these differed: /)
  t.equal(await counted(agent), 1)
}

await t.test('a backup of the parent that is put back is repaired, and the older version is named', async (t) => {
  const { node, agent } = await published(t, (node) =>
    execFileSync('cp', ['-a', node.path('disk'), node.path('backup')]),
  )
  // Nothing is published between the two.
  agent.signal('SIGSTOP')
  renameSync(node.path('disk'), node.path('disk.old'))
  renameSync(node.path('backup'), node.path('disk'))
  agent.signal('SIGCONT')
  await isRepaired(t, node, agent)
  t.match(warnings(agent), [
    { msg: /its content was published at \S+Z, from Secret demo\/web file:\S+ instead of file:/ },
  ])
})

await t.test('the agent repairs content that a person published by hand', async (t) => {
  const { node, agent, path } = await published(t)
  // No comparison meets the publication half done.
  agent.signal('SIGSTOP')
  await replaceDirectory(path, { files: { password: 'by hand' }, lockTimeout: 600_000 })
  agent.signal('SIGCONT')
  await isRepaired(t, node, agent)
  t.match(warnings(agent), [{ msg: /its content was published at \S+Z, from no object/ }])
})

await t.test('what sync has published from another source is repaired', async (t) => {
  const { node, agent, path } = await published(t)
  const other = new Node(t, [{ ...web, path }])
  other.put('Secret', 'web', { password: 'other' })
  t.match(await other.run('sync', ...quiet), { code: 0 })
  await isRepaired(t, node, agent)
})

await t.test(
  'a disk that was mounted over for a time, and is there again with older content, is repaired',
  { skip: !mayMount && 'needs root to mount' },
  async (t) => {
    const umount = (node: Node) => spawnSync('umount', ['--lazy', node.path('disk')])
    const { node, agent } = await published(t, async (node, agent) => {
      execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', node.path('disk')])
      t.teardown(() => umount(node))
      await until('it is published on the disk that covers the other', () => node.read('disk/web/password') === 'one')
      await agent.logged('DriftRepaired')
    })
    t.equal(umount(node).status, 0)
    await until('it is repaired', () => node.read('disk/web/password') === 'two')
    await agent.logged('DriftRepaired', 2)
    t.equal(await counted(agent), 2)
  },
)

await t.test('sync goes by the source, too', async (t) => {
  const node = new Node(t, [web])
  for (const password of ['one', 'two']) {
    node.put('Secret', 'web', { password })
    t.match(await node.run('sync', ...quiet), { code: 0 })
    if (password === 'one') execFileSync('cp', ['-a', node.path('disk'), node.path('backup')])
  }
  renameSync(node.path('disk'), node.path('disk.old'))
  renameSync(node.path('backup'), node.path('disk'))
  t.match(await node.run('sync', ...quiet), { code: 0 })
  t.equal(node.read('disk/web/password'), 'two')
})

await t.test('under a hold the agent reports other content and leaves it; a rollback is no drift', async (t) => {
  const { node, agent, path } = await published(t)
  // It compares each second.
  agent.signal('SIGSTOP')
  await replaceDirectory(path, { files: { password: 'by hand' } })
  await setHold(path, { reason: '', since: Date.now(), until: null })
  agent.signal('SIGCONT')
  await until('it is told', () => warnings(agent).length > 0)
  await agent.logged('Held')
  t.equal(node.read('disk/web/password'), 'by hand')
  t.equal((await agent.get('/readyz')).status, 503)
  t.match(await holdfast(['release', path, ...quiet]), { code: 0 })
  await isRepaired(t, node, agent)

  node.configure([{ ...web, history: 2 }], often)
  agent.signal('SIGHUP')
  await until('it is in force', () => agent.log().some(({ msg }) => msg.endsWith(' is in force')))
  node.put('Secret', 'web', { password: 'three' })
  await until('it is published', () => node.read('disk/web/password') === 'three')
  const back = await holdfast(['rollback', path, '--state-directory', node.path('state'), '--no-check', ...quiet])
  t.equal(back.code, 0, back.stderr)
  await agent.logged('RolledBack')
  const comparisons = agent.log().length
  agent.signal('SIGHUP')
  await until('it is compared', () => agent.log().length > comparisons)
  t.equal((await agent.get('/readyz')).status, 200)
  t.equal(await counted(agent), 1, 'a rollback is an operator’s word')
  t.equal(node.read('disk/web/password'), 'two')
})

await t.test('at a boot without an API server the record decides readiness, and confirms nothing', async (t) => {
  const node = new Node(t, [web])
  node.put('Secret', 'web', { password: 'one' })
  t.match(await node.run('sync', ...quiet), { code: 0 })
  const kubeconfig = node.path('kubeconfig')
  const named = {
    clusters: [{ name: 'c', cluster: { server: 'http://127.0.0.1:1' } }],
    users: [{ name: 'u', user: {} }],
  }
  const contexts = [{ name: 'x', context: { cluster: 'c', user: 'u' } }]
  writeFileSync(
    kubeconfig,
    JSON.stringify({ apiVersion: 'v1', kind: 'Config', 'current-context': 'x', ...named, contexts }),
  )
  node.configure([web], { ...often, source: { namespace: 'demo', kubernetes: { kubeconfig } } })
  const agent = node.agent()
  await agent.logged('SourceUnavailable')
  t.equal((await agent.get('/readyz')).status, 200)
  const fresh = await until('its status says why', () => {
    const { directories } = JSON.parse(node.read('state/status.json') ?? '{}') as Shown
    return directories?.[0]?.conditions.find(({ type, message }) => type === 'Fresh' && message.includes('127.0.0.1:1'))
  })
  t.match(fresh, { status: 'False', reason: 'NotConfirmed' })
  rmSync(node.path('disk/web'), { recursive: true })
  await until('it is not ready', async () => (await agent.get('/readyz')).status === 503)
})

await t.test(
  'a kept file that was replaced goes alone, and one that cannot be read holds the publication up',
  async (t) => {
    const left = { secret: 'left', into: 'left', optional: true }
    for (const how of ['replaced by a link', 'replaced by its parent', 'unreadable', 'too large'] as const) {
      const limits = { bytes: '64Ki' }
      const node = new Node(t, [{ path: 'disk/web', contents: [left, { secret: 'web' }], limits }])
      node.put('Secret', 'left', { first: '1', second: '2' })
      node.put('Secret', 'web', { password: 'one' })
      t.match(await node.run('sync', ...quiet), { code: 0 })
      node.remove('left')
      node.put('Secret', 'web', { password: 'two' })
      const file = node.path('disk/web/left/first')
      if (how === 'too large') truncateSync(file, 1 << 20)
      else if (how === 'unreadable') chmodSync(file, 0)
      else rmSync(how === 'replaced by a link' ? file : dirname(file), { recursive: true })
      if (how === 'replaced by a link') symlinkSync('second', file)
      if (how === 'replaced by its parent') writeFileSync(dirname(file), '')
      // Root keeps none of its capabilities: with CAP_DAC_OVERRIDE no mode denies anything.
      const bare = process.geteuid?.() === 0 ? ['setpriv', '--bounding-set=-all', '--inh-caps=-all'] : []
      const command = [...bare, process.execPath, executable, 'sync', '--config', node.configuration, ...quiet]
      const { code, stdout } = await ended(spawn('env', command, { stdio: 'pipe' }))
      if (how === 'unreadable') chmodSync(file, 0o600)
      const read = ['password', 'left/first', 'left/second'].map((name) =>
        node.read(`disk/web/${name}`)?.replaceAll('\0', ''),
      )
      const expected = {
        'replaced by a link': [0, 'two', undefined, '2'],
        'replaced by its parent': [0, 'two', undefined, undefined],
        unreadable: [1, 'one', '1', '2'],
        'too large': [1, 'one', '1', '2'],
      }
      t.strictSame([code, ...read], expected[how], how)
      if (how === 'too large') t.match(stdout, /left\/first is larger than what may be kept of it, 65536 bytes/)
    }
  },
)
