/** The agent beside disks that hang: real file systems, frozen under its targets. */
// Own process: calls of its hung disks hold the threads of the process.
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { Node, scratch } from '../cli/holdfast.js'
import { askToWrite, HangingState, problemOfState } from '../../src/agent/report/hanging-state.js'
import { Disk, missingForDisk, type FileSystem } from '../disk/disk.js'
import { FrozenDisks, frozenThreads, missingForFreezing } from '../disk/frozen-disks.js'
import { freePort } from '../e2e/ports.js'
import { silent } from '../../src/log.js'
import { readProc, stateOf } from '../processes.js'
import { executable } from '../project.js'
import { SimulatedTime } from '../simulated-time.js'
import { until } from '../until.js'

const missing = await missingForFreezing()
const options = missing.length === 0 ? {} : { skip: `needs ${missing.join(', ')}` }

/** Directories on each disk that can hang: more than Node's own pool has threads. */
const many = 5

interface Scene {
  readonly node: Node
  readonly disks: FrozenDisks
  /** What a file on any of the disks holds. */
  readonly read: (name: string) => string
}

/** Disks `a` and `b`, which can hang, with many directories each of a Secret by the disk's name; `web` is on a healthy one. */
async function sceneOf(t: Test, more: object = {}): Promise<Scene> {
  const on = (disk: string) =>
    Array.from({ length: many }, (_, index) => ({ path: `${disk}/${index}`, contents: [{ secret: disk }] }))
  const node = new Node(t, [...on('a'), ...on('b'), { path: 'disk/web', contents: [{ secret: 'web' }] }], more)
  const disks = await FrozenDisks.create([node.path('a'), node.path('b')])
  t.teardown(() => disks.destroy())
  for (const name of ['a', 'b', 'web']) node.put('Secret', name, { key: '1' })
  return { node, disks, read: (name) => readFileSync(disks.seen(node.path(name)), 'utf8') }
}

/** The healthy directory gets a new version of its Secret. */
async function update({ node, read }: Scene, value: string): Promise<void> {
  node.put('Secret', 'web', { key: value })
  await until(`web holds ${value}`, () => read('disk/web/key') === value)
}

await t.test('two disks hang, and a directory on a third is updated meanwhile', options, async (t) => {
  const scene = await sceneOf(t)
  const { node, disks, read } = scene
  const agent = node.agentProcess([], disks.entering)
  await agent.logged('Published', 2 * many + 1)
  await disks.freeze(node.path('a'))
  node.put('Secret', 'a', { key: '2' })
  await until('the agent hangs on a', () => frozenThreads(agent.pid) > 0)
  await update(scene, '2')
  await disks.freeze(node.path('b'))
  const before = frozenThreads(agent.pid)
  node.put('Secret', 'b', { key: '2' })
  await until('the agent hangs on b, too', () => frozenThreads(agent.pid) > before)
  await update(scene, '3')
  t.ok(frozenThreads(agent.pid) > before, 'both hang still')
  for (const disk of ['b', 'a']) {
    await disks.thaw(node.path(disk))
    await until(`${disk} is up to date`, () => read(`${disk}/${many - 1}/key`) === '2')
  }
  t.equal(await agent.end('SIGTERM'), 0)
})

/** What `holdfast status` says of the agent. */
async function shown(node: Node): Promise<{ running: boolean; agent: { pid: number; serverProblem?: string } }> {
  const { stdout, stderr, code } = await node.run('status', '-o', 'json')
  if (code !== 0) throw new Error(stderr)
  return JSON.parse(stdout) as { running: boolean; agent: { pid: number; serverProblem?: string } }
}

/** What `holdfast status` says of a directory, and the agent's metrics. */
async function conditions({ node }: Scene, path: string): Promise<Record<string, { status: string; reason: string }>> {
  const { stdout } = await node.run('status', '-o', 'json')
  const { directories } = JSON.parse(stdout) as {
    directories: { path: string; conditions: { type: string; status: string; reason: string }[] }[]
  }
  const found = directories.find((directory) => directory.path === node.path(path))
  return Object.fromEntries((found?.conditions ?? []).map((condition) => [condition.type, condition]))
}

