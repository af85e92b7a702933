/** The end of the agent's process while it reads its configuration again: what each step of that may still do. */
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { tryLock } from '../../native/index.js'
import { Daemon } from '../../src/agent/daemon.js'
import { openSource } from '../../src/agent/open-source.js'
import { lockForPass } from '../../src/agent/state-lock.js'
import { loadConfiguration } from '../../src/config/parse.js'
import type { OpenSource } from '../../src/agent/agent-options.js'
import { namesFor } from '../../src/durable/path/names.js'
import { silent, type Log } from '../../src/log.js'
import { Node } from '../cli/holdfast.js'
import { until } from '../until.js'

const directory = (name: string) => ({ path: `disk/${name}`, contents: [{ secret: 'web' }] })

/** Holds up who passes it, from `close` on and until it is opened. */
class Gate {
  #open: Promise<void> | undefined
  open: () => void = () => undefined
  /** Who stands at it. */
  waiting = 0
  passed = 0

  close(): void {
    this.#open = new Promise((resolve) => (this.open = resolve))
  }

  async pass(): Promise<void> {
    this.passed += 1
    this.waiting += 1
    await this.#open
    this.waiting -= 1
  }
}

/** A daemon in this process, with a gate at each step of a reload that is given to it from outside. */
async function started(t: Test) {
  const node = new Node(t, [directory('one'), directory('two')])
  node.put('Secret', 'web', { key: '1' })
  symlinkSync(node.objects, node.path('elsewhere'))
  const gates = { load: new Gate(), source: new Gate(), closing: new Gate() }
  const said: string[] = []
  const say = (_: object, message: string): void => void said.push(message)
  const log: Log = { ...silent, info: say, warn: say, error: say }
  const load = async () => {
    await gates.load.pass()
    return loadConfiguration(node.configuration)
  }
  const open: OpenSource = async (source, listener) => {
    await gates.source.pass()
    const opened = await openSource(source, listener, { log, version: '1.2.3' })
    const close = opened.close.bind(opened)
    opened.close = async () => {
      await gates.closing.pass()
      await close()
    }
    return opened
  }
  const daemon = await Daemon.start({
    configuration: await loadConfiguration(node.configuration),
    load,
    openSource: open,
    log,
    version: '1.2.3',
    node: 'node',
  })
  let ended = false
  const end = async (): Promise<string[]> => {
    const hanging = await daemon.stop()
    ended = true
    return hanging
  }
  t.teardown(async () => {
    for (const gate of Object.values(gates)) gate.open()
    if (!ended) await daemon.stop()
  })
  await until('both are published', () => node.read('disk/one/key') && node.read('disk/two/key'))
  return { node, daemon, gates, said, end }
}

/** What tells that a configuration is in force, or that something goes on. */
function traces({ node, said }: Awaited<ReturnType<typeof started>>) {
  return {
    directory: existsSync(node.path('disk/new')),
    named: readFileSync(node.path('state/directories.json'), 'utf8'),
    status: node.read('state/status.json'),
    said: said.filter((line) => / in force$/.test(line)),
  }
}

/** Another configuration, with another source and address, that the agent is to read. */
function changed(node: Node): void {
  node.configure([directory('one'), directory('new')], {
    source: { namespace: 'demo', files: { path: node.path('elsewhere') } },
    server: { address: '127.0.0.2:0' },
    driftInterval: '1s',
  })
}

/** What keeps this process, or wakes it up: timers, watches of directories, servers. */
const active = (): string[] =>
  process.getActiveResourcesInfo().filter((type) => /^(?:Timeout|Immediate|FSEvent|TCP)/.test(type))

for (const step of ['load', 'source', 'closing'] as const) {
  await t.test(`nothing of a reload that stands at its step "${step}" goes on after the end`, async (t) => {
    const scene = await started(t)
    const { node, daemon, gates, end } = scene
    const gate = gates[step]
    gate.close()
    changed(node)
    const reloading = daemon.reload()
    await until('it stands there', () => gate.waiting > 0)
    const waiting = daemon.reload()
    const ending = end()
    gate.open()
    t.strictSame(await ending, [], 'no disk is blamed')
    const then = traces(scene)
    // The new directories come before the old source goes.
    if (step !== 'closing') t.equal(then.directory, false)
    t.strictSame(then.said, [])
    const { passed } = gates.load
    await Promise.all([reloading, waiting, daemon.reload()])
    t.strictSame(traces(scene), then)
    t.equal(gates.load.passed, passed, 'nothing is read any more')
    t.equal(gates.closing.passed, gates.source.passed, 'each source that was opened is closed')
    await until('nothing is left', () => active().length === 0)
  })
}

await t.test('a reload that waits for the lock of a directory that leaves ends with the agent', async (t) => {
  const scene = await started(t)
  const { node, daemon, end } = scene
  const path = node.path('disk/two')
  const lock = openSync(join(dirname(path), namesFor('two').lock), 'r')
  t.teardown(() => closeSync(lock))
  await until('another process publishes', () => tryLock(lock))
  node.configure([directory('one'), directory('new')])
  const reloading = daemon.reload()
  const isLeaving = () => /"left": true/.test(node.read('state/directories.json') ?? '')
  await until('it leaves', isLeaving)
  t.strictSame(await end(), [], 'no disk is blamed')
  const then = traces(scene)
  t.equal(then.directory, false)
  await reloading
  t.strictSame(traces(scene), then)
  t.ok(isLeaving(), 'the next start goes on with it')
})

await t.test('the lock of the state directory stays until the reload has ended', async (t) => {
  const { node, daemon, gates, end } = await started(t)
  gates.source.close()
  changed(node)
  void daemon.reload()
  await until('it opens the source', () => gates.source.waiting > 0)
  const ending = end()
  t.equal(await lockForPass(node.path('state'), 0), undefined)
  gates.source.open()
  t.strictSame(await ending, [])
  const lock = await lockForPass(node.path('state'), 0)
  t.ok(lock)
  await lock?.release()
})

await t.test('a reload that cannot end is named: nothing calls that an end in order', async (t) => {
  const { node, daemon, gates, end } = await started(t)
  gates.load.close()
  void daemon.reload()
  await until('it reads', () => gates.load.waiting > 0)
  t.strictSame(await end(), [node.configuration])
})

await t.test('a status file that cannot be written is said, and holds up no publication', async (t) => {
  const { node, said } = await started(t)
  rmSync(node.path('state/status.json'), { force: true })
  mkdirSync(node.path('state/status.json/in'), { recursive: true })
  node.put('Secret', 'web', { key: '2' })
  await until('it is published', () => node.read('disk/one/key') === '2')
  t.ok(await until('it is said', () => said.some((line) => line.startsWith('could not write the status file: '))))
})

await t.test('reloads merge: one runs, and one waits for it, which reads what has come until then', async (t) => {
  const { node, daemon, gates } = await started(t)
  gates.load.close()
  const reloads = [daemon.reload()]
  await until('it reads', () => gates.load.waiting > 0)
  for (let more = 0; more < 300; more++) reloads.push(daemon.reload())
  changed(node)
  gates.load.open()
  await Promise.all(reloads)
  t.equal(gates.load.passed, 2)
  await until('it is in force', () => node.read('disk/new/key'))
})
