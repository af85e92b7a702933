/** A selector over thousands of objects, against the real API server: what it takes that they are on the disk. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { inParallel } from '../../src/parallel.js'
import { Cluster } from './cluster.js'
import { readTree } from './disk.js'
import { Node } from './node.js'
import { until } from '../until.js'

const count = 2_000

for (const streaming of [true, false]) {
  await t.test(`${count} ConfigMaps of a selector, streaming lists ${streaming ? 'allowed' : 'refused'}`, async (t) => {
    const cluster = await Cluster.start(streaming ? [] : ['--feature-gates=WatchList=false'])
    t.teardown(() => cluster.stop())
    const namespace = await cluster.namespace()
    const names = Array.from({ length: count }, (_, index) => `web-${index}`)
    await inParallel(names, 16, async (name) => {
      const object = { metadata: { name, labels: { app: 'web' } }, data: { v: 'x'.repeat(1000) } }
      await cluster.api.admin.demand('POST', `/api/v1/namespaces/${namespace.name}/configmaps`, object)
    })
    const node = await Node.create(t, namespace, {
      allowed: { all: true },
      watch: 'namespaces',
      directories: [{ path: 'web', contents: [{ configMaps: { selector: 'app in (web)', into: '{name}' } }] }],
    })
    const { agent } = node
    const started = performance.now()
    agent.start()
    await until('all is on the disk', () => Object.keys(readTree(node.path('web')) ?? {}).length === count, {
      within: 200_000,
      every: 500,
    })
    const took = performance.now() - started
    await agent.ready()
    const gets = await agent.metric('holdfast_api_requests_total', { verb: 'get' })
    const all = await agent.metric('holdfast_api_requests_total')
    const peak = Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${agent.pid}/status`, 'utf8'))?.[1]) / 1024
    t.comment(
      `${Math.round(took)} ms, ${gets} reads by name of ${all} requests, at most ${peak.toFixed(1)} MiB resident`,
    )
    t.equal(gets, 0)
    t.ok(all <= 100, 'requests')
  })
}
