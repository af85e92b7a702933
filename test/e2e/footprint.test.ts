/** What the agent costs a node: memory, connections, and processor time when nothing happens and for a change. */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { median } from '../../bench/measure.js'
import { Cluster } from './cluster.js'
import { readTree } from './disk.js'
import { Node } from './node.js'
import { connections, memory, processorTime } from './process-figures.js'
import { until } from './until.js'

t.setTimeout(300_000)

const watched = 50
/** Of a change: two to three times what a quiet machine takes. */
const limits = { anonymousKibibytes: 22 * 1024, connections: 1, processorPart: 0.01, changeMilliseconds: 90 }
/** Milliseconds without a change. */
const idle = 20_000
/** Windows that are measured, always all of them; their median is the figure. */
const windows = 5
/** Changes that are measured, one after the other, each with all that follows from it. */
const changes = 10
const afterChange = 2_000

const cluster = await Cluster.start()
t.teardown(() => cluster.stop())

await t.test(`${watched} watched Secrets in ten directories`, async (t) => {
  const namespace = await cluster.namespace()
  const names = Array.from({ length: watched }, (_, index) => `secret-${index}`)
  const put = (name: string, version: string): Promise<unknown> =>
    namespace.putSecret(name, { version, 'tls.crt': 'c'.repeat(4000), 'tls.key': 'k'.repeat(1700) })
  await Promise.all(names.map((name) => put(name, '1')))
  const directory = (index: number): string => `directory-${Math.floor(index / 5)}`
  const node = await Node.start(t, namespace, {
    // As the image and the systemd unit set it.
    environment: { MALLOC_ARENA_MAX: '1' },
    allowed: { secrets: names },
    directories: Array.from({ length: watched / 5 }, (_, index) => ({
      path: directory(5 * index),
      contents: names.slice(5 * index, 5 * index + 5).map((secret) => ({ secret, into: secret })),
    })),
  })
  const { agent } = node
  await agent.ready()
  await Promise.all(names.map((name) => put(name, '2')))
  await until('all updates are on the disk', () =>
    names.every((name, index) => readTree(node.path(directory(index)))?.[`${name}/version`] === '2'),
  )

  // What came before has echoes in the first window or two (an event that is sent again, the sync of what was removed); the median of
  // five does not count them, and still sees whatever goes on all the time. It is processor time of this process: what else the
  // machine does is not in it.
  const used: number[] = []
  while (used.length < windows) {
    const before = processorTime(agent.pid)
    await sleep(idle)
    used.push(processorTime(agent.pid) - before)
  }
  const anonymous = memory(agent.pid, 'Anonymous')
  const mebibytes = (kibibytes: number): string => (kibibytes / 1024).toFixed(1)
  t.comment(`anonymous ${mebibytes(anonymous)} MiB, resident ${mebibytes(memory(agent.pid, 'Rss'))} MiB`)
  t.comment(`processor time: ${used.join(', ')} ms in windows of ${idle} ms`)
  t.ok(anonymous <= limits.anonymousKibibytes, 'anonymous memory')
  t.equal(connections(agent.pid, cluster.api.port), limits.connections, 'connections')
  t.equal(used.length, windows)
  t.ok(median(used) <= idle * limits.processorPart, 'processor time when idle')

  const before = processorTime(agent.pid)
  for (let change = 0; change < changes; change++) {
    const [name = ''] = names.slice(5 * change)
    await put(name, '3')
    await until(
      'the change is on the disk',
      () => readTree(node.path(directory(5 * change)))?.[`${name}/version`] === '3',
    )
    await sleep(afterChange)
  }
  const each = (processorTime(agent.pid) - before) / changes
  t.comment(
    `processor time: ${each.toFixed(0)} ms for a change, with its event, its status and the sync of what was removed`,
  )
  t.ok(each <= limits.changeMilliseconds, 'processor time of a change')
})
