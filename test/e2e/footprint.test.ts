/** The agent's costs on a node: memory, connections, and processor time when nothing happens and for a change. */
import t from 'tap'
import { measureAgent } from '../../bench/agent.js'
import { describeFootprint, idleProcessor, window } from '../../bench/footprint.js'
import { Cluster } from './cluster.js'

t.setTimeout(300_000)

const watched = 50
/** Of a change: two to three times what a quiet machine takes. */
const limits = { anonymous: 22, connections: 1, idleProcessor: window / 100, change: 90 }

const cluster = await Cluster.start()
t.teardown(() => cluster.stop())

await t.test(`an agent with ${watched} watched Secrets in ten directories keeps to its limits`, async (t) => {
  // It is processor time of this process: what else the machine does is not in it.
  const found = await measureAgent(t, cluster, { watched, windows: 5 })
  for (const line of describeFootprint(found)) t.comment(line)
  t.ok(found.anonymous <= limits.anonymous, 'anonymous memory')
  t.equal(found.connections, limits.connections, 'connections')
  t.equal(found.idle.length, 5)
  t.ok(idleProcessor(found) <= limits.idleProcessor, 'processor time when idle')
  t.ok(found.change <= limits.change, 'processor time of a change')
})
