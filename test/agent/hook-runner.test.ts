/** Hooks on a real record, and what happens to a directory while they run. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { applyOutcome } from '../../src/agent/reconcile.js'
import { compareWithRecord } from '../../src/agent/detect-drift.js'
import { DirectoryState } from '../../src/agent/directory-state.js'
import { jitterOf, runPendingHooks, hookGroups } from '../../src/agent/hook-runner.js'
import { noEvents } from '../../src/agent/report/agent-events.js'
import { noMetrics } from '../../src/agent/report/report-metrics.js'
import type { QueueResult } from '../../src/agent/workqueue.js'
import type { Hook } from '../../src/config/hooks.js'
import { readPublication, replaceDirectory } from '../../src/durable/index.js'
import { silent } from '../../src/log.js'
import { directoryOf } from '../directories/objects.js'
import { until } from '../until.js'

function run(states: readonly DirectoryState[], node?: string): Promise<Map<string, QueueResult>> {
  const { signal } = new AbortController()
  return runPendingHooks(states, { log: silent, metrics: noMetrics, events: noEvents, signal, node, changed() {} })
}

class Scene {
  readonly root = mkdtempSync(join(tmpdir(), 'holdfast-hook-runner-'))
  readonly target = join(this.root, 'target')
  readonly state = new DirectoryState(directoryOf([], { path: this.target, afterPublish: this.hooks() }))

  constructor(t: Test) {
    t.teardown(() => rmSync(this.root, { recursive: true, force: true }))
  }

  /** Each waits for a file of its name, so that a test decides when it ends. */
  hooks(jitter = 0): Hook[] {
    return ['one', 'two'].map((name) => {
      const script = `touch ${this.root}/${name}.began; until [ -e ${this.root}/${name} ]; do sleep 0.02; done; echo ${name} >> ${this.root}/ran`
      const command = ['/bin/sh', '-c', script]
      return {
        type: 'exec',
        name,
        key: `key-${name}`,
        place: name,
        command,
        timeout: 60_000,
        retries: 0,
        jitter: name === 'two' ? jitter : 0,
      }
    })
  }

  async publish(content: string): Promise<void> {
    const hooks = this.state.configuration.afterPublish.map(({ key }) => key)
    const { outcome: change, digest, sequence } = await replaceDirectory(this.target, { files: { a: content }, hooks })
    const outcome = { kind: 'published' as const, change, digest, sequence, objects: [], hooks }
    await applyOutcome(this.state, { ...outcome, warnings: [], certificates: [], unproven: false }, silent)
  }

  async run(node?: string): Promise<QueueResult | undefined> {
    return (await run([this.state], node)).get(this.state.hooksOperation)
  }

  async began(name: string): Promise<void> {
    await until(`${name} has begun`, () => this.read(`${name}.began`) !== undefined)
  }

  release(name: string): void {
    writeFileSync(join(this.root, name), '')
  }

  read(name: string): string | undefined {
    try {
      return readFileSync(join(this.root, name), 'utf8')
    } catch {
      return undefined
    }
  }
}

await t.test('a comparison that falls into a run loses no hook', async (t) => {
  const scene = new Scene(t)
  await scene.publish('1')
  const running = scene.run()
  await scene.began('one')
  await compareWithRecord(scene.state)
  scene.release('one')
  scene.release('two')
  t.equal(await running, 'done')
  t.equal(scene.read('ran'), 'one\ntwo\n')
  t.strictSame(scene.state.facts.record?.pendingHooks, [])
  t.strictSame((await readPublication(scene.target))?.pendingHooks, [])
})

await t.test('a publication that falls into a run has all of its hooks run', async (t) => {
  const scene = new Scene(t)
  await scene.publish('1')
  const running = scene.run()
  await scene.began('one')
  await scene.publish('2')
  await scene.publish('1')
  scene.release('one')
  scene.release('two')
  t.equal(await running, 'wait', 'the same content, published again, is another publication')
  t.equal(scene.read('ran'), 'one\n')
  t.strictSame((await readPublication(scene.target))?.pendingHooks, ['key-one', 'key-two'])
  t.equal(await scene.run(), 'done')
  t.equal(scene.read('ran'), 'one\none\ntwo\n')
})

