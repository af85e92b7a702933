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
import { until } from '../test/until.js'
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

/** Directories of one small Secret each, and how often one of them changes. */
const busy = { directories: 30, updatesInSecond: 10, seconds: 30 }
/** Milliseconds from the last change until what it has left in memory is collected. */
const untilRest = 20_000

/** Mebibytes of anonymous memory of an agent while one small Secret after the other changes, at most, and once it is at rest again. */
export async function measureBusyAgent(owner: Owner, cluster: Cluster): Promise<{ peak: number; rest: number }> {
  const namespace = await cluster.namespace()
  const names = Array.from({ length: busy.directories }, (_, index) => `busy-${index}`)
  const put = (index: number, version: string): Promise<unknown> =>
    namespace.putSecret(names[index % names.length] ?? '', { version, 'tls.crt': 'c'.repeat(4000) })
  await Promise.all(names.map((_, index) => put(index, 'first')))
  const node = await Node.start(owner, namespace, {
    environment: { MALLOC_ARENA_MAX: '1' },
    allowed: { secrets: names },
    directories: names.map((secret) => ({ path: secret, contents: [{ secret }] })),
  })
  const { agent } = node
  await agent.ready()
  let peak = 0
  const look = (): void => void (peak = Math.max(peak, memory(agent.pid, 'Anonymous') / 1024))
  const sampling = setInterval(look, 50)
  try {
    const began = performance.now()
    const updates = busy.updatesInSecond * busy.seconds
    const sent: Promise<unknown>[] = []
    for (let update = 0; update < updates; update++) {
      await sleep(Math.max(0, began + (1000 * update) / busy.updatesInSecond - performance.now()))
      sent.push(put(update, `${update}`))
    }
    await Promise.all(sent)
    const last = names.map((_, index) => `${updates - names.length + index}`)
    const holds = (version: string, index: number): boolean =>
      readTree(node.path(names[index] ?? ''))?.['version'] === version
    await until('the last updates are on the disk', () => last.every(holds), patience)
    await sleep(untilRest)
    return { peak, rest: memory(agent.pid, 'Anonymous') / 1024 }
  } finally {
    clearInterval(sampling)
  }
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
