/** What a node at a slow link sees, beside curl: the same content in about the same time, for about the same bytes. */
import t, { type Test } from 'tap'
import { Cluster } from './cluster.js'
import { readTree } from './disk.js'
import type { Namespace } from './namespace.js'
import { Node } from './node.js'
import { SlowLink, type LinkOptions } from './slow-link.js'
import { until } from '../until.js'

const needsRoot = process.getuid?.() === 0 ? false : 'needs root: network namespaces'
const atMost = { time: 1.5, bytes: 1.3 }

const cluster = await Cluster.start()
t.teardown(() => cluster.stop())

/** Starts an agent at the slow end, and compares it with a GET of the same by curl. */
async function compare(
  t: Test,
  namespace: Namespace,
  options: LinkOptions,
  names: readonly string[],
  path: string,
): Promise<void> {
  const link = await SlowLink.open(t, cluster.api.port, options)
  const curl = await link.curl(`/api/v1/namespaces/${namespace.name}/${path}`, cluster.api.adminPair)
  await namespace.createAccount('agent', { secrets: names })
  const user = { token: await namespace.token('agent') }
  const node = await Node.create(t, namespace, {
    allowed: {},
    kubeconfig: namespace.kubeconfig(user, { server: link.url, cluster: { 'tls-server-name': 'localhost' } }),
    prefix: link.prefix,
    directories: [{ path: 'all', contents: names.map((secret) => ({ secret, into: secret })) }],
  })
  const before = link.bytes
  const started = performance.now()
  node.agent.start()
  await until('all is on the disk', () => Object.keys(readTree(node.path('all')) ?? {}).length === names.length, {
    within: 4 * curl.took + 30_000,
    every: 200,
  })
  const took = performance.now() - started
  const bytes = link.bytes - before
  const figures = `curl ${Math.round(curl.took)} ms, ${curl.bytes} bytes; the agent ${Math.round(took)} ms, ${bytes} bytes`
  t.comment(`${JSON.stringify(options)}: ${figures}`)
  t.ok(took <= atMost.time * curl.took, 'time')
  t.ok(bytes <= atMost.bytes * curl.bytes, 'bytes')
  t.strictSame(
    node.agent.log().filter(({ level, restart }) => level === 'warn' && restart !== undefined),
    [],
    'no watch was lost',
  )
  await node.agent.kill()
}

interface Case extends LinkOptions {
  readonly secrets: number
  /** Of each, in kB. */
  readonly size: number
}

/** The transfer takes ten to twenty seconds, about the 15 s in which silence ends a request. */
const usual: readonly Case[] = [
  { secrets: 1, size: 900, rate: 1024 },
  { secrets: 1, size: 300, rate: 256, delay: 150, loss: 0.02 },
  { secrets: 40, size: 8, rate: 256 },
]
/** It takes two minutes and more: HOLDFAST_SLOWEST_LINK=1 asks for them. */
const slowest: readonly Case[] = [
  { secrets: 1, size: 900, rate: 64 },
  { secrets: 1, size: 900, rate: 64, delay: 150, loss: 0.02 },
  { secrets: 100, size: 8, rate: 64 },
  { secrets: 100, size: 8, rate: 64, delay: 150, loss: 0.02 },
]

const cases = process.env['HOLDFAST_SLOWEST_LINK'] === '1' ? slowest : usual
// Beside each other: each waits for a link of its own.
t.jobs = cases.length
await Promise.all(
  cases.map(({ secrets, size, ...link }) =>
    t.test(`${secrets} × ${size} kB over ${JSON.stringify(link)}`, { skip: needsRoot }, async (t) => {
      const namespace = await cluster.namespace()
      const names = Array.from({ length: secrets }, (_, index) => `secret-${index}`)
      for (const name of names) await namespace.putSecret(name, { data: 'x'.repeat(1000 * size) })
      await compare(t, namespace, link, names, secrets === 1 ? 'secrets/secret-0' : 'secrets')
    }),
  ),
)