await t.test('a newer version that cannot be published makes the directory not fresh', options, async (t) => {
  const scene = await sceneOf(t)
  const { node, disks } = scene
  const agent = node.agentProcess([], disks.entering)
  await agent.logged('Published', 2 * many + 1)
  await until('all is fresh', async () => (await conditions(scene, 'a/0')).Fresh?.status === 'True')
  await disks.freeze(node.path('a'))
  node.put('Secret', 'a', { key: '2' })
  await until('it is not fresh', async () => (await conditions(scene, 'a/0')).Fresh?.status === 'False')
  t.match((await conditions(scene, 'a/0')).Fresh, { reason: 'NotConfirmed', message: /newer/ })
  t.match((await conditions(scene, 'disk/web')).Fresh, { status: 'True' })
  await disks.thaw(node.path('a'))
  await until('it is fresh again', async () => (await conditions(scene, 'a/0')).Fresh?.status === 'True')
  t.equal(await agent.end('SIGTERM'), 0)
})

await t.test('an operation that hangs is reported, turns no probe, and recovers by itself', options, async (t) => {
  const scene = await sceneOf(t, { operationTimeout: '2s' })
  const { node, disks } = scene
  const agent = node.agentProcess([], disks.entering)
  await agent.logged('Published', 2 * many + 1)
  const directory = node.path('a/0')
  const running = async (): Promise<number> => {
    const { text } = await agent.get('/metrics')
    const at = text.indexOf(`holdfast_operation_running_seconds{directory="${directory}"}`)
    return at < 0 ? NaN : Number(text.slice(at).split(/[ \n]/)[1])
  }
  await until('what follows a publication has ended', async () => (await running()) === 0)
  await disks.freeze(node.path('a'))
  node.put('Secret', 'a', { key: '2' })
  const line = await agent.logged('Stalled', many)
  t.match(line, {
    level: 'warn',
    operation: /^publish /,
    msg: /has not ended after 2 s: .*\/a \(ext4 on \/dev\/loop\d+\)/,
  })
  await until('the metric counts', async () => (await running()) >= 2)
  await until('the status says so', async () => (await conditions(scene, 'a/0')).Published?.reason === 'Stalled')
  t.match(await conditions(scene, 'a/0'), {
    Published: { status: 'Unknown', reason: 'Stalled' },
    Fresh: { status: 'False', reason: 'Stalled' },
  })
  t.match(await conditions(scene, 'b/0'), { Published: { status: 'True' }, Fresh: { status: 'True' } })
  t.match(await agent.get('/livez'), { status: 200 })
  t.match(await agent.get('/readyz'), { status: 200 })
  t.match((await node.run('status')).stdout, /a\/0 +Unknown +False +Stalled/)
  await disks.thaw(node.path('a'))
  await until('it is published', async () => (await conditions(scene, 'a/0')).Published?.status === 'True')
  await until('and fresh', async () => (await conditions(scene, 'a/0')).Fresh?.status === 'True')
  t.equal(scene.read('a/0/key'), '2')
  t.equal(await running(), 0)
  t.equal(await agent.end('SIGTERM'), 0)
})

await t.test('SIGTERM gives up all else at once, and says what hangs', options, async (t) => {
  const scene = await sceneOf(t)
  const { node, disks } = scene
  const agent = node.agentProcess([], disks.entering)
  await agent.logged('Published', 2 * many + 1)
  await disks.freeze(node.path('a'))
  node.put('Secret', 'a', { key: '2' })
  await until('the agent hangs on a', () => frozenThreads(agent.pid) > 0)
  agent.signal('SIGTERM')
  const says = await until('it says what hangs', () =>
    agent.log().find(({ reason, signal }) => reason === 'Stalled' && signal === undefined),
  )
  t.match(says, { level: 'warn', directories: [node.path('a/0')], msg: /\/a \(ext4 on .*\) does not answer/ })
  t.notMatch(says.directories, [node.path('b/0')])
  const ends = await until('it ends', () => agent.log().find(({ signal, level }) => signal && level === 'error'))
  t.match(ends, { reason: 'Stalled', signal: 'SIGTERM', msg: /until the disk answers/ })
  await t.rejects(agent.get('/livez'), 'nothing is served any more')
  t.match(node.read('state/status.json'), /stoppedAt/)
  await disks.thaw(node.path('a'))
  t.equal(await agent.end(), 'SIGTERM')
  const next = node.agentProcess([], disks.entering)
  await until('the next one publishes it', () => scene.read('a/4/key') === '2')
  t.equal(await next.end('SIGTERM'), 0)
})

