/** When an agent reports, on a clock that the test moves, and what an API server's answers come to. */
import t from 'tap'
import { NodeReporter } from '../../src/fleet/reporter.js'
import type { SnapshotDirectory } from '../../src/fleet/report-status.js'
import { heartbeat, type ReportStatus } from '../../src/fleet/types.js'
import type { ApiResponse, SendOptions } from '../../src/kubernetes/connection/client.js'
import type { Log } from '../../src/log.js'
import { Clock, minute, settled } from '../kubernetes/events/event-scene.js'

const second = 1_000
/** A change waits for a random part of this. */
const spread = 30 * second
const node = 'n1'
const nodeUID = 'node-uid'
const owned = { metadata: { name: node, ownerReferences: [{ kind: 'Node', uid: nodeUID }] } }

const answer = (status: number, body: unknown = {}): ApiResponse => ({ status, body, retryAfter: undefined })
const notFound = answer(404, { kind: 'Status', reason: 'NotFound', details: { name: node } })

/** An API server with one Node and its report; a test changes its answers. */
class Scene {
  readonly clock = new Clock()
  readonly writes: { readonly status: ReportStatus; readonly options: SendOptions }[] = []
  readonly warnings: string[] = []
  readonly made: unknown[] = []
  node = answer(200, { metadata: { name: node, uid: nodeUID } })
  version = '1'
  confirmed = true
  compared = true
  broken = false
  report: ApiResponse = notFound
  patch: () => ApiResponse | Error = () => answer(200)
  /** No request is answered before this. */
  open: Promise<void> = Promise.resolve()
  readonly reporter: NodeReporter

