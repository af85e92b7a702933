/** What the agent costs disk and consumers while objects change all the time, and what changes in one moment: with no field but the defaults. */
import { type FSWatcher, readFileSync, watch } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Disk, missingForDisk } from '../disk/disk.js'
import { randomFrom, replay, seed } from '../seed.js'
import { Cluster } from './cluster.js'
import { readPublished } from './disk.js'
import { workingDirectory } from './guard.js'
import type { Namespace } from './namespace.js'
import { Node } from './node.js'
import { isMixed, oneMoment, type Pair, PairWriter } from './pairs.js'
import { until } from './until.js'

t.setTimeout(600_000)

const cluster = await Cluster.start()
t.teardown(() => cluster.stop())

const random = randomFrom(seed)

/** A Secret of 3.7 kB beside its version. */
const certificate = { 'tls.crt': 'c'.repeat(2000), 'tls.key': 'k'.repeat(1700) }

const seconds = 20
/** Milliseconds between two updates. */
const pace = 20

interface Load {
  readonly updates: number
  /** Since the first one. */
  readonly seconds: number
  /** Seconds from the last update until it was on the disk. */
  readonly behind: number
}

/** Updates the Secret 50 times a second, or as often as the server can, and waits until the last update is in the target. */
async function updateAllTheTime(namespace: Namespace, name: string, target: string): Promise<Load> {
  const put = (version: string): Promise<unknown> => namespace.putSecret(name, { version, ...certificate })
  const began = performance.now()
  let updates = 0
  while (performance.now() - began < 1000 * seconds) {
    await put(String(++updates))
    await sleep(Math.max(0, began + updates * pace - performance.now()))
  }
  await put('last')
  const ended = performance.now()
  await until('the last update is on the disk', () => readPublished(target, 'version') === 'last', { every: 20 })
  return { updates: updates + 1, seconds: (ended - began) / 1000, behind: (performance.now() - ended) / 1000 }
}

const perMinute = (count: number, load: Load): number => Math.round((60 * count) / load.seconds)

/** Its publications in a second, on average: the budget, and those that it had saved up before. */
function inBounds(t: Test, publications: number, load: Load): void {
  t.comment(
    `${load.updates} updates in ${load.seconds.toFixed(1)} s: ${publications} publications, ${perMinute(publications, load)} in a minute; ` +
      `the last was on the disk after ${load.behind.toFixed(2)} s`,
  )
  t.ok(publications <= 2 * (load.seconds + load.behind), 'at most two publications a second')
  t.ok(load.behind <= 6, 'the last is on the disk within 6 seconds')
}

const missing = await missingForDisk(['ext4'])

await t.test('50 updates a second of one Secret are two publications a second at most', async (t) => {
  const namespace = await cluster.namespace()
  await namespace.putSecret('a', { version: '0', ...certificate })
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
  const load = await updateAllTheTime(namespace, 'a', target)
  const after = await disk?.counts()
  inBounds(t, agent.logged('Published').length - published, load)
  if (before !== undefined && after !== undefined) {
    const flushes = after.flushes - before.flushes
    const megabytes = (after.writtenBytes - before.writtenBytes) / 1e6
    const inMinute = perMinute(megabytes * 10, load) / 10
    t.comment(`${perMinute(flushes, load)} flushes and ${inMinute} MB in a minute, as the disk counts them`)
    t.ok(flushes <= 16 * (load.seconds + load.behind), 'flushes are bounded with the publications')
  } else {
    t.comment(`without ${missing.join(', ')}, nothing counts flushes`)
  }
  t.equal(await agent.stop(), 0)
})

