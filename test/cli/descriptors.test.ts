/** A process that has no file descriptors left goes on: what fails is tried again, and nothing of the agent's own ends it. */
import { once } from 'node:events'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { until } from '../until.js'
import { holdfast, Node, type Agent } from './holdfast.js'

/** Descriptors that the agent may open beside those it has: which of its calls is the first to fail depends on it. */
const spares = [0, 1, 2, 3, 4, 5, 8, 20, 60, 100, 125]

/** Milliseconds that a question to an agent may take that cannot accept it. */
const patience = 300

await t.test('an agent without file descriptors goes on, and makes up for all requests once it has some', async (t) => {
  const hooked = createServer((_, response) => response.end()).listen(0, '127.0.0.1')
  t.teardown(() => hooked.close())
  await once(hooked, 'listening')
  const url = `http://127.0.0.1:${(hooked.address() as AddressInfo).port}/`
  const contents = [{ configMap: 'conf' }]
  const node = new Node(t, [])
  // It fails for as long as there is no such directory: until then it is due at each SIGHUP.
  const copy = { exec: ['/bin/cp', node.path('disk/hooked/port'), node.path('copies/port')], retries: 0 }
  const directories = [
    { path: 'disk/hooked', contents, afterPublish: [{ http: { url } }, copy] },
    { path: 'disk/checked', contents, beforePublish: [{ exec: ['/bin/ls', '{dir}'] }] },
    { path: 'disk/held', contents },
  ]
  node.configure(directories)
  node.put('ConfigMap', 'conf', { port: 'before' })
  symlinkSync(node.objects, node.path('linked'))
  const agent = node.agentProcess()
  await agent.logged('HookFailed')
  await until('all is published', () => node.read('disk/checked/port') && node.read('disk/held/port'))
  const { port } = new URL(await agent.address())
  const address = (last: number) => ({ server: { address: `127.0.0.${last}:${port}` } })
  const objects = { source: { namespace: 'demo', files: { path: node.path('linked') } } }
  const cluster = { source: { namespace: 'demo', kubernetes: { kubeconfig: node.path('kubeconfig') } } }
  const asked = [address(2), objects, cluster, address(3), { ...objects, ...address(2) }]

  for (const [round, spare] of spares.entries()) {
    agent.limitDescriptors(spare)
    node.put('ConfigMap', 'conf', { port: `with ${spare}` })
    const act = round % 2 === 0 ? 'hold' : 'release'
    t.equal((await holdfast([act, '--lock-timeout', '10m', node.path('disk/held')])).code, 0, act)
    for (const turn of [2 * round, 2 * round + 1]) {
      node.configure(turn % 3 === 1 ? directories.slice(1) : directories, asked[turn % asked.length])
      await Promise.all([answered(agent), ...[1, 2, 3].map((last) => isLive(`127.0.0.${last}:${port}`))])
    }
  }
  agent.limitDescriptors('as before')
  mkdirSync(node.path('copies'))
  t.equal((await holdfast(['release', '--lock-timeout', '10m', node.path('disk/held')])).code, 0)
  node.put('ConfigMap', 'conf', { port: 'after' })
  node.configure(directories, address(4))
  await answered(agent)
  for (const name of ['disk/hooked/port', 'disk/checked/port', 'disk/held/port', 'copies/port']) {
    await until(`${name} is the newest`, () => node.read(name) === 'after')
  }
  await until('the last address answers', () => isLive(`127.0.0.4:${port}`, 60_000))
  t.same(
    agent.log().filter(({ msg }) => msg.includes('internal error')),
    [],
  )
  t.equal(await agent.end('SIGTERM'), 0)
})

await t.test('the agent starts a credential plugin again that failed for lack of descriptors', async (t) => {
  const kubeconfig = 'kubeconfig.json'
  const node = new Node(t, [{ path: 'disk/web', contents: [{ configMap: 'conf' }] }], {
    source: { namespace: 'demo', kubernetes: { kubeconfig } },
  })
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: node.path('plugin'), interactiveMode: 'Never' }
  const names = { context: { cluster: 'one', user: 'one' } }
  const text = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'one',
    clusters: [{ name: 'one', cluster: { server: 'https://127.0.0.1:1' } }],
    contexts: [{ name: 'one', ...names }],
    users: [{ name: 'one', user: { exec } }],
  }
  writeFileSync(node.path(kubeconfig), JSON.stringify(text))
  const agent = node.agentProcess(['--log-level', 'debug'])
  // Between two tries pass up to thirty seconds, and more on a busy machine.
  const said = (problem: RegExp, first = () => {}) =>
    until(
      String(problem),
      () => {
        first()
        return agent.log().some(({ msg }) => problem.test(msg))
      },
      { within: 180_000, every: 250 },
    )
  await said(/plugin: not found/)
  writeFileSync(node.path('plugin'), '#!/bin/sh\nexit 7\n', { mode: 0o700 })
  // A try that is under way at the first time holds descriptors, which it gives back to the next.
  await said(/could not be started \(EMFILE; raise the limit of open files/, () => agent.limitDescriptors(0))
  agent.limitDescriptors('as before')
  await said(/plugin: exited with 7/)
  t.equal(await agent.end('SIGTERM'), 0)
})

/** Sends SIGHUP, and waits until the agent has said what came of it. */
async function answered(agent: Agent): Promise<void> {
  const answers = () => agent.log().filter(({ msg }) => / (is|stays) in force$/.test(msg)).length
  const before = answers()
  agent.signal('SIGHUP')
  await until('an answer to SIGHUP', () => !agent.running || answers() > before)
  if (!agent.running) throw new Error(`the agent has ended: ${agent.log().at(-1)?.msg ?? 'without a word'}`)
}

async function isLive(host: string, within = patience): Promise<boolean> {
  const options = { headers: { connection: 'close' }, signal: AbortSignal.timeout(within) }
  return fetch(`http://${host}/livez`, options).then(
    ({ status }) => status === 200,
    () => false,
  )
}