  constructor(agentID = 'agent-1', report?: ApiResponse) {
    if (report) this.report = report
    const log: Log = { debug() {}, info() {}, error() {}, warn: (_, message) => void this.warnings.push(message) }
    this.reporter = new NodeReporter(
      {
        get: (path) => Promise.resolve(path === `/api/v1/nodes/${node}` ? this.node : this.report),
        send: async (method, _, body, options) => {
          await this.open
          if (method === 'POST') {
            this.made.push(body)
            this.report = answer(200, owned)
            return answer(201)
          }
          const found = this.patch()
          if (found instanceof Error) throw found
          const { status } = body as { status: ReportStatus }
          if (found.status === 200) {
            this.writes.push({ status, options })
            this.report = answer(200, { ...owned, status })
          }
          return found
        },
      },
      {
        log,
        node,
        agentID,
        bootID: 'boot',
        clock: this.clock,
        random: () => 0.5,
        snapshot: () => {
          if (this.broken) throw new Error('a snapshot that breaks')
          return this.compared ? { agentVersion: '1', configuration: 'c', directories: [this.#directory()] } : undefined
        },
      },
    )
  }

  #directory(): SnapshotDirectory {
    const { confirmed, version: resourceVersion } = this
    const objects = [{ kind: 'Secret', namespace: 'ns', name: 'a', uid: 'u', resourceVersion }]
    return { path: '/a', state: 'Current', reason: 'Published', sequence: 1, objects, confirmed }
  }

  async change(version: string): Promise<void> {
    this.version = version
    this.reporter.changed()
    await settled()
  }

  /** In small steps, so that timers that follow one another each have their turn. */
  async pass(milliseconds: number, step = second): Promise<void> {
    for (let passed = 0; passed < milliseconds; passed += step) await this.clock.advance(step)
  }
}

/** What an agent of an earlier process has reported. */
const earlier = (change: Partial<ReportStatus> = {}, version = '1'): ApiResponse =>
  answer(200, {
    ...owned,
    status: {
      observedAt: '2026-01-01T00:00:00Z',
      nodeUID,
      bootID: 'boot',
      agentID: 'agent-1',
      agentVersion: '1',
      configuration: 'c',
      summary: { directories: 1, current: 1, waiting: 0, held: 0, failed: 0 },
      conditions: [
        {
          type: 'Ready',
          status: 'True',
          reason: 'AllCurrent',
          message: '1 of 1 directories are current; waiting 0, held 0, failed 0',
          lastTransitionTime: '2025-01-01T00:00:00Z',
        },
      ],
      directories: [
        {
          path: '/a',
          state: 'Current',
          reason: 'Published',
          sequence: 1,
          objects: [{ kind: 'Secret', namespace: 'ns', name: 'a', uid: 'u', resourceVersion: version }],
        },
      ],
      ...change,
    } satisfies ReportStatus,
  })

await t.test('a change is reported within half a minute, and many changes are reported together', async (t) => {
  const scene = new Scene()
  t.teardown(() => scene.reporter.close())
  await scene.pass(spread)
  t.equal(scene.writes.length, 1)
  t.match(scene.writes[0]?.options, {
    accept: /as=PartialObjectMetadata/,
    apply: { manager: 'holdfast-agent-1', force: false },
  })
  for (let version = 2; version < 12; version++) await scene.change(String(version))
  await scene.pass(spread)
  t.equal(scene.writes.length, 2)
  t.equal(scene.writes[1]?.status.directories[0]?.objects[0]?.resourceVersion, '11')
})

await t.test('a node on which nothing changes reports about once an hour, however often it looks', async (t) => {
  const scene = new Scene()
  t.teardown(() => scene.reporter.close())
  await scene.pass(minute)
  const hours = 24
  for (let look = 0; look < hours * 60; look++) {
    scene.reporter.changed()
    await scene.clock.advance(minute)
  }
  const beats = scene.writes.length - 1
  t.ok(beats >= hours - 2 && beats <= hours * 1.1, `${beats} writes in ${hours} hours`)
})

await t.test(
  'an outage of the API server warns once, and is followed by no write of what it has already',
  async (t) => {
    const scene = new Scene()
    t.teardown(() => scene.reporter.close())
    await scene.pass(minute)
    scene.patch = () => answer(500, { message: 'down' })
    await scene.change('2')
    await scene.pass(30 * minute)
    t.equal(scene.warnings.length, 1)
    t.match(scene.warnings[0], /could not be sent: .*HTTP 500: down/)
    scene.patch = () => answer(200)
    await scene.pass(15 * minute)
    t.equal(scene.writes.length, 2)
    await scene.pass(20 * minute)
    t.equal(scene.writes.length, 2)
  },
)

const refusals: readonly [string, ApiResponse, RegExp][] = [
  ['no right', answer(403, { message: 'forbidden' }), /HTTP 403: forbidden.*holdfast rbac/],
  [
    'no credential',
    { ...answer(403), anonymous: true },
    /HTTP 403 \(no credential was sent: give the user [^"]*\); everything else works$/,
  ],
  [
    'the policy',
    answer(403, { message: "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: bound to no node" }),
    /bound to no node \(RBAC grants it, but a policy denies it: docs\/fleet.md, "Set up",/,
  ],
  ['no definition', answer(404, { message: '404 page not found' }), /kubectl apply -k deploy\/fleet/],
  [
    'an older definition',
    answer(500, { message: '.status.x: field not declared in schema' }),
    /kubectl apply -k deploy\/fleet/,
  ],
  ['another policy', answer(422, { message: 'denied' }), /HTTP 422: denied/],
]
for (const [name, refusal, message] of refusals) {
  await t.test(`${name}: one warning, and reports begin by themselves once they may`, async (t) => {
    const scene = new Scene()
    t.teardown(() => scene.reporter.close())
    scene.patch = () => refusal
    await scene.pass(60 * minute)
    t.equal(scene.warnings.length, 1)
    t.match(scene.warnings[0], message)
    scene.patch = () => answer(200)
    await scene.pass(7 * minute)
    t.equal(scene.writes.length, 1)
  })
}

await t.test('a report is made before it is written, and the Node owns it', async (t) => {
  const scene = new Scene()
  t.teardown(() => scene.reporter.close())
  scene.patch = () => (scene.made.length > 0 ? answer(200) : notFound)
  await scene.pass(minute)
  t.match(scene.made, [{ metadata: { name: node, ownerReferences: [{ kind: 'Node', name: node, uid: nodeUID }] } }])
  t.equal(scene.writes.length, 1)
  t.strictSame(scene.warnings, [])
})

await t.test(
  'a Node that is not there, or has no uid, gets no report, and a deleted report is told as such',
  async (t) => {
    for (const [found, message] of [
      [notFound, /there is no Node n1/],
      [answer(200, { metadata: { name: node } }), /Node n1 has no uid/],
    ] as const) {
      const scene = new Scene()
      t.teardown(() => scene.reporter.close())
      scene.node = found
      await scene.pass(minute)
      t.match(scene.warnings, [message])
      t.equal(scene.made.length, 0)
    }
    const scene = new Scene()
    t.teardown(() => scene.reporter.close())
    await scene.pass(minute)
    scene.patch = () => notFound
    await scene.change('2')
    await scene.pass(minute)
    t.matchOnly(scene.warnings, [/NodePublication n1 was deleted/])
  },
)

await t.test('a refused credential is told with advice, and an outage behind a success as a new one', async (t) => {
  const scene = new Scene()
  t.teardown(() => scene.reporter.close())
  scene.patch = () => answer(401, { message: 'Unauthorized' })
  await scene.pass(60 * minute)
  t.matchOnly(scene.warnings, [
    /HTTP 401: Unauthorized \(check the user in the kubeconfig, or the service account token\)/,
  ])
  scene.patch = () => answer(200)
  await scene.pass(12 * minute)
  t.equal(scene.writes.length, 1)
  scene.patch = () => answer(500)
  await scene.change('2')
  await scene.pass(minute)
  t.equal(scene.warnings.length, 2)
  scene.patch = () => answer(200)
  await scene.pass(minute)
  t.equal(scene.writes.length, 2, 'its pauses begin anew')
})

await t.test('a right that an API server does not know yet after its start is asked for again soon', async (t) => {
  const scene = new Scene()
  t.teardown(() => scene.reporter.close())
  await scene.pass(minute)
  scene.patch = () => answer(403, { message: 'clusterrole "holdfast" not found' })
  await scene.change('2')
  await scene.pass(minute)
  scene.patch = () => answer(200)
  await scene.pass(minute)
  t.equal(scene.writes.length, 2)
  await scene.pass(3 * minute)
  scene.patch = () => answer(403, { message: 'forbidden' })
  await scene.change('3')
  await scene.pass(minute)
  t.strictSame(scene.warnings, [], 'it may have started once more')
  await scene.pass(9 * minute)
  t.matchOnly(scene.warnings, [/HTTP 403: forbidden.*holdfast rbac/])
  t.equal(scene.warnings.length, 1, 'a right that is gone for good')
})

await t.test('a restarted agent writes nothing that its last report says already', async (t) => {
  const scene = new Scene('agent-1', earlier())
  t.teardown(() => scene.reporter.close())
  await scene.pass(10 * minute)
  t.equal(scene.writes.length, 0)
  await scene.change('2')
  await scene.pass(spread)
  t.equal(scene.writes.length, 1)
})

await t.test('a restarted agent reports no older version until the source has confirmed it', async (t) => {
  const scene = new Scene('agent-1', earlier({}, '9'))
  t.teardown(() => scene.reporter.close())
  scene.confirmed = false
  await scene.pass(10 * minute)
  t.equal(scene.writes.length, 0)
  scene.confirmed = true
  await scene.pass(minute)
  t.equal(scene.writes.length, 1, 'etcd was restored from a backup')
})

await t.test('an agent leaves the report of another agent and of another Node alone, and says so', async (t) => {
  const other = new Scene('agent-2', earlier())
  t.teardown(() => other.reporter.close())
  await other.pass(10 * minute)
  t.equal(other.writes.length, 0)
  t.matchOnly(other.warnings, [/another agent \(agent-1\) reports for node n1/])
  // The other one has reported nothing for two hours: it is gone.
  await other.pass(2 * heartbeat, minute)
  t.match(other.writes[0]?.options, { apply: { manager: 'holdfast-agent-2', force: true } })

  const foreign = new Scene(
    'agent-1',
    answer(200, { metadata: { name: node, ownerReferences: [{ kind: 'Node', uid: 'old' }] } }),
  )
  t.teardown(() => foreign.reporter.close())
  await foreign.pass(10 * minute)
  t.equal(foreign.writes.length, 0)
  t.matchOnly(foreign.warnings, [/NodePublication n1 is not owned by this Node .*kubectl delete npub n1/])

  const rebooted = new Scene('agent-2', earlier({ bootID: 'before' }))
  t.teardown(() => rebooted.reporter.close())
  await rebooted.pass(minute)
  t.equal(rebooted.writes.length, 1)
})

await t.test('a reporter has ended once its last request has', async (t) => {
  const scene = new Scene()
  await scene.pass(minute)
  let answerIt = (): void => undefined
  scene.open = new Promise((resolve) => (answerIt = resolve))
  await scene.change('2')
  await scene.pass(spread)
  let hasEnded = false
  const ending = scene.reporter.close().then(() => (hasEnded = true))
  await settled()
  t.equal(hasEnded, false, 'its request is on the way')
  answerIt()
  await ending
  t.equal(scene.writes.length, 2)
})

await t.test('nothing is reported before each directory was compared', async (t) => {
  const scene = new Scene()
  t.teardown(() => scene.reporter.close())
  scene.compared = false
  await scene.pass(5 * minute)
  t.equal(scene.writes.length, 0)
  scene.compared = true
  await scene.pass(spread)
  t.equal(scene.writes.length, 1)
})

await t.test('an error while it looks at the agent is one warning, and ends nothing', async (t) => {
  const scene = new Scene()
  t.teardown(() => scene.reporter.close())
  scene.broken = true
  await scene.pass(5 * minute)
  t.matchOnly(scene.warnings, [/could not be sent: a snapshot that breaks/])
  t.equal(scene.warnings.length, 1)
  scene.broken = false
  await scene.pass(10 * minute)
  t.equal(scene.writes.length, 1)
})

await t.test(
  'an agent alone writes its report again within an hour after somebody has deleted it, or after a reload',
  async (t) => {
    const scene = new Scene()
    t.teardown(() => scene.reporter.close())
    await scene.pass(minute)
    scene.report = notFound
    await scene.pass(1.1 * heartbeat, minute)
    t.equal(scene.writes.length, 2)
    scene.report = notFound
    // A reload by hand.
    scene.reporter.retryRefused()
    await scene.pass(spread)
    t.equal(scene.writes.length, 3)
  },
)

await t.test('a clock that is set an hour back or ahead writes no report the more, and none the less', async (t) => {
  for (const hours of [-1, 1]) {
    const observedAt = new Date(Date.parse('2026-01-01T00:00:00Z') + hours * heartbeat).toISOString()
    const scene = new Scene('agent-1', earlier({ observedAt }))
    t.teardown(() => scene.reporter.close())
    await scene.pass(3 * heartbeat, minute)
    t.ok(scene.writes.length >= 2 && scene.writes.length <= 4, `${hours} h: ${scene.writes.length} writes in 3 hours`)
  }
})

await t.test(
  'a Node that was made anew reports once the garbage collector has taken the old report away',
  async (t) => {
    const left = answer(200, { metadata: { name: node, ownerReferences: [{ kind: 'Node', uid: 'old' }] } })
    const scene = new Scene('agent-1', left)
    t.teardown(() => scene.reporter.close())
    await scene.pass(minute)
    t.equal(scene.warnings.length, 1)
    scene.report = notFound
    await scene.pass(7 * minute)
    t.equal(scene.writes.length, 1)
    t.match(scene.writes[0]?.options, { apply: { force: false } })
  },
)