await t.test(
  'the hooks of a directory that changes 50 times a second run seldom, and for the newest content',
  async (t) => {
    const namespace = await cluster.namespace()
    for (const name of ['a', 'b']) await namespace.putSecret(name, { version: '0', ...certificate })
    const ran = join(workingDirectory, `ran-${namespace.name}`)
    const contents = [{ secret: 'a' }, { secret: 'b', into: 'b' }]
    const node = await Node.create(t, namespace, {
      allowed: { secrets: ['a', 'b'] },
      directories: [{ path: 'certs', contents }],
    })
    const target = node.path('certs')
    const script = `cat ${target}/version >> ${ran}; echo >> ${ran}`
    node.write([{ path: 'certs', contents, afterPublish: [{ exec: ['/bin/sh', '-c', script] }] }])
    const { agent } = node
    agent.start()
    await agent.ready()
    const runs = (): string[] => readFileSync(ran, 'utf8').trim().split('\n')
    await until('the hook has run once', () => runs().length === 1)
    const published = agent.logged('Published').length
    const load = await updateAllTheTime(namespace, 'a', target)
    const meanwhile = runs().length - 1
    inBounds(t, agent.logged('Published').length - published, load)
    t.comment(`the hook ran ${meanwhile} times in ${load.seconds.toFixed(1)} s`)
    t.ok(meanwhile <= Math.ceil((load.seconds + load.behind) / 10), 'a hook runs once in ten seconds')
    await until('it runs for the newest content', () => runs().at(-1) === 'last')
    t.equal(await agent.stop(), 0)
  },
)

const pairs = 100
/** Milliseconds for all of them: a loaded machine writes few within a moment. */
const patience = 60_000

await t.test(`Secrets of one directory that change in one moment are published together (${replay})`, async (t) => {
  const namespace = await cluster.namespace()
  const groups = ['one', 'two', 'three', 'four', 'five']
  const names = groups.flatMap((group) => [`${group}-key`, `${group}-trust`])
  for (const name of names) await namespace.putSecret(name, { version: '0', ...certificate })
  const node = await Node.start(t, namespace, {
    allowed: { secrets: names },
    directories: groups.map((group) => ({
      path: group,
      contents: [
        { secret: `${group}-key`, into: 'key' },
        { secret: `${group}-trust`, into: 'trust' },
      ],
    })),
  })
  const { agent } = node
  await agent.ready()
  const writer = new PairWriter(t, namespace, random)
  const counted: Pair[] = []
  const end = performance.now() + patience
  for (let number = 1; counted.length < pairs && performance.now() < end; number++) {
    const version = String(number)
    const group = groups[number % groups.length] ?? ''
    const isThere = (part: string) => readPublished(node.path(group), `${part}/version`) === version
    const published = () =>
      until(`${group} has pair ${version}`, () => isThere('key') && isThere('trust'), { every: 20 })
    const pair = await writer.write([`${group}-key`, `${group}-trust`], { version, ...certificate }, published)
    if (pair !== undefined) counted.push(pair)
  }
  const mixed = agent.logged('Published').filter((line) => counted.some((pair) => isMixed(line, pair)))
  t.comment(`${mixed.length} mixed publications of ${counted.length} pairs that were written within ${oneMoment} ms`)
  t.ok(counted.length >= pairs / 5, 'the server has written enough of them in one moment')
  t.equal(mixed.length, 0, 'no publication holds one half of a pair')
  t.equal(await agent.stop(), 0)
})

/** Resolves with the instant at which the file has the text, as inotify tells it. */
function visible(target: string, text: string): Promise<number> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (readPublished(target, 'version') !== text) return
      watcher.close()
      resolve(performance.now())
    }
    const watcher: FSWatcher = watch(dirname(target), look)
  })
}

await t.test('a lone change of a directory of several objects is published 150 ms later than of one', async (t) => {
  const namespace = await cluster.namespace()
  for (const name of ['a', 'b']) await namespace.putSecret(name, { version: '0', ...certificate })
  const node = await Node.start(t, namespace, {
    allowed: { secrets: ['a', 'b'] },
    directories: [
      { path: 'single', contents: [{ secret: 'a' }] },
      { path: 'several', contents: [{ secret: 'a' }, { secret: 'b', into: 'b' }] },
    ],
  })
  await node.agent.ready()
  const more: number[] = []
  for (let change = 1; change <= 9; change++) {
    // As seldom as lone changes come.
    await sleep(1_200)
    const [single, several] = ['single', 'several'].map((path) => visible(node.path(path), String(change)))
    await namespace.patchSecret('a', { stringData: { version: String(change) } })
    more.push(Number(await several) - Number(await single))
  }
  more.sort((a, b) => a - b)
  const median = more[Math.floor(more.length / 2)] ?? NaN
  t.comment(`median ${median.toFixed(0)} ms more, at most ${more.at(-1)?.toFixed(0)}`)
  t.ok(median <= 150)
  t.equal(await node.agent.stop(), 0)
})