await t.test('so does a publication of another program, with the same content', async (t) => {
  const scene = new Scene(t)
  await scene.publish('1')
  const running = scene.run()
  await scene.began('one')
  const hooks = ['key-one', 'key-two']
  for (const a of ['2', '1']) await replaceDirectory(scene.target, { files: { a }, hooks })
  await compareWithRecord(scene.state)
  scene.release('one')
  scene.release('two')
  t.equal(await running, 'wait')
  t.equal(scene.read('ran'), 'one\n')
  t.strictSame((await readPublication(scene.target))?.pendingHooks, ['key-one', 'key-two'])
})

await t.test('directories that share a hook wait for it as long as the most patient of them', async (t) => {
  const scenes = [new Scene(t), new Scene(t)]
  const [first, second] = scenes.map(({ state }) => state)
  if (first === undefined || second === undefined) throw new Error('there are two')
  const [shared] = first.configuration.afterPublish
  if (shared === undefined) throw new Error('it has a hook')
  for (const [state, timeout] of [
    [first, 60_000],
    [second, 1],
  ] as const)
    state.happened({
      kind: 'configured',
      configuration: { ...state.configuration, afterPublish: [{ ...shared, timeout }] },
    })
  for (const scene of scenes) await scene.publish('1')
  const running = run([second, first])
  await scenes[0]?.began('one')
  scenes[0]?.release('one')
  t.strictSame([...(await running).values()], ['done', 'done'])
})

await t.test("a hook with jitter runs at the node's own time, once for all publications until then", async (t) => {
  const scene = new Scene(t)
  const jitter = 1_000
  scene.state.happened({
    kind: 'configured',
    configuration: { ...scene.state.configuration, afterPublish: scene.hooks(jitter) },
  })
  await scene.publish('1')
  for (const name of ['one', 'two']) scene.release(name)
  const started = performance.now()
  const running = scene.run('node-7')
  await until('the hook without jitter has run', () => scene.read('ran') === 'one\n')
  await until('it is recorded', () => scene.state.facts.record?.pendingHooks.length === 1)
  await scene.publish('2')
  t.equal(await running, 'done')
  t.equal(scene.read('ran'), 'one\none\ntwo\n', 'in their order, for the newest')
  t.ok(performance.now() - started >= jitterOf(jitter, 'node-7') - 2)
  t.strictSame((await readPublication(scene.target))?.pendingHooks, [])
})

await t.test('jitter spreads nodes evenly, and each has the same place every time', async (t) => {
  const places = Array.from({ length: 1000 }, (_, index) => jitterOf(30_000, `node-${index}`))
  t.strictSame(
    places.slice(0, 10),
    Array.from({ length: 10 }, (_, index) => jitterOf(30_000, `node-${index}`)),
  )
  for (let second = 0; second < 30; second += 10) {
    const share = places.filter((place) => place >= second * 1000 && place < (second + 10) * 1000).length
    t.ok(share > 250 && share < 420, `${share} of 1000 nodes within seconds ${second} to ${second + 10}`)
  }
})

function state(path: string, ...keys: string[]): DirectoryState {
  const policy = { timeout: 1, retries: 0, jitter: 0, place: '' }
  const hooks = keys.map((key): Hook => ({ type: 'exec', command: ['/x'], key, name: key, ...policy }))
  return new DirectoryState(directoryOf([], { path, afterPublish: hooks }))
}

/** The paths of each group, as one sorted text. */
function grouped(states: DirectoryState[], fileSystemOf: (path: string) => string = () => 'one'): string[] {
  const groupOf = hookGroups(states, fileSystemOf)
  const groups = new Map<string, string[]>()
  for (const { hooksOperation, path } of states) {
    const name = groupOf(hooksOperation)
    groups.set(name, [...(groups.get(name) ?? []), path])
  }
  return [...groups.values()].map((paths) => paths.sort().join(' ')).sort()
}

await t.test('directories that have a hook in common, also by way of others', async (t) => {
  const states = [
    state('/a', 'x'),
    state('/b', 'y'),
    state('/c', 'z'),
    state('/d'),
    state('/e', 'w', 'y', 'x'),
    state('/f', 'w'),
  ]
  t.strictSame(grouped(states), ['/a /b /e /f', '/c', '/d'])
  t.strictSame(grouped([...states].reverse()), ['/a /b /e /f', '/c', '/d'], 'in whatever order they stand')
})

await t.test('directories of several file systems never wait for one another', async (t) => {
  const states = [state('/a/1', 'x'), state('/a/2', 'x'), state('/b/1', 'x')]
  t.strictSame(
    grouped(states, (path) => path.slice(0, 2)),
    ['/a/1 /a/2', '/b/1'],
  )
})