await t.test(
  'after SIGKILL beside a hung disk the next agent starts, and serves as soon as it can',
  options,
  async (t) => {
    const port = await freePort()
    const scene = await sceneOf(t, { server: { address: `127.0.0.1:${port}` } })
    const { node, disks, read } = scene
    const killed = node.agentProcess([], disks.entering)
    await killed.logged('Published', 2 * many + 1)
    await disks.freeze(node.path('a'))
    node.put('Secret', 'a', { key: '2' })
    await until('the agent hangs on a', () => frozenThreads(killed.pid) > 0)
    t.equal(
      await node.agentProcess([], disks.entering).end(),
      75,
      'one that hangs, and was not killed, keeps its state',
    )
    killed.signal('SIGKILL')
    await until('its main thread is a zombie', () => stateOf(`/proc/${killed.pid}`) === 'Z')
    t.ok(frozenThreads(killed.pid) > 0, 'others hang')
    t.match((await shown(node)).running, false, 'a killed agent runs no more')

    const next = node.agentProcess([], disks.entering)
    const warned = await until('it says whose lock it takes', () =>
      next.log().find(({ msg }) => /takes \S+agent\.lock from it/.test(msg)),
    )
    t.match(warned, { level: 'warn', pid: killed.pid, msg: /was killed/ })
    const started = await until('it has started', () =>
      next.log().find(({ msg }) => msg.includes('keeps 11 directories')),
    )
    t.notMatch(started, { address: {} })
    await update(scene, '2')
    await until('b, too', () => read('b/0/key') === '1')
    t.match(
      next.log().find(({ msg }) => msg.includes('EADDRINUSE')),
      {
        level: 'warn',
        msg: new RegExp(`127.0.0.1:${port}.*EADDRINUSE.*tries again`),
      },
    )
    const status = await until('the status is its own', async () => {
      const found = await shown(node)
      return found.agent.pid === next.pid && found.agent.serverProblem !== undefined && found
    })
    t.match(status, { running: true, agent: { serverProblem: /EADDRINUSE/ } })
    t.match((await node.run('status')).stdout, /EADDRINUSE/)
    const refused = await next.logged('Busy')
    t.match(refused.msg, /\/a\/\d and holds its lock; nothing was changed/, 'targets on the hung disk stay locked')
    const third = node.agentProcess([], disks.entering)
    t.equal(await third.end(), 75, 'there is one agent still')
    const said = third.log().findLast(({ level }) => level === 'error')
    t.match(said, { reason: 'Busy', msg: new RegExp(`another agent .* process ${next.pid};`) })

    await disks.thaw(node.path('a'))
    t.equal(await killed.end(), 'SIGKILL')
    t.match(await next.get('/livez'), { status: 200 })
    await until('a is up to date', () => read(`a/${many - 1}/key`) === '2')
    await until('the status has no problem', async () => (await shown(node)).agent.serverProblem === undefined)
    const fourth = node.agentProcess([], disks.entering)
    t.equal(await fourth.end(), 75, 'the lock that it took counts')
    t.equal(await next.end('SIGTERM'), 0)
    const last = node.agentProcess([], disks.entering)
    t.match(await last.get('/livez'), { status: 200 })
    t.equal(await last.end('SIGTERM'), 0)
  },
)

await t.test('the stateDirectory may hang, too', options, async (t) => {
  const root = scratch(t)
  const stateDirectory = join(root, 'state-disk/state')
  const node = new Node(t, [{ path: 'disk/web', contents: [{ secret: 'web' }] }], { stateDirectory })
  const disks = await FrozenDisks.create([join(root, 'state-disk')])
  // Before the node's own teardown, which waits for the agent.
  t.teardown(() => disks.destroy())
  node.put('Secret', 'web', { key: '1' })
  await disks.freeze(join(root, 'state-disk'))
  const agent = node.agentProcess([], disks.entering)
  await agent.logged('Published')
  await until('the status hangs', () => frozenThreads(agent.pid) > 0)
  node.put('Secret', 'web', { key: '2' })
  await agent.logged('Published', 2)
  t.match(await agent.get('/readyz'), { status: 200 })
  agent.signal('SIGTERM')
  const ends = await until('it ends', () => agent.log().find(({ signal, level }) => signal && level === 'error'))
  t.match(ends, { reason: 'Stalled', directories: [stateDirectory] })
  await disks.thaw(join(root, 'state-disk'))
  t.equal(await agent.end(), 'SIGTERM')
})

/** What a user among these disks reads from `holdfast status`. */
async function statusAmong(disks: FrozenDisks, node: Node, ...args: string[]): Promise<string> {
  const [program = '', ...words] = [...disks.entering, process.execPath, executable, 'status', ...args]
  const { stdout } = await promisify(execFile)(program, [...words, '--config', node.configuration])
  return stdout
}

