/** Events that come slowly: what moves is waited for, and what stops halfway is not. */
import { writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { Agent } from '../../../src/agent/agent.js'
import { noMetrics } from '../../../src/agent/report/report-metrics.js'
import { loadConfiguration } from '../../../src/config/parse.js'
import { sleep } from '../../../src/deadline.js'
import { silent } from '../../../src/log.js'
import { KubernetesSource } from '../../../src/objects/kubernetes/source.js'
import { scratch } from '../../cli/holdfast.js'
import { connectTo } from '../../kubernetes/connection/connected.js'
import { SimulatedTime } from '../../simulated-time.js'
import type { Reply } from '../../kubernetes/connection/api-server.js'
import { contentOf, reference } from '../recorder.js'
import { ModelCluster } from './model-cluster.js'
import { startWatching } from './watching.js'

const cert = reference('serving-cert')

const large = (version: number, content: string): string => {
  const metadata = { name: 'serving-cert', namespace: 'kube-system', uid: 'uid-1', resourceVersion: String(version) }
  const data = { a: Buffer.from(content).toString('base64'), b: Buffer.alloc(60_000, 'b').toString('base64') }
  return `${JSON.stringify({ type: version === 1001 ? 'ADDED' : 'MODIFIED', object: { metadata, data } })}\n`
}

const end = `${JSON.stringify({
  type: 'BOOKMARK',
  object: { metadata: { resourceVersion: '1001', annotations: { 'k8s.io/initial-events-end': 'true' } } },
})}\n`

async function writeIn(reply: Reply, text: string, pieces: number, interval: number): Promise<void> {
  const size = Math.ceil(text.length / pieces)
  for (let at = 0; at < text.length; at += size) {
    ;(reply as ServerResponse).write(text.slice(at, at + size))
    await sleep(interval)
  }
}

function open(reply: Reply): Reply {
  ;(reply as ServerResponse).writeHead(200, { 'content-type': 'application/json' })
  ;(reply as ServerResponse).flushHeaders()
  return reply
}

await t.test('initial events, and an event long after them, take longer than any limit', async (t) => {
  const time = new SimulatedTime(t)
  const limits = { initialEventsTimeout: 500, requestTimeout: 500 }
  let stream: Reply | undefined
  const { cluster, recorder, source } = await startWatching(t, limits, (c) => {
    c.intercept = ({ verb }, reply) => {
      if (verb !== 'watch') return false
      stream = open(reply)
      void writeIn(reply, large(1001, 'one') + end, 20, 100)
      return true
    }
  })
  source.follow([{ reference: cert }])
  await time.during(recorder.untilState(cert, 'present', 'one'))
  // So long that what comes is little in all of the time.
  await time.advance(300_000)
  if (stream) await time.during(writeIn(stream, large(1002, 'two'), 20, 100))
  await recorder.untilState(cert, 'present', 'two')
  t.strictSame(recorder.restarts, [])
  t.equal(cluster.requests.length, 1, 'what was received is kept')
})

await t.test('an event that stops halfway loses the watch, and the log says so', async (t) => {
  const time = new SimulatedTime(t)
  let watches = 0
  const { cluster, recorder, source, logged } = await startWatching(t, { requestTimeout: 1_000 }, (c) => {
    c.put('serving-cert', 'one')
    c.intercept = ({ verb }, reply) => {
      if (verb !== 'watch' || watches++ > 0) return false
      open(reply)
      void writeIn(reply, large(1001, 'one') + end, 1, 0).then(() =>
        writeIn(reply, large(1002, 'two').slice(0, 9), 9, 400),
      )
      return true
    }
  })
  source.follow([{ reference: cert }])
  await time.until('given up', () => recorder.restarts.length > 0, 100)
  t.equal(recorder.restarts[0], 'silence')
  t.match(logged.join('\n'), /an event of the watch stopped halfway: too little came within 1 s/)
  await time.until('begun again', () => cluster.requests.length >= 2 && cluster.watching === 1, 20)
  t.equal(contentOf(source.latest(cert)), 'one')
})

await t.test('one byte each ten seconds makes a directory not fresh within three minutes', async (t) => {
  const root = scratch(t)
  const file = join(root, 'holdfast.yaml')
  const directories = [{ path: 'certs', contents: [{ secret: cert.name }] }]
  const source = { namespace: cert.namespace, kubernetes: {} }
  const document = { apiVersion: 'holdfast.dev/v1alpha1', kind: 'AgentConfiguration', stateDirectory: 'state' }
  writeFileSync(file, JSON.stringify({ ...document, source, directories }))
  const cluster = new ModelCluster()
  const watches: Reply[] = []
  cluster.intercept = ({ verb }, reply) => {
    if (verb !== 'watch') return false
    watches.push(open(reply))
    ;(reply as ServerResponse).write(large(1001, 'one') + end)
    return true
  }
  await cluster.start()
  t.teardown(() => cluster.stop())
  const client = await connectTo(t, cluster.url)
  const time = new SimulatedTime(t)
  const agent = new Agent(await loadConfiguration(file), {
    log: silent,
    metrics: noMetrics,
    openSource: (_, listener) => Promise.resolve(new KubernetesSource(client, listener, { log: silent })),
    node: 'node',
    version: '1.2.3',
    identity: () => 'agent',
    moved: () => undefined,
    changed: () => undefined,
  })
  // What it waits for until then goes by the time of the test.
  t.teardown(() => time.during(agent.stop()))
  await agent.start()
  const fresh = () => [...agent.states][0]?.facts.fresh
  await time.until('fresh', () => fresh()?.status === 'True', 100)
  // The running watch and each later answer.
  const trickling: NodeJS.Timeout[] = []
  t.teardown(() => trickling.forEach(clearInterval))
  const trickle = (reply: Reply): void => {
    const response = reply as ServerResponse
    response.write('{')
    trickling.push(setInterval(() => response.write(' '), 10_000))
  }
  const [running] = watches
  if (running === undefined) throw new Error('no watch runs')
  cluster.intercept = (_, reply) => {
    trickle(open(reply))
    return true
  }
  trickle(running)
  const started = performance.now()
  await time.until('not fresh', () => fresh()?.status === 'False', 1_000, 180_000)
  t.comment(`${Math.round(performance.now() - started)} ms: ${fresh()?.message ?? ''}`)
  t.match(fresh(), { reason: 'SourceUnavailable' })
  const isNamed = () =>
    /the answer stopped after \d+ bytes: too little came within 15000 ms$/.test(fresh()?.message ?? '')
  await time.until('the cause', isNamed, 1_000, 180_000 - (performance.now() - started))
  t.equal(fresh()?.status, 'False')
  t.comment(`${Math.round(performance.now() - started)} ms: ${fresh()?.message ?? ''}`)
})
