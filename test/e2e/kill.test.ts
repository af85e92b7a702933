/** The agent is killed at random instants of a stream of updates: what stands on the disk is whole, and never goes backwards. */
import { readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { Cluster } from './cluster.js'
import { leftovers, readTree } from './disk.js'
import type { Namespace } from './namespace.js'
import { Node } from './node.js'
import { Random } from '../random.js'
import { replay, seed } from '../seed.js'
import { until } from '../until.js'
import { isKind } from '../crash/judge/names.js'

const lives = 30
/** Of the time that the agent took to its first publication: some lives end before it, most end after it. */
const longestLife = 3
/** Milliseconds between two versions. */
const pause = 10
const files = Array.from({ length: 8 }, (_, index) => `file-${index}`)
const padding = 'x'.repeat(3000)

const cluster = await Cluster.start()
t.teardown(() => cluster.stop())

/** Writes one version after the other until `control.end`; resolves with the last one. */
async function stream(namespace: Namespace, control: { end: boolean }): Promise<number> {
  let version = 0
  while (!control.end) {
    const text = `${++version} ${padding}`
    await namespace.putSecret('stream', Object.fromEntries(files.map((file) => [file, text])))
    await sleep(pause)
  }
  return version
}

/** The one version that all files of the tree are of; 0 for no tree. */
function versionOf(path: string): number {
  const tree = readTree(path)
  if (!tree) return 0
  const versions = new Set(Object.values(tree).map((text) => text.split(' ')[0]))
  const names = Object.keys(tree).sort()
  const whole = names.join() === files.join() && Object.values(tree).every((text) => text.endsWith(` ${padding}`))
  if (versions.size !== 1 || !whole) throw new Error(`mixed or torn: ${names.join(' ')}: ${[...versions].join(' ')}`)
  return Number([...versions][0])
}

await t.test(`the target stays intact through ${lives} kills of the agent; ${replay}`, async (t) => {
  const random = new Random(seed)
  const namespace = await cluster.namespace()
  const node = await Node.create(t, namespace, {
    allowed: { secrets: ['stream'] },
    directories: [{ path: 'certs', contents: [{ secret: 'stream' }] }],
  })
  const { agent } = node
  const target = node.path('certs')
  const control = { end: false }
  const streaming = stream(namespace, control)
  t.teardown(() => (control.end = true))

  let newest = 0
  const look = (): number => {
    const version = versionOf(target)
    if (version < newest) throw new Error(`went back from version ${newest} to ${version}`)
    return (newest = version)
  }
  // How quick this machine is now: the first life ends when there is something to lose, and each later one that publishes tells it anew.
  const began = performance.now()
  agent.start()
  await until('the first version is on the disk', () => versionOf(target) > 0)
  let startTime = performance.now() - began
  await agent.kill()

  let fruitful = 0
  let interrupted = 0
  for (let life = 0; life < lives; life++) {
    const before = newest
    const started = performance.now()
    const end = started + random.next() * longestLife * startTime
    agent.start()
    let first: number | undefined
    while (performance.now() < end) {
      if (look() > before) first ??= performance.now() - started
      await sleep(5)
    }
    await agent.kill()
    if (look() > before) fruitful++
    // A machine that has become quicker, or slower: most lives publish something, and none waits for seconds without need.
    startTime = first === undefined ? startTime * 1.25 : Math.max(first, startTime * 0.85)
    if (readdirSync(dirname(target)).some(isKind('staging', 'foreign'))) interrupted++
  }
  t.comment(`a first version takes about ${Math.round(startTime)} ms`)
  t.comment(
    `${fruitful} lives published something; ${interrupted} left staging behind; ${newest} is the newest version`,
  )
  t.ok(fruitful >= lives / 3, 'the kills met an agent at work')

  agent.start()
  await agent.ready()
  control.end = true
  const last = await streaming
  await until(`the last version, ${last}, is on the disk`, () => {
    look()
    return newest === last
  })
  await until('nothing is left over', () => leftovers(target).length === 0)
  t.equal(await agent.stop(), 0)
  t.strictSame(leftovers(target), [])
  t.equal((await agent.run('verify')).code, 0, 'the disk is what the record says')
  t.equal(versionOf(target), last)
  t.equal(agent.logged('HistoryRewound').length, 0)
})
