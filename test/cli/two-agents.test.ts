/** Two agents on one node, as while one DaemonSet takes over from another: each removes and moves only its own targets. */
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { seeingAll } from '../seeing-all.js'
import { until } from '../until.js'
import { hurried, namedIn, tenMinutesPass } from './absences.js'
import { holdfast, Node } from './holdfast.js'
import { isKind } from '../crash/judge/names.js'

const web = { path: 'disk/web', onDrop: 'remove', contents: [{ secret: 'web' }] }
const other = { path: 'disk/other', contents: [{ secret: 'other' }] }

/** Without it, every directory counts as in use, and none is removed. */
const prefix = await seeingAll()

/** Two configurations of one disk and one source, each with a separate state directory. */
function two(t: Test) {
  const node = new Node(t, [web, other])
  node.put('Secret', 'web', { key: '1' })
  node.put('Secret', 'other', { a: '1' })
  const first = readFileSync(node.configuration, 'utf8')
  const configure = (name: string, directories: readonly object[]) => {
    node.configure(directories, { stateDirectory: join(node.root, `state-${name}`) })
    writeFileSync(node.path(`${name}.yaml`), readFileSync(node.configuration))
    writeFileSync(node.configuration, first)
  }
  const start = (name: string) => node.agentProcess([], prefix ?? [], node.path(`${name}.yaml`), hurried)
  return { node, configure, start, path: node.path('disk/web') }
}

const identityIn = (state: string) => readFileSync(join(state, 'agent.id'), 'utf8').trim()

for (const content of ['newer content', 'the same content'] as const) {
  await t.test(`an agent does not remove a directory that another agent has taken over with ${content}`, async (t) => {
    const { node, configure, start, path } = two(t)
    configure('one', [web, other])
    let one = start('one')
    await one.logged('Published', 2)
    configure('one', [other])
    one.signal('SIGHUP')
    await one.logged('DropPending')
    t.equal(await one.end('SIGTERM'), 0)

    if (content === 'newer content') node.put('Secret', 'web', { key: '2' })
    configure('two', [web])
    const second = start('two')
    await until('the second publishes it', () =>
      second.log().some(({ reason, directory }) => directory === path && /^(Published|Unchanged)$/.test(reason ?? '')),
    )
    one = start('one')
    const line = await until('it is said', () =>
      one.log().find(({ msg }) => /another agent publishes it now/.test(msg)),
    )
    t.match(line.msg, `${path} is not configured any more, and stays: another agent publishes it now`)
    t.equal(node.read('disk/web/key'), content === 'newer content' ? '2' : '1')
    await until('it is cancelled', () => !(path in namedIn(node.path('state-one'))))
    t.equal(await one.end('SIGTERM'), 0)
    one = start('one')
    await one.address()
    t.equal(await one.end('SIGTERM'), 0)
    t.notOk(
      one.log().some(({ msg }) => /another agent/.test(msg)),
      'and said once',
    )
    t.equal(await second.end('SIGTERM'), 0)

    // The agent removes its own target, where it may inspect all processes.
    if (prefix === undefined) return
    configure('two', [other])
    const third = start('two')
    await third.logged('DropPending')
    t.equal(await third.end('SIGTERM'), 0)
    const last = start('two')
    await last.logged('DropPending')
    tenMinutesPass(last)
    await last.logged('Dropped')
    t.notOk(existsSync(path))
    t.equal(await last.end('SIGTERM'), 0)
  })
}

await t.test('a pending removal ends as soon as another agent publishes the directory', async (t) => {
  const { node, configure, start } = two(t)
  configure('one', [web, other])
  let one = start('one')
  await one.logged('Published', 2)
  t.equal(await one.end('SIGTERM'), 0)
  configure('two', [web])
  const second = start('two')
  await second.logged('Unchanged')
  configure('one', [other])
  one = start('one')
  await until('it is said', () => one.log().find(({ msg }) => /another agent publishes it now/.test(msg)))
  t.equal(node.read('disk/web/key'), '1')
  await Promise.all([one.end('SIGTERM'), second.end('SIGTERM')])
})

await t.test(
  'each state directory has one identity, for sync too; another agent’s old path does not move',
  async (t) => {
    const { node, configure, start, path } = two(t)
    configure('one', [web, other])
    const one = start('one')
    await one.logged('Published', 2)
    t.equal(await one.end('SIGTERM'), 0)
    const identity = identityIn(node.path('state-one'))
    t.match(identity, /^[0-9a-f]{32}$/)
    t.equal(statSync(join(node.path('state-one'), 'agent.id')).mode & 0o777, 0o600)
    const recorded = () =>
      readdirSync(node.path('disk'))
        .filter(isKind('record'))
        .map((name) => readFileSync(join(node.path('disk'), name), 'utf8'))
        .find((text) => text.includes('"version":1,"name":"web"'))
    t.match(recorded(), `"agent":{"id":"${identity}"`)

    const moved = { path: 'disk/new', movedFrom: path, movedFromKeep: '1s', contents: web.contents }
    configure('two', [moved])
    const second = start('two')
    const refusal = await second.logged('TargetForeign')
    t.match(refusal.msg, /another agent publishes .*disk\/web, which is to move to .*disk\/new/)
    t.equal(await second.end('SIGTERM'), 0)
    t.equal(node.read('disk/web/key'), '1')

    node.put('Secret', 'web', { key: '2' })
    t.match(await holdfast(['sync', '--config', node.path('one.yaml')]), { code: 0 })
    t.match(recorded(), `"agent":{"id":"${identity}"`, 'by sync')
    configure('one', [moved])
    t.match(await holdfast(['sync', '--config', node.path('one.yaml')]), { stdout: /Relocat/ }, 'its own moves')
  },
)