await t.test('a stateDirectory that hangs is told by the log, and by status, which ends', options, async (t) => {
  const root = scratch(t)
  const stateDirectory = join(root, 'state-disk/state')
  const node = new Node(t, [{ path: 'disk/web', contents: [{ secret: 'web' }] }], { stateDirectory })
  const disks = await FrozenDisks.create([join(root, 'state-disk')])
  t.teardown(() => disks.destroy())
  node.put('Secret', 'web', { key: '1' })
  const agent = node.agentProcess([], disks.entering)
  await agent.logged('Published')
  interface Shown {
    readonly running: boolean
    /** null: the agent has written no status yet. */
    readonly agent: { readonly pid: number; readonly stateProblem?: string } | null
    readonly directories: readonly { readonly objects: readonly { readonly resourceVersion: string }[] }[]
  }
  const shown = async () => JSON.parse(await statusAmong(disks, node, '-o', 'json')) as Shown
  const before = await until('the status is there', async () => {
    const now = await shown().catch(() => undefined)
    return now?.agent && now.directories[0]?.objects.length === 1 ? { ...now, agent: now.agent } : undefined
  })
  t.equal(before.agent.stateProblem, undefined)
  await disks.freeze(join(root, 'state-disk'))
  node.put('Secret', 'web', { key: '2' })
  const line = await agent.logged('Stalled')
  const where = new RegExp(`${stateDirectory} does not answer.*/state-disk \\(ext4 on /dev/loop\\d+\\)`)
  t.match(line, { level: 'warn', msg: where })
  const now = await shown()
  t.match(now, { running: true, agent: { pid: agent.pid, stateProblem: where } })
  t.same(now.directories, before.directories, 'what it wrote before')
  t.match(await statusAmong(disks, node), where)
  node.put('Secret', 'web', { key: '3' })
  await agent.logged('Published', 3)
  t.equal(agent.log().filter(({ reason }) => reason === 'Stalled').length, 1, 'once')

  await disks.thaw(join(root, 'state-disk'))
  await until('the log says that it answers', () => agent.log().some(({ msg }) => msg.includes('answers again')))
  await until('the status has no problem', async () => (await shown()).agent?.stateProblem === undefined)

  // An agent that has written the last change, and writes nothing more.
  const versionOf = ({ directories }: Shown) => directories[0]?.objects[0]?.resourceVersion
  const third = versionOf(await shown())
  node.put('Secret', 'web', { key: '4' })
  const file = disks.seen(join(stateDirectory, 'status.json'))
  const fourth = await until('the status is on the disk', () => {
    const version = versionOf(JSON.parse(readFileSync(file, 'utf8')) as Shown)
    return version !== third && version
  })
  await disks.freeze(join(root, 'state-disk'))
  await agent.logged('Stalled', 2)
  t.match(await shown(), { running: true, agent: { pid: agent.pid, stateProblem: where } })
  node.put('Secret', 'web', { key: '5' })
  await agent.logged('Published', 5)
  t.equal(frozenThreads(agent.pid), 1, 'a write of the status waits for the look, without a thread')
  await disks.thaw(join(root, 'state-disk'))
  await until('the status is on the disk', async () => {
    const now = await shown()
    return now.agent?.stateProblem === undefined && versionOf(now) !== fourth
  })
  t.equal(agent.log().filter(({ msg }) => msg.includes('answers again')).length, 2)
  t.equal(await agent.end('SIGTERM'), 0)
})

const fileSystems: readonly FileSystem[] = ['ext4', 'xfs', 'btrfs']
const missingDisks = [...new Set([...missing, ...(await missingForDisk(fileSystems))])]
const onDisks = missingDisks.length === 0 ? {} : { skip: `needs ${missingDisks.join(', ')}` }

for (const fileSystem of fileSystems) {
  await t.test(`a question to ${fileSystem} writes nothing, and waits while it is frozen`, onDisks, async (t) => {
    const disk = await Disk.create()
    t.teardown(() => disk.destroy())
    await disk.format(fileSystem)
    await disk.mount()
    const directory = join(disk.mountPoint, 'state')
    mkdirSync(directory)
    /** What the disk has written once the file system has nothing left to write. */
    const written = async (): Promise<number> => {
      execFileSync('sync', ['--file-system', directory])
      return (await disk.counts()).writtenBytes
    }
    let before = -1
    await until('the file system is at rest', async () => before === (before = await written()))
    for (let asked = 0; asked < 100; asked++) await askToWrite(directory)
    t.equal(await written(), before)

    execFileSync('fsfreeze', ['--freeze', disk.mountPoint])
    let isAnswered = false
    const asked = askToWrite(directory).then(() => (isAnswered = true))
    try {
      await until('a thread waits for the disk', () => frozenThreads(process.pid) > 0)
      t.notOk(isAnswered)
    } finally {
      execFileSync('fsfreeze', ['--unfreeze', disk.mountPoint])
    }
    t.ok(await asked)
    execFileSync('mount', ['-o', 'remount,ro', disk.mountPoint])
    await t.resolves(askToWrite(directory), 'a file system that may only be read has answered')
  })
}

