/** One pass over several directories of a batch, on a real disk. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { DirectoryState } from '../../src/agent/directory-state.js'
import { reconcile } from '../../src/agent/reconcile.js'
import { noEvents, openEvents } from '../../src/agent/agent-events.js'
import { noMetrics } from '../../src/agent/report-metrics.js'
import { silent } from '../../src/log.js'
import type { ObjectReference } from '../../src/objects/types.js'
import { directoryOf, present, secret, whole } from '../directories/objects.js'
import { json } from '../objects/kubernetes/api-server.js'
import { start } from '../objects/kubernetes/connected.js'
import { until } from '../until.js'

function directory(t: Test): string {
  const root = mkdtempSync(join(tmpdir(), 'holdfast-reconcile-'))
  t.teardown(() => rmSync(root, { recursive: true, force: true }))
  return root
}

await t.test('a fault of one directory does not keep the others of the batch from being reported', async (t) => {
  const root = directory(t)
  const states = ['one', 'two'].map(
    (name) => new DirectoryState(directoryOf([whole(secret(name))], { path: join(root, name) })),
  )
  const [one, two] = states
  const latest = ({ name }: ObjectReference) => present(secret(name), { key: name })[1]
  const reported: string[] = []
  const batch = new Map(['one', 'two'].map((name) => [name, { causes: [name], since: 0 }]))
  const results = await reconcile(batch, {
    log: silent,
    metrics: noMetrics,
    events: noEvents,
    signal: new AbortController().signal,
    lockTimeout: 0,
    requireProven: () => false,
    source: { latest, published() {} },
    state: (operation) => (operation === 'one' ? one : two),
    applied: ({ path }) => {
      if (path.endsWith('one')) throw new Error('EIO')
      reported.push(path)
    },
  })
  t.strictSame(
    [...results],
    [
      ['one', 'retry'],
      ['two', 'done'],
    ],
  )
  t.strictSame(reported, [join(root, 'two')])
  t.equal(two?.intact, true)
})

await t.test('a publication reaches the API server as events, without a cluster', async (t) => {
  const { api, running } = await start(t, { handler: (_, reply) => json(reply, 201, {}) })
  const path = join(directory(t), 'target')
  const state = new DirectoryState(directoryOf([whole(secret('web'))], { path }))
  const canary = 'CANARY-41d7'
  const source = {
    latest: ({ name }: ObjectReference) => present(secret(name), { key: canary })[1],
    api,
    ...{ follow() {}, published() {}, clientCertificateNotAfter: () => undefined, close: () => Promise.resolve() },
  }
  const events = await openEvents(source, { log: silent, node: 'n1' })
  const results = await reconcile(new Map([['publish', { causes: ['start'], since: performance.now() }]]), {
    ...{ log: silent, metrics: noMetrics, events, source, lockTimeout: 0 },
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
      note: /^\/.*\/target is created, whole /,
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