/** One directory of two clusters, each with its own source and agent. */
function twoClusters(t: Test) {
  const mine = { path: 'disk/web', contents: [{ secret: 'web' }] }
  const [east, west] = [new Node(t, [mine]), new Node(t, [mine])]
  const path = east.path('disk/web')
  const start = (node: Node, cluster: string) => {
    node.put('Secret', 'web', { key: cluster })
    const own = { stateDirectory: join(node.root, 'state'), driftInterval: '1s' }
    node.configure([{ ...mine, path }], own)
    return node.agentProcess()
  }
  return { east, west, path, start }
}

await t.test(
  'once a mistaken second agent has gone for good, the first one takes the directory back',
  // Another user's agents on this machine would leave it unsure.
  { skip: prefix === undefined && 'needs root to see all processes' },
  async (t) => {
    const { east, west, path, start } = twoClusters(t)
    const first = start(east, 'east')
    await first.logged('Published')
    const second = start(west, 'west')
    await first.logged('TargetForeign')
    await second.end('SIGKILL')
    const repaired = await first.logged('DriftRepaired')
    t.equal(repaired.directory, path)
    t.equal(east.read('disk/web/key'), 'east')
    t.match(
      first.log().find(({ msg }) => /has ended/.test(msg))?.msg,
      `another agent (${identityIn(join(west.root, 'state'))}), which published ${path}, has ended: this one publishes it again`,
    )
    t.equal(await first.end('SIGTERM'), 0)
  },
)

await t.test(
  'of two agents with one directory the earlier lets it be, and says so, until a reload takes it back',
  async (t) => {
    const { east, west, path, start } = twoClusters(t)
    const publications = (agent: ReturnType<typeof start>) =>
      agent.log().filter(({ reason }) => reason === 'Published').length
    const first = start(east, 'east')
    await first.logged('Published')
    const second = start(west, 'west')
    await second.logged('Published')
    const told = await first.logged('TargetForeign')
    const id = readFileSync(join(west.root, 'state', 'agent.id'), 'utf8').trim()
    t.match(told.msg, `another agent (${id}) publishes ${path} now`)
    t.match(told.msg, /take the directory out of the configuration of one of the two/)
    await until('its status says so', async () => {
      const { stdout } = await holdfast(['status', '--config', east.configuration, '-o', 'json'])
      return /"type": "Published",\s+"status": "False",\s+"reason": "TargetForeign"/.test(stdout)
    })
    east.put('Secret', 'web', { key: 'east again' })
    west.put('Secret', 'web', { key: 'west again' })
    await second.logged('Published', 2)
    t.equal(east.read('disk/web/key'), 'west again')
    t.equal(publications(first), 1, 'news of its object change nothing in that')
    first.signal('SIGHUP')
    await first.logged('DriftRepaired')
    t.match((await second.logged('TargetForeign')).msg, /another agent .* publishes/)
    t.equal(east.read('disk/web/key'), 'east again')
    t.equal(publications(second), 2)
    await Promise.all([first.end('SIGTERM'), second.end('SIGTERM')])
  },
)

await t.test(
  'two agents that start together on one source and one directory: one publishes, one says whose it is',
  async (t) => {
    const { node, configure, start } = two(t)
    const quick = { ...other, minInterval: '1ms', debounce: { quiet: '1ms', atMost: '1ms' } }
    for (const name of ['one', 'two']) configure(name, [quick])
    // They write to one log.
    const agents = [start('one'), start('two')]
    await agents[0]?.logged('Unchanged')
    for (const version of ['2', '3', '4', '5']) {
      node.put('Secret', 'other', { a: version })
      await until(`version ${version} is published`, () => node.read('disk/other/a') === version)
    }
    await agents[0]?.logged('TargetForeign')
    const told = new Set(agents[0]?.log().flatMap(({ reason, msg }) => (reason === 'TargetForeign' ? [msg] : [])))
    t.equal(told.size, 1, 'one of the two lets it be')
    t.match([...told][0], /another agent \([0-9a-f]{32}\) publishes .*disk\/other now; holdfast left .* as it was/)
    for (const agent of agents) t.equal(await agent.end('SIGTERM'), 0)
    t.matchOnly(
      readdirSync(node.path('disk')).sort(),
      [/\.\d+$/, /\.lock$/, /^other$/],
      'neither lost content of the other',
    )
    t.equal(node.read('disk/other/a'), '5')
  },
)
