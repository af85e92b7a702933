/** The agent's costs on a node: memory, connections, and processor time when nothing happens and for a change. */
import t from 'tap'
import { measureAgent, measureBusyAgent } from '../../bench/agent.js'
import { describeFootprint, idleProcessor, window } from '../../bench/footprint.js'
import { busyness } from '../until.js'
import { Cluster } from './cluster.js'

const watched = 50
/** Mebibytes of anonymous memory while Secrets change, and afterwards. */
const busyLimits = { peak: 45, rest: 30 }
/** Of a change: two to three times what a quiet machine takes. */
const limits = { anonymous: 22, connections: 1, idleProcessor: window / 100, change: 90 }

const cluster = await Cluster.start()
t.teardown(() => cluster.stop())

t.jobs = 2

// Beside each other: each looks at the processor time and memory of its own agent, whatever else the machine does.
const busy = t.test('an agent of 30 directories keeps to its memory while ten Secrets a second change', async (t) => {
  const { peak, rest } = await measureBusyAgent(t, cluster)
  t.comment(`at most ${peak.toFixed(1)} MiB, and ${rest.toFixed(1)} at rest`)
  t.ok(peak <= busyLimits.peak, 'at most')
  t.ok(rest <= busyLimits.rest, 'at rest')
})

const idle = t.test(`an agent with ${watched} watched Secrets in ten directories keeps to its limits`, async (t) => {
  const found = await measureAgent(t, cluster, { watched, windows: 5 })
  for (const line of describeFootprint(found)) t.comment(line)
  t.ok(found.anonymous <= limits.anonymous, 'anonymous memory')
  t.equal(found.connections, limits.connections, 'connections')
  t.equal(found.idle.length, 5)
  t.ok(idleProcessor(found) <= limits.idleProcessor, 'processor time when idle')
  // Two threads of one core that are both busy take up to twice the processor time.
  t.ok(found.change <= limits.change * Math.min(2, busyness()), 'processor time of a change')
})

await Promise.all([busy, idle])
