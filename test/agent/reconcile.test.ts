/** One pass over several directories of a batch, on a real disk. */
import { existsSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import t, { type Test } from 'tap'
import { DirectoryState, DirectoryStates } from '../../src/agent/directory-state.js'
import { causes, reconcile, reportLog } from '../../src/agent/reconcile.js'
import { noEvents, openEvents } from '../../src/agent/report/agent-events.js'
import { noMetrics, type Metrics } from '../../src/agent/report/report-metrics.js'
import { silent, type Log } from '../../src/log.js'
import { replaceDirectory } from '../../src/durable/index.js'
import type { ObjectReference } from '../../src/objects/types.js'
import { isKind } from '../crash/judge/names.js'
import { makeCertificate, makeKey } from '../directories/make-certificates.js'
import { directoryOf, present, secret, whole } from '../directories/objects.js'
import { scratch } from '../durable/scratch.js'
import { json } from '../kubernetes/connection/api-server.js'
import { start } from '../kubernetes/connection/connected.js'
import { until } from '../until.js'
import { meaningOf, type PassOutcome } from '../../src/agent/outcome.js'
import { context } from './outcome-scene.js'

function once(work: () => void): () => void {
  let isDone = false
  return () => {
    if (!isDone) work()
    isDone = true
  }
}

/** Directories on a real disk, each with a Secret of its name, and all that passes over them report. */
class Scene {
  readonly root: string
  readonly states = new DirectoryStates()
  readonly abort = new AbortController()
  readonly counted: unknown[][] = []
  readonly lines: { readonly level: string; readonly reason?: string; readonly message: string }[] = []
  readonly outcomes: string[] = []
  readonly floors: string[] = []
  /** The keys of each Secret. */
  data: (name: string) => Readonly<Record<string, string>> = (name) => ({ key: name })
  /** Called when a pass reads an object. */
  asked: (name: string) => void = () => {}
  /** Called when a pass loads the content of an object. */
  loaded: (name: string) => void = () => {}
  /** Called when a barrier has ended. */
  afterBarrier: () => void = () => {}
  /** Called with the path of a directory that has an outcome. */
  applied: (path: string) => void = () => {}

  constructor(t: Test, names: readonly string[]) {
    this.root = scratch(t)
    for (const name of names) this.states.add(directoryOf([whole(secret(name))], { path: join(this.root, name) }))
  }

  /** One pass over all of them. */
  async pass(...why: string[]): Promise<string[]> {
    const at = (level: string) => (fields: { reason?: string }, message: string) => {
      this.lines.push({ level, ...(fields.reason && { reason: fields.reason }), message })
    }
    const batch = [...this.states].map(({ publishOperation }) => [publishOperation, { causes: why, since: 0 }] as const)
    const count =
      (name: keyof Metrics) =>
      (...values: unknown[]) =>
        void this.counted.push([name, ...values])
    const barrier = (...values: unknown[]) => {
      count('barrier')(...values)
      this.afterBarrier()
    }
    const results = await reconcile(new Map(batch), {
      log: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') },
      metrics: { ...noMetrics, barrier, drift: count('drift'), publish: count('publish') },
      events: noEvents,
      signal: this.abort.signal,
      lockTimeout: 0,
      requireProven: () => false,
      source: {
        latest: ({ name }) => {
          this.asked(name)
          return present(secret(name), this.data(name))[1]
        },
        load: ({ name }) => {
          this.loaded(name)
          return Promise.resolve(present(secret(name), this.data(name))[1])
        },
        published: ({ name }) => void this.floors.push(name),
      },
      state: (operation) => this.states.byOperation(operation),
      applied: ({ path }, outcome) => {
        if (outcome.kind === 'failed') this.outcomes.push(outcome.error.message)
        else this.outcomes.push(outcome.kind === 'published' ? outcome.change : outcome.kind)
        this.applied(path)
      },
    })
    const ended: string[] = []
    for (const result of results.values()) ended.push(await result)
    return ended
  }

  /** Counts and lines since the last call. */
  news() {
    const [counted, lines, outcomes] = [this.counted, this.lines, this.outcomes].map((list) => list.splice(0))
    return { counted, lines, outcomes }
  }

  file(name: string): string {
    return join(this.root, name, 'key')
  }
}

await t.test('a pass publishes before it has loaded more than 16 MiB', async (t) => {
  const names = Array.from({ length: 40 }, (_, index) => `large-${index}`)
  const scene = new Scene(t, names)
  const content = 'x'.repeat(1024 * 1024)
  scene.data = () => ({ key: content })
  const loaded = new Set<string>()
  let most = 0
  scene.loaded = (name) => {
    loaded.add(name)
    most = Math.max(most, loaded.size)
  }
  scene.afterBarrier = () => loaded.clear()
  await scene.pass(causes.start)
  t.strictSame(scene.outcomes, Array(40).fill('created'))
  t.ok(most <= 16, `${most} of 1 MiB`)
})

await t.test('all directories of a batch share one pair of barriers', async (t) => {
  const scene = new Scene(t, ['one', 'two', 'three'])
  t.strictSame(await scene.pass(causes.start), ['done', 'done', 'done'])
  t.strictSame(scene.outcomes, ['created', 'created', 'created'])
  t.equal(scene.counted.filter(([name]) => name === 'barrier').length, 1)
  t.equal(scene.counted.filter(([name, , result]) => name === 'publish' && result === 'created').length, 3)
  t.strictSame(scene.floors, ['one', 'two', 'three'], 'the source knows what is published')
  for (const name of ['one', 'two', 'three']) t.equal(readFileSync(scene.file(name), 'utf8'), name)
})

await t.test('all of a batch are reported before anything goes that others have filled', async (t) => {
  const scene = new Scene(t, ['filled', 'neighbour'])
  await scene.pass(causes.start)
  const theirs = Array.from({ length: 3_000 }, (_, index) => join(scene.root, 'filled', `theirs-${index}`))
  for (const path of theirs) writeFileSync(path, '')
  const old = (): number =>
    readdirSync(scene.root)
      .filter(isKind('staging'))
      .flatMap((name) => readdirSync(join(scene.root, name))).length
  const seen: [string, number][] = []
  scene.applied = (path) => void seen.push([basename(path), old()])
  scene.data = () => ({ key: 'new' })
  t.strictSame(await scene.pass(causes.start), ['done', 'done'])
  // The mutation after the second barrier has removed one.
  const whole = theirs.length
  t.strictSame(seen, [
    ['filled', whole],
    ['neighbour', whole],
  ])
  t.equal(old(), 0)
})

await t.test(
  'a drift check publishes nothing for an intact directory; it counts drift once, and repairs it',
  async (t) => {
    const scene = new Scene(t, ['one', 'two'])
    await scene.pass(causes.start)
    scene.news()
    t.strictSame(await scene.pass(causes.driftCheck), [])
    t.strictSame(scene.news(), { counted: [], lines: [], outcomes: [] })
    writeFileSync(scene.file('two'), 'edited')
    t.strictSame(await scene.pass(causes.driftCheck), ['done'], 'only the one that differs')
    const { counted, lines, outcomes } = scene.news()
    t.strictSame(outcomes, ['replaced'])
    t.match(counted, [
      ['drift', join(scene.root, 'two')],
      ['barrier', Number],
      ['publish', join(scene.root, 'two'), 'replaced', Number],
    ])
    t.match(lines, [
      { level: 'warn', message: /two differs from what was published: key/ },
      { level: 'info', reason: 'DriftRepaired', message: /two is repaired/ },
    ])
    t.equal(readFileSync(scene.file('two'), 'utf8'), 'two')
    t.strictSame(
      await scene.pass(causes.driftCheck, 'Secret ns/one'),
      ['done', 'done'],
      'an object is a cause of its own',
    )
    t.strictSame(scene.outcomes, ['unchanged', 'unchanged'])
  },
)

await t.test('a pass says what it repaired, also where no comparison found it before', async (t) => {
  const scene = new Scene(t, ['one'])
  await scene.pass(causes.start)
  // As `sync` of another source does.
  const replaceByHand = () => replaceDirectory(join(scene.root, 'one'), { files: { key: 'by hand' } })
  const edit = () => writeFileSync(scene.file('one'), 'edited')
  const others: [what: string, before: () => unknown, why: string[]][] = [
    ['it edited a file before news came', edit, ['news']],
    ['it published before a retry', replaceByHand, ['retry']],
    ['it edited a file after the comparison', () => (scene.asked = once(edit)), [causes.driftCheck, 'news']],
  ]
  for (const [what, before, why] of others) {
    await before()
    scene.news()
    t.strictSame(await scene.pass(...why), ['done'])
    t.strictSame(scene.outcomes, ['replaced'], what)
    t.equal(scene.counted.filter(([name]) => name === 'drift').length, 1, what)
    t.match(scene.lines[0], { reason: 'DriftRepaired', message: /one is repaired; .* after the last comparison/ }, what)
    t.equal(readFileSync(scene.file('one'), 'utf8'), 'one')
  }
  writeFileSync(scene.file('one'), 'edited')
  scene.data = () => ({ key: 'new' })
  scene.news()
  await scene.pass('news')
  t.match(scene.lines[0], { reason: 'Published' }, 'new content repairs nothing')
})

await t.test('a disk that a comparison cannot read ends Published=True, until a comparison can read it', async (t) => {
  const scene = new Scene(t, ['one'])
  const [one] = scene.states
  await scene.pass(causes.start)
  t.match(one?.facts, { intact: true, published: { status: 'True' } })
  const away = `${scene.root}.away`
  t.teardown(() => rmSync(away, { recursive: true, force: true }))
  renameSync(scene.root, away)
  writeFileSync(scene.root, '')
  scene.news()
  t.strictSame(await scene.pass(causes.driftCheck), ['wait'], 'a pass tries what the comparison could not')
  t.match(one?.facts, { intact: false, published: { status: 'False', message: /not a directory/ } })
  t.match(scene.news().lines, [{ level: 'error', message: /could not compare .*one with its record/ }, {}])
  rmSync(scene.root)
  renameSync(away, scene.root)
  t.strictSame(await scene.pass(causes.driftCheck), ['done'])
  t.match(one?.facts, { intact: true, uncompared: undefined, published: { status: 'True' } })
  t.strictSame(scene.news().outcomes, ['unchanged'], 'nothing was repaired')
})

await t.test('a pass that is aborted shows nothing, and waits', async (t) => {
  const scene = new Scene(t, ['one'])
  scene.abort.abort()
  t.strictSame(await scene.pass(causes.start), ['wait'])
  t.strictSame(scene.outcomes, ['aborted'])
  t.match(scene.lines, [{ level: 'info', message: /aborted it before anything was visible/ }])
  t.equal(existsSync(scene.file('one')), false)
  t.equal([...scene.states][0]?.facts.published, undefined, 'the condition stays what it was')
})

await t.test('a pass publishes no directory that the configuration drops meanwhile', async (t) => {
  const scene = new Scene(t, ['one', 'two'])
  const [, two] = scene.states
  scene.asked = (name) => {
    if (name === 'two') scene.states.remove(join(scene.root, name))
  }
  t.strictSame(await scene.pass(causes.start), ['done'])
  t.strictSame(scene.outcomes, ['created'])
  t.equal(two?.facts.intact, false, 'its state is nobody’s any more')
  t.strictSame(scene.floors, ['one'])
})

await t.test('an error of one directory does not keep the others of the batch from being reported', async (t) => {
  const scene = new Scene(t, ['one', 'two'])
  const [, two] = scene.states
  const reported: string[] = []
  scene.applied = (path) => {
    if (path.endsWith('one')) throw new Error('EIO')
    reported.push(path)
  }
  t.strictSame(await scene.pass(causes.start), ['retry', 'done'])
  t.strictSame(reported, [join(scene.root, 'two')])
  t.equal(two?.facts.intact, true)
})

await t.test('a pass after which the disk cannot be compared has an outcome, which says why', async (t) => {
  const scene = new Scene(t, ['one'])
  const [one] = scene.states
  await scene.pass(causes.start)
  // As if another process had published the same.
  one?.happened({ kind: 'compared', publication: undefined })
  scene.afterBarrier = () => {
    rmSync(scene.root, { recursive: true })
    writeFileSync(scene.root, '')
  }
  t.strictSame(await scene.pass('news'), ['retry'])
  t.matchOnly(scene.outcomes, ['created', /is not a directory; .* as it was/])
  t.equal(scene.outcomes.length, 2)
  t.match(one?.facts, {
    intact: false,
    published: { status: 'Unknown', message: /could not be compared .* is not a/ },
  })
})

await t.test('a publication reaches the API server as events, without a cluster', async (t) => {
  const { api, running } = await start(t, { handler: (_, reply) => json(reply, 201, {}) })
  const path = join(scratch(t), 'target')
  const state = new DirectoryState(directoryOf([whole(secret('web'))], { path }))
  const canary = 'CANARY-41d7'
  const source = {
    latest: ({ name }: ObjectReference) => present(secret(name), { key: canary })[1],
    load: ({ name }: ObjectReference) => Promise.resolve(present(secret(name), { key: canary })[1]),
    api,
    follow() {},
    published() {},
    clientCertificateNotAfter: () => undefined,
    close: () => Promise.resolve(),
  }
  const events = await openEvents(source, { log: silent, node: 'n1' })
  const results = await reconcile(new Map([['publish', { causes: ['start'], since: performance.now() }]]), {
    log: silent,
    metrics: noMetrics,
    events,
    source,
    lockTimeout: 0,
    signal: new AbortController().signal,
    requireProven: () => false,
    state: () => state,
    applied() {},
  })
  t.strictSame([...results.values()], ['done'])
  const posted = () => running.requests.filter(({ method }) => method === 'POST')
  await until('both events are posted', () => posted().length === 2)
  await events.close()
  const [onNode, onSecret] = posted().map(({ path, body }) => ({ path, body: JSON.parse(body) as object }))
  t.match(onNode, {
    path: '/apis/events.k8s.io/v1/namespaces/default/events',
    body: {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { namespace: 'default' },
      type: 'Normal',
      reason: 'Published',
      action: 'Publish',
      note: /^\/.*\/target is created, (and durable|but durability is not proven here)$/,
      reportingController: 'holdfast.dev/agent',
      reportingInstance: 'n1',
      regarding: { apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'n1' },
    },
  })
  const { namespace, name } = secret('web')
  t.match(onSecret, {
    path: `/apis/events.k8s.io/v1/namespaces/${namespace}/events`,
    body: {
      type: 'Normal',
      reason: 'Published',
      note: /^resourceVersion \S+ is published to .*target on node n1$/,
      regarding: { kind: 'Secret', namespace, name, uid: String },
    },
  })
  t.notMatch(JSON.stringify(running.requests), canary)
})

await t.test('a CA that held certificates and is empty now is a warning until it holds some again', async (t) => {
  const scene = new Scene(t, ['bundle', 'issuer'])
  const [bundle, issuer] = [...scene.states]
  if (bundle === undefined || issuer === undefined) throw new Error('two directories')
  for (const state of scene.states)
    state.happened({ kind: 'configured', configuration: { ...state.configuration, validate: ['certificates'] } })
  const certificate = makeCertificate(makeKey())
  let authority = certificate
  scene.data = (name) => ({ 'ca.crt': name === 'bundle' ? authority : '' })
  await scene.pass('start')
  t.match([bundle.facts.published, issuer.facts.published], [{ reason: 'Published' }, { reason: 'Published' }])
  authority = '\n'
  const message = /ca\.crt held certificates, and is empty now/
  const warned = () =>
    scene.lines.filter(({ level, reason }) => level === 'warn' && reason === 'CertificateInvalid').length
  for (const changes of [1, 2]) {
    await scene.pass('news')
    t.match(bundle.facts.published, { status: 'True', reason: 'CertificateInvalid', message })
    t.equal(warned(), changes)
  }
  t.match(issuer.facts.published, { reason: 'Published' }, 'an issuer that is rightly empty from the start')
  t.equal(readFileSync(join(bundle.path, 'ca.crt'), 'utf8'), '\n', 'it is published')
  authority = certificate
  await scene.pass('news')
  t.match(bundle.facts.published, { status: 'True', reason: 'Published' })
  t.equal(warned(), 2)
})

const report = (log: Log, outcome: PassOutcome) => reportLog(log, meaningOf(outcome, context), context)

await t.test('log lines say durably only on a proven file system', async (t) => {
  const lines: string[] = []
  const log = { ...silent, info: (_: object, message: string) => void lines.push(message) }
  const published = {
    ...({ kind: 'published', digest: 'sha256:0', sequence: 1, objects: [], warnings: [], certificates: [] } as const),
    hooks: [],
  }
  for (const unproven of [false, true]) {
    for (const change of ['created', 'unchanged'] as const) report(log, { ...published, change, unproven })
  }
  t.strictSame(lines, [
    '/srv/a is created, and durable',
    '/srv/a already holds this content, durably',
    '/srv/a is created, but durability is not proven here',
    '/srv/a already holds this content',
  ])
})

await t.test('every line names the operation, the directory, the causes and the time it took', async (t) => {
  const lines: object[] = []
  const log = { ...silent, warn: (fields: object) => void lines.push(fields) }
  const findings = [{ reason: 'ObjectMissing', message: 'x' } as const]
  reportLog(log, meaningOf({ kind: 'incomplete', findings }, context), { ...context, milliseconds: 12.3456 })
  t.strictSame(lines, [
    {
      reason: 'ObjectMissing',
      operation: 'publish /srv/a',
      directory: '/srv/a',
      causes: ['start'],
      milliseconds: 12.3,
    },
  ])
})
