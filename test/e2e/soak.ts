/**
 * `npm run soak`: five agents on one namespace for ten minutes (HOLDFAST_SOAK_SECONDS), with all faults mixed: one agent is killed, one is at
 * a slow link, one has its directories on a disk that hangs now and then. Now and then the faults pause: then every directory must equal
 * what the API has, and all agents hold the same. Between those points, of the second half of the run, the memory and the descriptors of
 * the agents that were not killed must not grow; and of pairs that are written in one moment, no publication holds one half. The faults are
 * drawn from a seed. Without root there is no slow link and no disk that hangs.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { limitDescriptors, openDescriptors } from '../descriptors.js'
import { FrozenDisks, frozenThreads, missingForFreezing } from '../disk/frozen-disks.js'
import { Random } from '../random.js'
import { replay, seed } from '../seed.js'
import { Cluster } from './cluster.js'
import { leftovers, readPublished, readTree } from './disk.js'
import { Gate } from './gate.js'
import { workingDirectory } from './guard.js'
import { Node, type NodeOptions } from './node.js'
import { isMixed, PairWriter } from './pairs.js'
import { SlowLink } from './slow-link.js'
import { until } from '../until.js'

const seconds = Number(process.env['HOLDFAST_SOAK_SECONDS'] ?? 600)
/** Milliseconds between two faults. */
const pace = 3_000
/** Pauses in the run; the first half is for memory to come to its plateau. */
const pauses = seconds < 300 ? 4 : 8
/** MiB of anonymous memory, and descriptors, that an agent may have more of in the last pauses than in those after the first half. */
const growth = { memory: 4, descriptors: 8 }
/** Milliseconds for what must come true, however little processor time this run gets. */
const patience = { within: 600_000, every: 500 }

// Each wait has its limit.
t.setTimeout(0)

const random = new Random(seed)

/** Kilobits a second: of a link that nobody notices, and of slow ones. */
const rates = { usual: 200_000, slow: [64, 256, 1_024] }
/** Pairs that are written one after the other. */
const pairsInRow = 5

/** Directories of small Secrets, and one whose content is above what an agent keeps in memory. */
const small = Array.from({ length: 4 }, (_, directory) =>
  Array.from({ length: 6 }, (_, index) => `s-${directory}-${index}`),
)
const large = Array.from({ length: 20 }, (_, index) => `large-${index}`)
/** A key and its trust, in a directory of their own. */
const pairs = Array.from({ length: 2 }, (_, index) => [`pair-${index}-key`, `pair-${index}-trust`] as const)
const groups: readonly (readonly string[])[] = [...small, ...pairs, large]
const names = groups.flat()
const directories = groups.map((secrets, index) => ({
  path: `d${index}`,
  onMissing: 'remove',
  contents: secrets.map((secret) => ({ secret, into: secret, optional: true })),
}))

