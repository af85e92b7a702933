/** What the agent costs a disk while an object changes all the time, with no field but the defaults. */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { Disk, missingForDisk } from '../disk/disk.js'
import { Random } from '../random.js'
import { replay, seed } from '../seed.js'
import { Cluster } from './cluster.js'
import { readPublished } from './disk.js'
import { Node } from './node.js'
import { isMixed, type Pair, PairWriter } from './pairs.js'
import { until } from '../until.js'

const cluster = await Cluster.start()
t.teardown(() => cluster.stop())

/** A Secret of 3.7 kB beside its version. */
const certificate = { 'tls.crt': 'c'.repeat(2000), 'tls.key': 'k'.repeat(1700) }

const seconds = 10
/** Milliseconds between two updates. */
const pace = 20

const missing = await missingForDisk(['ext4'])

await t.test('50 updates a second of one Secret are two publications a second at most', async (t) => {
  const namespace = await cluster.namespace()
  const put = (version: string): Promise<unknown> => namespace.putSecret('a', { version, ...certificate })
  await put('0')
  const disk = missing.length === 0 ? await Disk.create() : undefined
  t.teardown(() => disk?.destroy())
  await disk?.format('ext4')
  await disk?.mount()
  const node = await Node.start(t, namespace, {
    allowed: { secrets: ['a'] },
    directories: [{ path: 'certs', contents: [{ secret: 'a' }] }],
    ...(disk && { place: disk.mountPoint }),
  })
  const { agent } = node
  await agent.ready()
  const target = node.path('certs')
  await until('it is published', () => readPublished(target, 'version') === '0')
  const published = agent.logged('Published').length
  const before = await disk?.counts()

  const began = performance.now()
  let updates = 0
  while (performance.now() - began < 1000 * seconds) {
    await put(String(++updates))
    // A slower server gets each update as soon as it has answered the one before.
    await sleep(Math.max(0, began + updates * pace - performance.now()))
  }
  await put('last')
  const written = performance.now()
  await until('the last update is on the disk', () => readPublished(target, 'version') === 'last', { every: 20 })
  const behind = (performance.now() - written) / 1000

  const after = await disk?.counts()
  const publications = agent.logged('Published').length - published
  const took = (written - began) / 1000
  const perMinute = (count: number): number => Math.round((60 * count) / took)
  t.comment(
    `${updates + 1} updates in ${took.toFixed(1)} s: ${publications} publications, ${perMinute(publications)} in a minute; ` +
      `the last was on the disk after ${behind.toFixed(2)} s`,
  )
  // On average: the budget, and what the directory had saved up before.
  t.ok(publications <= 2 * (took + behind), 'at most two publications a second')
  t.ok(behind <= 6, 'the last is on the disk within 6 seconds')
  if (before !== undefined && after !== undefined) {
    const flushes = after.flushes - before.flushes
    const megabytes = (after.writtenBytes - before.writtenBytes) / 1e6
    t.comment(`${perMinute(flushes)} flushes and ${perMinute(megabytes)} MB in a minute, as the disk counts them`)
    t.ok(flushes <= 16 * (took + behind), 'flushes are bounded with the publications')
  } else {
    t.comment(`without ${missing.join(', ')}, nothing counts flushes`)
  }
  t.equal(await agent.stop(), 0)
})

/** Of 100, 76 were mixed before a directory of several objects had a debounce by default. */
const pairs = 20
/** Milliseconds for all of them: a loaded machine writes few within a moment. */
const patience = 30_000

await t.test(`Secrets of one directory that change in one moment are published together (${replay})`, async (t) => {
  const namespace = await cluster.namespace()
  const names = ['key', 'trust'] as const
  for (const name of names) await namespace.putSecret(name, { version: '0', ...certificate })
  const contents = names.map((name) => ({ secret: name, into: name }))
  const node = await Node.start(t, namespace, {
    allowed: { secrets: [...names] },
    directories: [{ path: 'certs', contents }],
  })
  const { agent } = node
  await agent.ready()
  const writer = new PairWriter(t, namespace, new Random(seed))
  const counted: Pair[] = []
  const end = performance.now() + patience
  for (let number = 1; counted.length < pairs && performance.now() < end; number++) {
    const version = String(number)
    const isThere = (part: string): boolean => readPublished(node.path('certs'), `${part}/version`) === version
    const published = (): Promise<unknown> => until(`pair ${version}`, () => names.every(isThere), { every: 20 })
    const pair = await writer.write(names, { version, ...certificate }, published)
    if (pair !== undefined) counted.push(pair)
  }
  const mixed = agent.logged('Published').filter((line) => counted.some((pair) => isMixed(line, pair)))
  t.ok(counted.length >= pairs / 5, `${counted.length} pairs are enough`)
  // agent/pacing.test.ts has none of 100, by a simulated clock. Here the server, or the agent, may wait for a processor between the two.
  t.ok(
    mixed.length <= counted.length / 5,
    `${mixed.length} publications hold one half of one of ${counted.length} pairs`,
  )
  t.equal(await agent.stop(), 0)
})