await t.test('an agent asks each second after a change, each 4.4 at rest, and not once it is closed', async (t) => {
  const stateDirectory = scratch(t)
  // A question takes a file of this name away, if there is one.
  const name = join(stateDirectory, '.holdfast-may-write')
  const time = new SimulatedTime(t)
  const state = new HangingState({ stateDirectory, log: silent, changed: () => undefined })
  t.teardown(() => state.close())
  const idle = (): Promise<void> => Promise.resolve()
  /** The next question comes after just so many milliseconds. */
  const asksAfter = async (milliseconds: number, when: string): Promise<void> => {
    writeFileSync(name, '')
    await time.advance(milliseconds - 1)
    t.ok(existsSync(name), `${when}: not before`)
    await time.advance(1)
    await until(`it has asked ${when}`, () => !existsSync(name))
    // A write waits for the question that is under way.
    await state.watch(idle)
  }
  state.changed()
  await asksAfter(1_000, 'after a change')
  writeFileSync(name, '')
  await state.watch(() => time.advance(10_000))
  t.ok(existsSync(name), 'not during a write')
  await asksAfter(1_000, 'after a write')
  await time.advance(30_000)
  await state.watch(idle)
  await asksAfter(4_400, 'at rest')
  state.changed()
  await asksAfter(1_000, 'after another change')
  for (const again of ['once more', 'and once more']) {
    writeFileSync(name, '')
    await until(again, () => time.advance(1_000).then(() => !existsSync(name)))
  }
  state.close()
  state.changed()
  writeFileSync(name, '')
  await state.watch(() => time.advance(60_000))
  await time.advance(60_000)
  t.ok(existsSync(name), 'not once it is closed')
})

await t.test('an agent at rest reports a frozen stateDirectory within five seconds', onDisks, async (t) => {
  const disk = await Disk.create()
  t.teardown(() => disk.destroy())
  await disk.format('ext4')
  await disk.mount()
  const stateDirectory = join(disk.mountPoint, 'state')
  mkdirSync(stateDirectory)
  const time = new SimulatedTime(t)
  const log = { ...silent, warn: (_: object, message: string) => void said.push(message) }
  const said: string[] = []
  const state = new HangingState({ stateDirectory, log, changed: () => undefined })
  t.teardown(() => state.close())
  state.changed()
  await time.advance(30_000)
  // The file system freezes just after a look.
  const name = join(stateDirectory, '.holdfast-may-write')
  writeFileSync(name, '')
  await until('a look', () => time.advance(100).then(() => !existsSync(name)))
  await state.watch(() => Promise.resolve())
  said.length = 0
  execFileSync('fsfreeze', ['--freeze', disk.mountPoint])
  try {
    await time.advance(4_400)
    await until('a look waits for the disk', () => frozenThreads(process.pid) > 0)
    await time.advance(500)
    await until('it is reported', () => said.length > 0)
    t.match(said[0], /state does not answer: its disk, .*, hangs/)
    await time.advance(2_000)
    t.equal(said.length, 1, 'once')
  } finally {
    execFileSync('fsfreeze', ['--unfreeze', disk.mountPoint])
  }
  await until('it answers again', () => state.problem === undefined)
})

await t.test('one process at a time waits for the disk of the state, however often it is asked', options, async (t) => {
  const at = join(scratch(t), 'a')
  const disks = await FrozenDisks.create([at])
  t.teardown(() => disks.destroy())
  const seen = disks.seen(at)
  const asking = () =>
    readdirSync('/proc').filter(
      (pid) => Number(pid) > 0 && readProc(`/proc/${pid}/cmdline`).includes(`${seen}/.holdfast-may-write`),
    )
  await disks.freeze(at)
  for (let asked = 0; asked < 3; asked++) t.match(await problemOfState(seen), /\/a does not answer/)
  t.equal(asking().length, 1)
  await disks.thaw(at)
  t.equal(await problemOfState(seen), undefined)
  await until('nobody waits', () => asking().length === 0)
})