/** The directories of an account's agent: a disk that hangs is too small for the last one. */
const keptBy = (account: string) => (account === 'hanging' ? directories.slice(0, -1) : directories)

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
  const missing = await missingForFreezing()
  if (missing.length > 0) t.comment(`without ${missing.join(', ')}: no slow link, and no disk that hangs`)
  const edge = missing.length === 0 ? { slow: all, hanging: all } : {}
  const allowed = { killed: all, objects: all, namespaces: { all: true }, ...edge } as const
  const link = 'slow' in edge ? await SlowLink.open(t, gate.port, { rate: rates.usual }) : undefined
  const hanging = join(workingDirectory, 'hanging')
  const disks = 'hanging' in edge ? await FrozenDisks.create([hanging]) : undefined
  t.teardown(() => disks?.destroy())
  const more: Readonly<Record<string, Partial<NodeOptions>>> = {
    namespaces: { watch: 'namespaces' },
    ...(link && { slow: { prefix: link.prefix } }),
    ...(disks && {
      hanging: {
        prefix: disks.entering,
        disk: { path: hanging, seen: (path) => disks.seen(path) },
      },
    }),
  }
  const nodes = new Map<string, Node>()
  for (const [account, rights] of Object.entries(allowed)) {
    await namespace.createAccount(account, rights)
    const cluster = { 'tls-server-name': 'localhost' }
    const way = account === 'slow' && link ? { server: link.url, cluster } : { server: gate.url }
    const kubeconfig = namespace.kubeconfig({ token: await namespace.token(account) }, way)
    const node = await Node.start(t, namespace, {
      allowed: {},
      directories: keptBy(account),
      kubeconfig,
      ...more[account],
    })
    nodes.set(account, node)
    for (const { path } of keptBy(account))
      await node.agent.condition(node.path(path), 'Fresh', 'True', undefined, patience)
  }
  const writer = new PairWriter(t, namespace, random)
  const found = { pairs: 0, mixed: 0 }
  const killed = nodes.get('killed')
  const steady = [...nodes].filter(([account]) => account !== 'killed')
  const snapshot = { file: await cluster.snapshotEtcd() }
  const counts: Record<string, number> = {}

  const update = async (): Promise<void> => {
    for (let left = 1 + random.below(4); left > 0; left--) await put(random.pick(names))
  }
  const faults: Readonly<Record<string, () => Promise<unknown> | undefined>> = {
    update,
    'update again': update,
    delete: () =>
      cluster.api.admin.call('DELETE', `/api/v1/namespaces/${namespace.name}/secrets/${random.pick(names)}`),
    'API server killed': async () => {
      await cluster.api.kill()
      await sleep(random.below(8_000))
      await cluster.api.start()
    },
    'etcd restored': async () => {
      await cluster.restoreEtcd(snapshot.file)
      if (random.below(2) === 0) snapshot.file = await cluster.snapshotEtcd()
    },
    'network cut': async () => {
      gate.shut()
      await sleep(random.below(6_000))
      gate.open()
    },
    'rights revoked': async () => {
      const [account, rights] = random.pick(Object.entries(allowed))
      await namespace.allow(account, {})
      await sleep(random.below(8_000))
      await namespace.allow(account, rights)
    },
    pairs: async () => {
      const index = small.length + random.below(pairs.length)
      const { path } = directories[index] ?? { path: '' }
      const [key = '', trust = ''] = groups[index] ?? []
      // The first one proves that each agent watches, whatever fault came before.
      for (let left = pairsInRow; left >= 0; left--) {
        const text = `${++version} `
        const before = new Map([...nodes].map(([account, { agent }]) => [account, agent.logged('Published').length]))
        const isThere = ([, node]: [string, Node]) =>
          [key, trust].every((name) => readPublished(node.seen(path), `${name}/data`) === text)
        const published = () => until(`pair ${text}`, () => [...nodes].every(isThere), { ...patience, every: 50 })
        const pair = await writer.write([key, trust], { data: text }, published)
        if (pair === undefined || left === pairsInRow) continue
        found.pairs++
        for (const [account, node] of nodes) {
          const lines = node.agent.logged('Published').slice(before.get(account))
          found.mixed += lines.filter((line) => line['directory'] === node.path(path) && isMixed(line, pair)).length
        }
      }
    },
    ...(link && {
      'slow link': async () => {
        link.slow(random.pick(rates.slow))
        await update()
        await sleep(5_000 + random.below(15_000))
        link.slow(rates.usual)
      },
    }),
    ...(disks && {
      'disk hangs': async () => {
        const { agent } = nodes.get('hanging') ?? {}
        if (agent === undefined) return
        await disks.freeze(hanging)
        try {
          await put(random.pick(random.pick(small)))
          await until('its agent waits for the disk', () => frozenThreads(agent.pid) > 0, patience)
          t.equal((await agent.get('/livez')).status, 200, 'an agent whose disk hangs is alive')
          await sleep(random.below(10_000))
        } finally {
          await disks.thaw(hanging)
        }
      },
    }),
    drift: async () => {
      const node = random.pick([...nodes.values()])
      const target = node.seen(random.pick(directories).path)
      const [file] = Object.keys(readTree(target) ?? {})
      if (random.below(4) === 0) rmSync(target, { recursive: true, force: true })
      else if (file !== undefined && existsSync(join(target, file))) writeFileSync(join(target, file), 'drift')
      process.kill(node.agent.pid, 'SIGHUP')
      await sleep(0)
    },
    'descriptors used up': async () => {
      const [, { agent }] = random.pick(steady)
      limitDescriptors(agent.pid, random.below(40))
      await update()
      process.kill(agent.pid, 'SIGHUP')
      await sleep(random.below(6_000))
      limitDescriptors(agent.pid, 'as before')
    },
    'agent killed': async () => {
      await killed?.agent.kill()
      await sleep(random.below(2_000))
      killed?.agent.start()
    },
  }

  const figures = new Map(steady.map(([account]) => [account, [] as Figures[]]))
  const most = new Map<string, number>()
  const sampling = setInterval(() => {
    for (const [account, { agent }] of steady) {
      most.set(account, Math.max(most.get(account) ?? 0, anonymous(agent.pid)))
    }
  }, 1_000)
  t.teardown(() => clearInterval(sampling))

  /** Every directory equals the API, with every object there. */
  const pause = async (): Promise<void> => {
    const had = await current(cluster, namespace.name)
    for (const name of names) if (!had.has(name)) await put(name)
    // As much content as makes each agent collect its garbage, after any earlier load.
    for (const name of large.slice(0, 4)) await put(name)
    for (const node of nodes.values()) process.kill(node.agent.pid, 'SIGHUP')
    const wanted = await current(cluster, namespace.name)
    t.equal(wanted.size, names.length)
    for (const [account, node] of nodes) {
      for (const { path, contents } of keptBy(account)) {
        const target = node.seen(path)
        const expected = contents.map(({ secret }) => [`${secret}/data`, wanted.get(secret)] as const)
        const isEqual = (): boolean => {
          const found = readTree(target) ?? {}
          return Object.keys(found).length === expected.length && expected.every(([path, text]) => found[path] === text)
        }
        await until(`${account}: ${target} equals the API`, isEqual, patience)
      }
    }
    await settle(steady, figures)
  }

  for (let index = 1; index <= pauses; index++) {
    const started = performance.now()
    while (performance.now() - started < (seconds * 1000) / pauses) {
      const [name, fault] = random.pick(Object.entries(faults))
      counts[name] = (counts[name] ?? 0) + 1
      await fault()
      await sleep(random.below(2 * pace))
    }
    const paused = performance.now()
    await pause()
    t.pass(`pause ${index}: every directory equals the API after ${Math.round((performance.now() - paused) / 1000)} s`)
  }
  clearInterval(sampling)
  t.comment(`faults: ${JSON.stringify(counts)}`)
  t.comment(`${found.mixed} mixed publications of ${found.pairs} pairs that were written in one moment`)
  t.ok(found.pairs > 0, 'pairs were written in one moment')
  t.equal(found.mixed, 0, 'no publication holds one half of a pair')
  for (const [account, node] of nodes) {
    for (const { path } of keptBy(account)) {
      await until(`${account}: nothing is left over`, () => leftovers(node.seen(path)).length === 0, patience)
      await node.agent.condition(node.path(path), 'Fresh', 'True', undefined, patience)
    }
    t.pass(`${account}: every directory is fresh, and nothing is left over`)
  }
  for (const [account, found] of figures) {
    const quarter = Math.ceil(pauses / 4)
    const half = found.slice(pauses / 2 - 1, pauses / 2 - 1 + quarter)
    for (const figure of ['memory', 'descriptors'] as const) {
      const all = found.map((each) => each[figure].toFixed(figure === 'memory' ? 1 : 0)).join(', ')
      t.comment(`${account}: ${figure} in the pauses: ${all}`)
      const [early, late] = [half, found.slice(-quarter)].map((part) => Math.min(...part.map((each) => each[figure])))
      t.ok((late ?? NaN) - (early ?? NaN) <= growth[figure], `${account}: ${figure} is flat: ${early} and ${late}`)
    }
    t.comment(`${account}: at most ${most.get(account)?.toFixed(1)} MiB`)
  }
})

