/**
 * `npm run soak`: three agents on one namespace for ten minutes (HOLDFAST_SOAK_SECONDS), with all faults mixed. In the end every directory
 * must equal what the API has, and the memory of the agents that were not killed must be flat. The faults are drawn from a seed.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { median } from '../../bench/measure.js'
import { randomFrom, replay, seed } from '../seed.js'
import { Cluster } from './cluster.js'
import { leftovers, readTree } from './disk.js'
import { Gate } from './gate.js'
import { Node } from './node.js'
import { until } from './until.js'

const seconds = Number(process.env['HOLDFAST_SOAK_SECONDS'] ?? 600)
/** Milliseconds between two faults. */
const pace = 3_000
/** MiB that an agent's anonymous memory may grow by, from the second fifth of the run to its last. */
const growth = 8

t.setTimeout((seconds + 900) * 1000)

const random = randomFrom(seed)
const below = (limit: number): number => Math.floor(random() * limit)
const one = <T>(values: readonly T[]): T => values[below(values.length)] as T

/** Directories of small Secrets, and one whose content is above what an agent keeps in memory. */
const small = Array.from({ length: 4 }, (_, directory) =>
  Array.from({ length: 6 }, (_, index) => `s-${directory}-${index}`),
)
const large = Array.from({ length: 20 }, (_, index) => `large-${index}`)
const groups = [...small, large]
const names = groups.flat()
const directories = groups.map((secrets, index) => ({
  path: `d${index}`,
  onMissing: 'remove',
  contents: secrets.map((secret) => ({ secret, into: secret, optional: true })),
}))

await t.test(`${seconds} s of faults (${replay})`, async (t) => {
  const cluster = await Cluster.start()
  t.teardown(() => cluster.stop())
  const namespace = await cluster.namespace()
  let version = 0
  const put = (name: string): Promise<unknown> => {
    const text = `${++version} `
    return namespace.putSecret(name, { data: name.startsWith('large') ? text.repeat(1_000_000 / text.length) : text })
  }
  for (const name of names) await put(name)

  const gate = await Gate.before(t, cluster.api.port)
  const all = { secrets: names }
  const allowed = { killed: all, objects: all, namespaces: { all: true } } as const
  const nodes = new Map<string, Node>()
  for (const [account, rights] of Object.entries(allowed)) {
    await namespace.createAccount(account, rights)
    const kubeconfig = namespace.kubeconfig({ token: await namespace.token(account) }, { server: gate.url })
    const watch = account === 'namespaces' ? ({ watch: account } as const) : {}
    const node = await Node.start(t, namespace, { allowed: {}, directories, kubeconfig, ...watch })
    nodes.set(account, node)
    await node.agent.ready()
  }
  const killed = nodes.get('killed')
  const steady = [...nodes].filter(([account]) => account !== 'killed')
  const snapshot = { file: await cluster.snapshotEtcd() }
  const counts: Record<string, number> = {}

  const update = async (): Promise<void> => {
    for (let left = 1 + below(4); left > 0; left--) await put(one(names))
  }
  const faults: Readonly<Record<string, () => Promise<unknown> | undefined>> = {
    update,
    'update again': update,
    delete: () => cluster.api.admin.call('DELETE', `/api/v1/namespaces/${namespace.name}/secrets/${one(names)}`),
    'API server killed': async () => {
      await cluster.api.kill()
      await sleep(below(8_000))
      await cluster.api.start()
    },
    'etcd restored': async () => {
      await cluster.restoreEtcd(snapshot.file)
      if (below(2) === 0) snapshot.file = await cluster.snapshotEtcd()
    },
    'network cut': async () => {
      gate.shut()
      await sleep(below(6_000))
      gate.open()
    },
    'rights revoked': async () => {
      const [account, rights] = one(Object.entries(allowed))
      await namespace.allow(account, {})
      await sleep(below(8_000))
      await namespace.allow(account, rights)
    },
    drift: async () => {
      const node = one([...nodes.values()])
      const target = node.path(one(directories).path)
      const [file] = Object.keys(readTree(target) ?? {})
      if (below(4) === 0) rmSync(target, { recursive: true, force: true })
      else if (file !== undefined && existsSync(join(target, file))) writeFileSync(join(target, file), 'drift')
      process.kill(node.agent.pid, 'SIGHUP')
      await sleep(0)
    },
    'agent killed': async () => {
      await killed?.agent.kill()
      await sleep(below(2_000))
      killed?.agent.start()
    },
  }

  const memory = new Map(steady.map(([account]) => [account, [] as number[]]))
  const sample = (): void => {
    for (const [account, { agent }] of steady) memory.get(account)?.push(anonymous(agent.pid))
  }
  const sampling = setInterval(sample, 1_000)
  t.teardown(() => clearInterval(sampling))
  const end = performance.now() + seconds * 1000
  while (performance.now() < end) {
    const [name, fault] = one(Object.entries(faults))
    counts[name] = (counts[name] ?? 0) + 1
    await fault()
    await sleep(below(2 * pace))
  }
  clearInterval(sampling)
  t.comment(`faults: ${JSON.stringify(counts)}`)

  for (const node of nodes.values()) process.kill(node.agent.pid, 'SIGHUP')
  const wanted = await current(cluster, namespace.name)
  for (const [account, node] of nodes) {
    for (const [index, secrets] of groups.entries()) {
      const target = node.path(directories[index]?.path ?? '')
      const expected = Object.fromEntries(
        secrets.flatMap((name) => (wanted.has(name) ? [[`${name}/data`, wanted.get(name)]] : [])),
      )
      const isEqual = (): boolean => {
        const found = readTree(target) ?? {}
        const paths = Object.keys(expected)
        return Object.keys(found).length === paths.length && paths.every((path) => found[path] === expected[path])
      }
      await until(`${account}: ${target} equals the API`, isEqual, { within: 150_000, every: 500 })
      await until(`${account}: nothing is left over`, () => leftovers(target).length === 0, { within: 60_000 })
      await node.agent.condition(target, 'Fresh', 'True')
    }
    t.pass(`${account}: every directory equals the API`)
  }
  for (const [account, samples] of memory) {
    const fifth = Math.floor(samples.length / 5)
    const [early, late] = [median(samples.slice(fifth, 2 * fifth)), median(samples.slice(-fifth))]
    t.comment(`${account}: ${early.toFixed(1)} MiB in the second fifth, ${late.toFixed(1)} in the last`)
    t.comment(`${account}: at most ${Math.max(...samples).toFixed(1)} MiB`)
    t.ok(late - early <= growth, `${account}: memory is flat`)
    t.ok(samples.length > seconds / 2)
  }
})

/** What the API has, by name. */
async function current(cluster: Cluster, namespace: string): Promise<Map<string, string>> {
  const answer = await cluster.api.admin.demand('GET', `/api/v1/namespaces/${namespace}/secrets`)
  const { items } = answer as unknown as { items: { metadata: { name: string }; data?: { data: string } }[] }
  return new Map(items.map(({ metadata, data }) => [metadata.name, Buffer.from(data?.data ?? '', 'base64').toString()]))
}

/** Mebibytes. */
function anonymous(pid: number): number {
  return Number(/^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
}
