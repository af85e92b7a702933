/** Hooks on a real record, and what happens to a directory while they run. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { applyOutcome } from '../../src/agent/apply-outcome.js'
import { compareWithRecord } from '../../src/agent/detect-drift.js'
import { DirectoryState } from '../../src/agent/directory-state.js'
import { runPendingHooks } from '../../src/agent/hook-runner.js'
import { noEvents } from '../../src/agent/agent-events.js'
import { noMetrics } from '../../src/agent/report-metrics.js'
import type { Hook } from '../../src/config/hooks.js'
import { readPublication, replaceDirectory } from '../../src/durable/index.js'
import { silent } from '../../src/log.js'
import { directoryOf } from '../directories/objects.js'
import { until } from '../until.js'

class Scene {
  readonly root = mkdtempSync(join(tmpdir(), 'holdfast-hook-runner-'))
  readonly target = join(this.root, 'target')
  readonly state = new DirectoryState(directoryOf([], { path: this.target, afterPublish: this.hooks() }))

  constructor(t: Test) {
    t.teardown(() => rmSync(this.root, { recursive: true, force: true }))
  }

  /** Each waits for a file of its name, so that a test decides when it ends. */
  hooks(): Hook[] {
    return ['one', 'two'].map((name) => {
      const script = `touch ${this.root}/${name}.began; until [ -e ${this.root}/${name} ]; do sleep 0.02; done; echo ${name} >> ${this.root}/ran`
      const command = ['/bin/sh', '-c', script]
      return { type: 'exec', name, key: `key-${name}`, place: name, command, timeout: 60_000, retries: 0 }
    })
  }

  async publish(content: string): Promise<void> {
    const hooks = this.state.configuration.afterPublish.map(({ key }) => key)
    const { outcome: change, digest } = await replaceDirectory(this.target, { files: { a: content }, hooks })
    const outcome = { kind: 'published' as const, change, digest, objects: [], hooks }
    await applyOutcome(this.state, { ...outcome, warnings: [], certificates: [], unproven: false }, silent)
  }

  run(): ReturnType<typeof runPendingHooks> {
    const { signal } = new AbortController()
    return runPendingHooks(this.state, {
      log: silent,
      metrics: noMetrics,
      events: noEvents,
      signal,
      changed() {},
    })
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
  t.strictSame(scene.state.pendingHooks, [])
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
  t.equal(await running, 'retry', 'the same content, published again, is another publication')
  t.equal(scene.read('ran'), 'one\n')
  t.strictSame((await readPublication(scene.target))?.pendingHooks, ['key-one', 'key-two'])
  t.equal(await scene.run(), 'done')
  t.equal(scene.read('ran'), 'one\none\ntwo\n')
})
