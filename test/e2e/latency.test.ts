/** How long it takes from the start of the command that changes a Secret to the file on the disk: the command's own time is in it. */
import { type FSWatcher, watch } from 'node:fs'
import { dirname } from 'node:path'
import { performance } from 'node:perf_hooks'
import t from 'tap'
import { Cluster } from './cluster.js'
import { readPublished } from './disk.js'
import { Node } from './node.js'
import { busyness, until } from '../until.js'

const changes = 50

const cluster = await Cluster.start()
t.teardown(() => cluster.stop())

const quantile = (values: readonly number[], part: number): number =>
  [...values].sort((a, b) => a - b)[Math.floor(part * (values.length - 1))] ?? NaN

const describe = (values: readonly number[]): string =>
  `median ${quantile(values, 0.5).toFixed(1)} ms, p90 ${quantile(values, 0.9).toFixed(1)} ms, longest ${Math.max(...values).toFixed(1)} ms`

/** Resolves with the instant at which the file has the text, as inotify tells it. */
function visible(target: string, text: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      watcher.close()
      reject(new Error(`${text} is not on the disk within 30 s`))
    }, 30_000)
    const look = (): void => {
      if (readPublished(target, 'version') !== text) return
      clearTimeout(timer)
      watcher.close()
      resolve(performance.timeOrigin + performance.now())
    }
    const watcher: FSWatcher = watch(dirname(target), look)
  })
}

/**
 * Milliseconds, for the median. A PUT on a connection that is open takes a few of them itself; kubectl starts a process, reads its
 * kubeconfig and asks for the API's discovery first, which takes a few hundred on two busy cores. Where other processes take the
 * processors, the command itself is as late, and is the measure.
 */
const limits = { kubectl: 1_000, 'a PUT': 100 }
/** Times that the command alone takes: a publication waits for a processor some ten times, a PUT once or twice. */
const timesCommand = 10

for (const by of ['kubectl', 'a PUT'] as const) {
  await t.test(`${changes} changes by ${by} reach the disk in time`, async (t) => {
    const namespace = await cluster.namespace()
    await namespace.putSecret('a', { version: '0', 'tls.crt': 'c'.repeat(2000), 'tls.key': 'k'.repeat(1700) })
    const node = await Node.start(t, namespace, {
      allowed: { secrets: ['a'] },
      // One change after another is no lone change.
      directories: [{ path: 'certs', contents: [{ secret: 'a' }], minInterval: '0s' }],
    })
    const { agent } = node
    const target = node.path('certs')
    await agent.ready()

    const untilVisible: number[] = []
    const untilDurable: number[] = []
    const commands: number[] = []
    for (let change = 1; change <= changes; change++) {
      const seen = visible(target, String(change))
      const patch = { stringData: { version: String(change) } }
      const began = performance.timeOrigin + performance.now()
      if (by === 'a PUT') await namespace.patchSecret('a', patch)
      else await cluster.kubectl(['patch', 'secret', 'a', '-n', namespace.name, '-p', JSON.stringify(patch)])
      commands.push(performance.timeOrigin + performance.now() - began)
      // The agent is often done before the command has ended.
      untilVisible.push((await seen) - began)
      const line = await until('the log reports it', () => agent.logged('Published')[change])
      untilDurable.push(Date.parse(String(line['time'])) - began)
    }
    t.comment(`the command alone: ${describe(commands)}`)
    t.comment(`on the disk: ${describe(untilVisible)}`)
    t.comment(`durable, and in the log: ${describe(untilDurable)}`)
    // A clock that started too late would give less than nothing.
    t.ok(Math.min(...untilVisible) > 0, 'no change is seen before its command')
    const limit = Math.max(limits[by], timesCommand * quantile(commands, 0.5)) * busyness()
    t.ok(quantile(untilVisible, 0.5) < limit, 'on the disk')
    t.ok(quantile(untilDurable, 0.5) < limit, 'durable')

    t.ok((await agent.metric('holdfast_publishes_total', { directory: target })) >= changes + 1)
    t.ok((await agent.metric('holdfast_publish_duration_seconds_count', { directory: target })) >= changes + 1)
    await agent.condition(target, 'Published', 'True', 'Published')
  })
}
