/**
 * The agent's cost for a node, with its own control plane: memory, connections, and processor time at rest and for a change. It runs as
 * users run it, its Secrets in directories of five.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Cluster } from '../test/e2e/cluster.js'
import { readTree } from '../test/e2e/disk.js'
import { withOwner, type Owner } from '../test/e2e/guard.js'
import { Node } from '../test/e2e/node.js'
import { connections, memory, processorTime, wakeups } from '../test/e2e/process-figures.js'
import { until } from '../test/e2e/until.js'
import { buildControlPlane } from './control-plane.js'
import { window, type Footprint } from './footprint.js'

export interface FootprintOptions {
  /** Secrets that it keeps. */
  readonly watched: number
  /** Windows without a change. */
  readonly windows: number
}

/** Secrets of a directory. */
const together = 5
/** Changes that are measured, one after the other, each with all that follows from it. */
const changes = 10
const afterChange = 2_000
const patience = { within: 120_000 }

export async function measureAgent(
  owner: Owner,
  cluster: Cluster,
  { watched, windows }: FootprintOptions,
): Promise<Footprint> {
  const namespace = await cluster.namespace()
  const names = Array.from({ length: watched }, (_, index) => `secret-${index}`)
  const put = (name: string, version: string): Promise<unknown> =>
    namespace.putSecret(name, { version, 'tls.crt': 'c'.repeat(4000), 'tls.key': 'k'.repeat(1700) })
  const putAll = async (version: string): Promise<void> => {
    for (let at = 0; at < watched; at += 50) {
      await Promise.all(names.slice(at, at + 50).map((name) => put(name, version)))
    }
  }
  await putAll('1')
  const directory = (index: number): string => `directory-${Math.floor(index / together)}`
  const node = await Node.start(owner, namespace, {
    // As the image and the systemd unit set it.
    environment: { MALLOC_ARENA_MAX: '1' },
    allowed: { secrets: names },
    directories: Array.from({ length: watched / together }, (_, index) => ({
      path: directory(together * index),
      contents: names.slice(together * index, together * (index + 1)).map((secret) => ({ secret, into: secret })),
    })),
  })
  const { agent } = node
  const holds = (index: number, version: string): boolean =>
    readTree(node.path(directory(index)))?.[`secret-${index}/version`] === version
  await agent.ready()
  await putAll('2')
  await until('all updates are on the disk', () => names.every((_, index) => holds(index, '2')), patience)

  // Earlier work has echoes in the first window or two (a repeated event, the sync of a removal); the median of all leaves them out, and
  // still sees constant work.
  const idle: { processor: number; wakeups: number }[] = []
  while (idle.length < windows) {
    const before = { processor: processorTime(agent.pid), wakeups: wakeups(agent.pid) }
    await sleep(window)
    idle.push({
      processor: processorTime(agent.pid) - before.processor,
      wakeups: wakeups(agent.pid) - before.wakeups,
    })
  }
  const rest = {
    anonymous: memory(agent.pid, 'Anonymous') / 1024,
    resident: memory(agent.pid, 'Rss') / 1024,
    connections: connections(agent.pid, cluster.api.port),
    idle,
  }

  const before = processorTime(agent.pid)
  for (let change = 0; change < changes; change++) {
    const index = together * change
    await put(`secret-${index}`, '3')
    await until('the change is on the disk', () => holds(index, '3'), patience)
    await sleep(afterChange)
  }
  return { watched, ...rest, change: (processorTime(agent.pid) - before) / changes }
}

/** One agent after the other, on one control plane. @throws Error with why there is none, or what failed */
export async function measureAgents(all: readonly FootprintOptions[]): Promise<Footprint[]> {
  buildControlPlane()
  const cluster = await Cluster.start()
  try {
    const found: Footprint[] = []
    for (const options of all) found.push(await withOwner((owner) => measureAgent(owner, cluster, options)))
    return found
  } finally {
    await cluster.stop()
  }
}
