/** Whatever an agent has begun ends with it: no timer, watch or pass of it outlives it, wherever its end finds it. */
import { EventEmitter, once } from 'node:events'
import fs, { rmSync, writeFileSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { Agent } from '../../src/agent/agent.js'
import { noMetrics } from '../../src/agent/report/report-metrics.js'
import { loadConfiguration } from '../../src/config/parse.js'
import { endsWithin } from '../../src/deadline.js'
import { setHold } from '../../src/durable/index.js'
import { silent } from '../../src/log.js'
import { objectName } from '../../src/message-text.js'
import type { DesiredObject, ObjectReference, ObservedState, Source, SourceListener } from '../../src/objects/types.js'
import { present } from '../directories/objects.js'
import { scratch } from '../durable/scratch.js'
import { holds } from '../property.js'

const secret: ObjectReference = { kind: 'Secret', namespace: 'ns', name: 'web' }

/** The timers and watches that files of src have begun, and not ended: each with the place that began it. */
const alive = new Map<unknown, string>()

function begun<Resource>(resource: Resource): Resource {
  const place = new Error().stack?.split('\n').find((line) => /\/src\/[a-z-]+[/.]/.test(line))
  // The process frees the memory of contents, whoever had them.
  if (place?.includes('content-garbage') === false) alive.set(resource, place.trim())
  return resource
}

/** Follows what begins timers and watches, until the test ends. */
function follow(t: Test): void {
  const real = { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate }
  const { watch } = fs
  const once =
    (start: (work: () => void, delay?: number) => object) =>
    (work: () => void, delay?: number): object => {
      const timer = begun(
        start(() => {
          alive.delete(timer)
          work()
        }, delay),
      )
      return timer
    }
  const ending =
    (end: (timer: never) => void) =>
    (timer: unknown): void => {
      alive.delete(timer)
      end(timer as never)
    }
  Object.assign(globalThis, {
    setTimeout: once(setTimeout),
    setImmediate: once(setImmediate),
    setInterval: (work: () => void, delay: number) => begun(real.setInterval(work, delay)),
    clearTimeout: ending(clearTimeout),
    clearInterval: ending(clearInterval),
    clearImmediate: ending(clearImmediate),
  })
  fs.watch = ((...args: Parameters<typeof watch>) => {
    const watcher = begun(watch(...args))
    return watcher.once('close', () => alive.delete(watcher))
  }) as typeof watch
  syncBuiltinESMExports()
  t.teardown(() => {
    Object.assign(globalThis, real)
    fs.watch = watch
    syncBuiltinESMExports()
  })
}

/** A source that says what the test has it say. */
class ToldSource implements Source {
  #state: ObservedState | undefined
  version = 0

  constructor(readonly listener: SourceListener) {}

  follow(desired: readonly DesiredObject[]): void {
    if (desired.length > 0 && this.#state) this.listener.confirmed(secret)
  }

  say(state: ObservedState): void {
    this.#state = state
    this.listener.observed(secret, state, { rewound: false })
    this.listener.confirmed(secret)
  }

  sayNext(): void {
    this.version += 1
    const more = { uid: 'u', resourceVersion: String(this.version) }
    this.say(present(secret, { key: `version ${this.version}` }, more)[1])
  }

  latest(reference: ObjectReference): ObservedState | undefined {
    return objectName(reference) === objectName(secret) ? this.#state : { state: 'absent' }
  }

  load = (reference: ObjectReference) => Promise.resolve(this.latest(reference) as Awaited<ReturnType<Source['load']>>)
  published = (): void => undefined
  clientCertificateNotAfter = () => undefined
  /** It reports until its end, as one that waits for an answer does. */
  close = (): Promise<void> => {
    this.listener.watchRestarted('connection', [secret], unknown)
    this.listener.told?.(secret)
    this.sayNext()
    return Promise.resolve()
  }
}

interface Scene {
  readonly agent: Agent
  readonly source: () => ToldSource | undefined
  readonly target: string
  readonly configure: (names: readonly string[]) => Promise<unknown>
  /** Resolves with the next publication, or where none comes for a while. */
  readonly published: () => Promise<unknown>
}

/** What the row waits for: all else goes on beside what follows. */
const waits = ['the loop turns', 'a file answers', 'a publication ends', 'an operator holds it for an hour']

const unknown = { state: 'unknown', reason: 'SourceUnavailable', message: 'no answer' } as const

/** Whatever may happen to an agent, or be asked of it. */
const actions: Readonly<Record<string, (scene: Scene) => unknown>> = {
  'the source reports a newer version': ({ source }) => source()?.sayNext(),
  'the source loses the object': ({ source }) => source()?.say({ state: 'absent' }),
  'the source cannot read it': ({ source }) => source()?.say(unknown),
  'the source confirms': ({ source }) => source()?.listener.confirmed(secret),
  'the source is told of a newer version': ({ source }) => source()?.listener.told?.(secret),
  'the watch is lost': ({ source }) => source()?.listener.watchRestarted('connection', [secret], unknown),
  'an operator asks for a comparison': ({ agent }) => agent.compareAll(),
  'one directory is configured': ({ configure }) => configure(['one']),
  'two directories are configured': ({ configure }) => configure(['one', 'two']),
  'another program writes to the directory': ({ target }) => {
    try {
      writeFileSync(join(target, 'key'), 'changed')
    } catch {
      // It is not there.
    }
  },
  'an operator holds it for an hour': ({ target, agent }) =>
    setHold(target, { since: Date.now(), until: Date.now() + 3_600_000, reason: '' })
      .then(() => agent.compareAll())
      .catch(() => undefined),
  'the directory is removed': ({ target }) => rmSync(target, { recursive: true, force: true }),
  'the loop turns': () => new Promise((resolve) => setImmediate(resolve)),
  'a file answers': ({ target }) => stat(target).catch(() => undefined),
  'a publication ends': ({ published }) => published(),
}

await t.test('whatever has happened, the end of an agent ends all that it has begun', async (t) => {
  const root = scratch(t)
  let turn = 0
  const lives = async (row: readonly string[], startsFirst: boolean, barriers: number): Promise<void> => {
    const place = join(root, String((turn += 1)))
    const file = `${place}.yaml`
    let reading: Promise<unknown> = Promise.resolve()
    const read = (names: readonly string[]) => {
      const hook = { signal: { name: 'SIGHUP', pidFile: `${place}.pid` } }
      const contents = [{ secret: 'web' }]
      const directories = names.map((name) => ({ path: `${place}/${name}`, contents, afterPublish: [hook] }))
      const document = { apiVersion: 'holdfast.dev/v1alpha1', kind: 'AgentConfiguration', directories }
      const source = { namespace: 'ns', files: { path: root } }
      const text = JSON.stringify({ ...document, source, stateDirectory: `${place}.state` })
      // Another one would find the file half written.
      const next = reading.then(() => {
        writeFileSync(file, text)
        return loadConfiguration(file)
      })
      reading = next
      return next
    }
    let source: ToldSource | undefined
    let left = barriers
    let stopping: Promise<unknown> | undefined
    const publications = new EventEmitter()
    let isOver = false
    const late: string[] = []
    const changed = (): void => {
      if (isOver) late.push(new Error('the agent has ended').stack ?? '')
    }
    const published = () => endsWithin(once(publications, 'one'), 200)
    const agent = new Agent(await read(['one']), {
      log: silent,
      // A content is visible then, and its pass has not ended.
      metrics: {
        ...noMetrics,
        barrier() {
          left -= 1
          if (left === 0) stopping ??= agent.stop()
          publications.emit('one')
        },
      },
      openSource: (_, listener) => Promise.resolve((source = new ToldSource(listener))),
      ...{ node: '', version: '1.2.3', identity: () => 'agent', moved: () => undefined, changed },
    })
    const ended = (error: unknown): void => {
      if (!agent.ended.aborted) throw error
    }
    const configure = async (names: readonly string[]) => agent.reconfigure(await read(names)).catch(ended)
    const under: Promise<unknown>[] = [agent.start().catch(ended)]
    if (startsFirst) await under[0]
    for (const name of row) {
      const done = actions[name]?.({ agent, source: () => source, target: `${place}/one`, configure, published })
      if (waits.includes(name)) await done
      else under.push(Promise.resolve(done))
    }
    await (stopping ??= agent.stop())
    isOver = true
    await Promise.all(under)
    // Calls that were under way end first.
    for (let call = 0; call < 100 && alive.size > 0; call++) await stat(root)
    const what = [...alive.values()].join('\n')
    alive.clear()
    if (what !== '') throw new Error(`outlives the agent: ${what}`)
    if (late.length > 0) throw new Error(`changed behind its end: ${late.join('\n')}`)
  }
  const names = fc.constantFrom(...Object.keys(actions))
  const rows = fc.array(names, { maxLength: 30, size: 'medium' })
  const property = fc.asyncProperty(rows, fc.boolean(), fc.integer({ min: 0, max: 3 }), lives)
  follow(t)
  await holds(t, 'nothing outlives an agent', property, { runs: 25 })
})
