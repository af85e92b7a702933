/** An agent whose API server sends lines that no API server sends: it stays within its memory, and answers its probes. */
import { writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { type Agent, Node } from '../cli/holdfast.js'
import { authority } from '../kubernetes/connection/connected.js'
import { startRawServer } from '../kubernetes/connection/raw-http2.js'
import { base64, kubeconfig } from '../kubernetes/credentials/kubeconfig-text.js'
import { ModelCluster } from '../objects/kubernetes/model-cluster.js'
import { readProc } from '../processes.js'
import { until } from '../until.js'

const mebibyte = 1024 * 1024
const lines: Readonly<Record<string, () => string>> = {
  'levels without end': () => '['.repeat(15 * mebibyte),
  'seven hundred thousand keys': () => event(`{${Array.from({ length: 7e5 }, (_, index) => `"k${index}":""`).join()}}`),
  'five million maps': () => event(`{"a":[${'{},'.repeat(5e6)}0]}`),
}

/** Milliseconds of the processor that this process takes to read many keys: a yardstick of the machine as it is, other programs included. */
function readingTime(): number {
  const text = lines['seven hundred thousand keys']?.() ?? ''
  const before = process.cpuUsage()
  JSON.parse(text)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

function event(data: string): string {
  const metadata = '{"name":"a","namespace":"kube-system","uid":"u","resourceVersion":"99999"}'
  return `{"type":"MODIFIED","object":{"metadata":${metadata},"data":${data}}}`
}

await t.test('no line of a watch takes an agent beyond its memory, or its time', async (t) => {
  const cluster = new ModelCluster()
  for (const name of ['a', 'b']) cluster.put(name, 'one')
  await cluster.start()
  t.teardown(() => cluster.stop())
  const { node, agent } = startAgent(t, cluster.url)
  const has = (name: string, text: string) => () => node.read(`disk/${name}/a`) === text
  await until('both are published', () => has('a', 'one')() && has('b', 'one')())
  for (const [name, make] of Object.entries(lines)) {
    const line = make()
    const reading = readingTime()
    await until(`the watch is open: ${name}`, () => cluster.watching === 2)
    const refused = await refusals(agent)
    const before = agent.log().length
    const watch = watched(agent, await agent.address())
    t.teardown(watch.end)
    cluster.sendLine('a', line)
    const text = `after ${name}`
    cluster.put('b', text)
    await until(`the neighbour is published: ${name}`, has('b', text), { every: 20 })
    // The log tells the first refusal of several in a row, the metric each.
    await until(`the line is answered: ${name}`, async () => {
      const said = agent.log().slice(before)
      return said.some(({ msg }) => msg.includes('keys; holdfast reads')) || (await refusals(agent)) > refused
    })
    const { peak, busy, busiest } = await watch.end()
    const share = (busy / reading).toFixed(2)
    const figures = `/livez after at most ${busiest} ms of the processor, ${busy} ms of the processor in all, ${share} of a reading`
    t.comment(`${name}: at most ${peak.toFixed(0)} MiB in all, ${figures}`)
    t.ok(peak < 192, `${name}: ${peak} MiB`)
    t.ok(busiest < 10_000, `${name}: ${busiest} ms of the processor until /livez answers`)
    // The slowest line takes up to one and a half readings of the agent's thread, a look at nearly all of five million maps three.
    t.ok(busy < 2.2 * reading, `${name}: ${busy} ms of the processor, ${share} of a reading`)
    cluster.cut()
  }
  t.ok(agent.running)
  t.ok(has('a', 'one')())
})

await t.test('lines in HTTP/2 frames of one byte hold up no probe of an agent', async (t) => {
  const { agent } = startAgent(t, await startRawServer(t, { length: 100_000, size: 1, pause: 0 }))
  const watch = watched(agent, await agent.address())
  t.teardown(watch.end)
  await until('both lines are answered', async () => (await refusals(agent)) >= 2)
  const { answered, busiest, busy } = await watch.end()
  const slowest = `${busiest} of ${busy} ms of the processor`
  t.comment(`${answered} answers of /livez, the slowest after ${slowest}`)
  t.ok(answered > 2, `${answered} answers`)
  // A fast machine has fewer answers in all, and not a slower one among them.
  t.ok(busiest < busy / 3, slowest)
})

/** Starts an agent of Secrets `a` and `b` with this API server. */
function startAgent(t: Test, server: string): { node: Node; agent: Agent } {
  const directories = ['a', 'b'].map((secret) => ({ path: `disk/${secret}`, contents: [{ secret }] }))
  const source = { namespace: 'kube-system', kubernetes: { kubeconfig: 'kubeconfig' } }
  const node = new Node(t, directories, { source })
  const trusted = { server, 'certificate-authority-data': base64(authority.certificate) }
  writeFileSync(node.path('kubeconfig'), kubeconfig(trusted, { token: 'x' }, 'kube-system'), { mode: 0o600 })
  return { node, agent: node.agentProcess() }
}

interface Watched {
  /** MiB. */
  readonly peak: number
  /** How often it answered. */
  readonly answered: number
  /** Milliseconds of the processor that the first thread used at most from a question to its answer. */
  readonly busiest: number
  /** Milliseconds of the processor that the first thread used. */
  readonly busy: number
}

/** Looks at a process until `end`. */
function watched({ pid }: Agent, address: string): { end: () => Promise<Watched> } {
  const before = processorTime(pid)
  let [peak, answered, busiest, isOver] = [0, 0, 0, false]
  const sampling = setInterval(() => {
    const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readProc(`/proc/${pid}/status`))?.[1] ?? 0
    peak = Math.max(peak, Number(kilobytes) / 1024)
  }, 10)
  const probing = (async () => {
    while (!isOver) {
      const used = processorTime(pid)
      await fetch(`${address}/livez`).then(
        (answer) => answer.text().then(() => void (answered += 1)),
        () => undefined,
      )
      busiest = Math.max(busiest, processorTime(pid) - used)
    }
  })()
  return {
    end: async () => {
      isOver = true
      await probing
      clearInterval(sampling)
      return { peak, answered, busiest, busy: processorTime(pid) - before }
    },
  }
}

/** Streams that ended with a line that the agent does not read. */
async function refusals(agent: Agent): Promise<number> {
  const { text } = await agent.get('/metrics')
  return Number(/^holdfast_watch_restarts_total\{reason="protocol"\} (\d+)/m.exec(text)?.[1])
}

/** Milliseconds of the processor that a process's first thread has used: proc_pid_stat(5), in ticks of 10 ms. */
function processorTime(pid: number): number {
  const fields = readProc(`/proc/${pid}/task/${pid}/stat`)
    .replace(/^.*\) /s, '')
    .split(' ')
  return 10 * (Number(fields[11]) + Number(fields[12]))
}
