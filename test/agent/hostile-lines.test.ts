/** An agent whose API server sends lines that no API server sends: it stays within its memory, and answers its probes. */
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { authority } from '../kubernetes/connection/connected.js'
import { base64, kubeconfig } from '../kubernetes/credentials/kubeconfig-text.js'
import { ModelCluster } from '../objects/kubernetes/model-cluster.js'
import { executable } from '../project.js'
import { until } from '../until.js'

const mebibyte = 1024 * 1024
const lines: Readonly<Record<string, () => string>> = {
  'levels without end': () => '['.repeat(15 * mebibyte),
  'a million keys': () => event(`{${Array.from({ length: 1e6 }, (_, index) => `"k${index}":""`).join()}}`),
  'five million maps': () => event(`{"a":[${'{},'.repeat(5e6)}0]}`),
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
  const root = mkdtempSync(join(tmpdir(), 'holdfast-lines-'))
  t.teardown(() => rmSync(root, { recursive: true }))
  const trusted = { server: cluster.url, 'certificate-authority-data': base64(authority.certificate) }
  writeFileSync(join(root, 'kubeconfig'), kubeconfig(trusted, { token: 'x' }, 'kube-system'), { mode: 0o600 })
  mkdirSync(join(root, 'disk'))
  const port = await freePort()
  const configuration = {
    apiVersion: 'holdfast.dev/v1alpha1',
    kind: 'AgentConfiguration',
    stateDirectory: join(root, 'state'),
    source: { namespace: 'kube-system', kubernetes: { kubeconfig: join(root, 'kubeconfig') } },
    directories: ['a', 'b'].map((secret) => ({ path: join(root, 'disk', secret), contents: [{ secret }] })),
    server: { address: `127.0.0.1:${port}` },
  }
  writeFileSync(join(root, 'holdfast.yaml'), JSON.stringify(configuration))
  const child = spawn(process.execPath, [executable, 'agent', '--config', join(root, 'holdfast.yaml')], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: process.env['PATH'], HOME: root },
  })
  let log = ''
  child.stderr.on('data', (bytes: Buffer) => (log += bytes.toString()))
  t.teardown(() => child.kill('SIGKILL'))
  const has = (name: string, text: string) => () => published(join(root, 'disk', name, 'a')) === text
  await until('both are published', () => has('a', 'one')() && has('b', 'one')())
  for (const [name, make] of Object.entries(lines)) {
    const line = make()
    await until(`the watch is open: ${name}`, () => cluster.watching === 2)
    const watch = watched(child.pid ?? 0, port)
    t.teardown(watch.end)
    cluster.sendLine('a', line)
    const text = `after ${name}`
    cluster.put('b', text)
    await until(`the neighbour is published: ${name}`, has('b', text), { every: 20 })
    await until(`the line is answered: ${name}`, () =>
      /is nested deeper|keys; holdfast reads|must be a string|values/.test(log),
    )
    const { peak, latest } = await watch.end()
    t.comment(`${name}: at most ${peak.toFixed(0)} MiB in all, /livez after at most ${latest.toFixed(0)} ms`)
    t.ok(peak < 192, `${name}: ${peak} MiB`)
    // A quiet machine takes half a second for the longest line; without a bound, none of them ends within a minute.
    t.ok(latest < 10_000, `${name}: ${latest} ms`)
    cluster.cut()
    log = ''
  }
  t.equal(child.exitCode, null)
  t.ok(has('a', 'one')())
})

function published(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}

/** Looks at a process until `end`: its highest memory in MiB, and the longest time that /livez took. */
function watched(pid: number, port: number): { end: () => Promise<{ peak: number; latest: number }> } {
  let [peak, latest, isOver] = [0, 0, false]
  const sampling = setInterval(() => {
    const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(published(`/proc/${pid}/status`) ?? '')?.[1] ?? 0
    peak = Math.max(peak, Number(kilobytes) / 1024)
  }, 10)
  const probing = (async () => {
    while (!isOver) {
      const began = performance.now()
      await fetch(`http://127.0.0.1:${port}/livez`).then(
        (answer) => answer.text(),
        () => undefined,
      )
      latest = Math.max(latest, performance.now() - began)
    }
  })()
  return {
    end: async () => {
      isOver = true
      await probing
      clearInterval(sampling)
      return { peak, latest }
    },
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
}