interface Figures {
  /** Mebibytes. */
  readonly memory: number
  readonly descriptors: number
}

/** Adds the least that each agent has while nothing happens. */
async function settle(steady: readonly (readonly [string, Node])[], figures: Map<string, Figures[]>): Promise<void> {
  const least = new Map<string, Figures>()
  for (let second = 0; second < 5; second++) {
    await sleep(1_000)
    for (const [account, { agent }] of steady) {
      const { memory = Infinity, descriptors = Infinity } = least.get(account) ?? {}
      least.set(account, {
        memory: Math.min(memory, anonymous(agent.pid)),
        descriptors: Math.min(descriptors, openDescriptors(agent.pid)),
      })
    }
  }
  for (const [account, one] of least) figures.get(account)?.push(one)
}

/** The API's Secrets, by name. */
async function current(cluster: Cluster, namespace: string): Promise<Map<string, string>> {
  const answer = await cluster.api.admin.demand('GET', `/api/v1/namespaces/${namespace}/secrets`)
  const { items } = answer as unknown as { items: { metadata: { name: string }; data?: { data: string } }[] }
  return new Map(items.map(({ metadata, data }) => [metadata.name, Buffer.from(data?.data ?? '', 'base64').toString()]))
}

/** Mebibytes. */
function anonymous(pid: number): number {
  return Number(/^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
}
