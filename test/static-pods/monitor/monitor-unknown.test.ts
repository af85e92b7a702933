/** An unknown answer is no reason to take a revision back; a failed write is no reason to leave a broken one. */
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { silent, type Log } from '../../../src/log.js'
import { DurableCalls } from '../../../src/durable/index.js'
import { monitor } from '../../../src/static-pods/monitor/monitor.js'
import { json } from '../../kubernetes/connection/api-server.js'
import { run, type Ended } from '../command.js'
import { InstallerApi, notFound, notFoundPage } from '../install/installer-api.js'
import { NodeDisk, podText } from '../pods.js'
import { live } from './monitored-node.js'

/** Revision 7 is live, and revision 6 is the last known good one. */
function install<Node extends NodeDisk>(node: Node): Node {
  for (const revision of [6, 7]) node.makeRevision(revision)
  node.makeManifest(podText({ labels: { revision: '7' } }))
  symlinkSync(join(node.revision(6), 'web-pod.yaml'), join(node.resources, 'web-last-known-good'))
  return node
}

await t.test('monitor falls back in time where it cannot record its start, and says so once', async (t) => {
  const node = install(new NodeDisk(t))
  const id = createHash('sha256').update('web monitor').digest('hex').slice(0, 16)
  // No user may write a file where a directory is, not even root.
  mkdirSync(join(node.resources, `.holdfast-${id}.watch.new`))
  const warnings: object[] = []
  const log: Log = { ...silent, warn: (fields, message) => void warnings.push({ ...fields, message }) }
  const probe = { name: 'probe', ask: () => Promise.resolve({ state: 'not-ready' as const, message: 'not yet' }) }
  const request = {
    target: 'web',
    resourceDirectory: node.resources,
    manifestDirectory: node.manifests,
    revision: 7,
    timeout: 200,
    manifestLock: node.lock,
    probes: [probe],
    keepOwnManifest: true,
  }
  const signal = AbortSignal.timeout(5_000)
  const outcome = await monitor(request, { durable: new DurableCalls(), log, signal, timing: { interval: 5 } })
  t.match(outcome, { outcome: 'fell-back', to: 6 })
  t.equal(live(node).metadata.labels.revision, '6')
  const reported = warnings.filter((line) => 'path' in line && String(line.path).endsWith('.watch'))
  t.match(reported, [
    { code: 'EISDIR', message: /could not write .*if the monitor is restarted, its timeout starts over/ },
  ])
  t.equal(reported.length, 1)
})

function watch(node: NodeDisk, more: readonly string[]): Promise<Ended> {
  const flags = [
    ...[
      'monitor',
      '--ready-for=0s',
      '--revision=7',
      '--target-name=web',
      '--node-name=n1',
      '-o',
      'json',
      '--keep-own-manifest',
    ],
    ...[`--resource-dir=${node.resources}`, `--manifests-dir=${node.manifests}`, '--fallback-timeout-duration=1ms'],
  ]
  return run([...flags, ...more])
}

async function unknown(t: Test, node: NodeDisk, more: readonly string[], message: RegExp): Promise<void> {
  const { code, stdout, stderr } = await watch(node, more)
  t.equal(code, 1, stderr)
  t.match(JSON.parse(stdout), { outcome: 'unknown', revision: 7, message })
  t.equal(live(node).metadata.labels.revision, '7', 'the revision stays')
}

await t.test('an answer without the pod proves nothing to monitor', async (t) => {
  const answers: [number, RegExp][] = [
    [401, /HTTP 401.*credentials/],
    [403, /HTTP 403.*get.*pods.*namespace kube-system.*web-n1/],
    [429, /HTTP 429/],
    [500, /HTTP 500/],
  ]
  const api = install(await InstallerApi.start(t))
  for (const [status, message] of answers) {
    api.override = (_, reply) => (json(reply, status, { kind: 'Status', message: 'no' }), true)
    await unknown(t, api, [`--kubeconfig=${api.kubeconfig}`], message)
  }
  api.override = (_, reply) => (notFoundPage(reply), true)
  await unknown(t, api, [`--kubeconfig=${api.kubeconfig}`], /HTTP 404/)
})

await t.test('monitor follows another probe that denies or affirms', async (t) => {
  const api = install(await InstallerApi.start(t))
  api.override = (_, reply) => (json(reply, 403, { kind: 'Status' }), true)
  const ready = await watch(api, [`--kubeconfig=${api.kubeconfig}`, '--ready-exec=true'])
  t.match(JSON.parse(ready.stdout), { outcome: 'ready' }, ready.stderr)
  const other = install(await InstallerApi.start(t))
  const denied = await watch(other, [`--kubeconfig=${api.kubeconfig}`, '--ready-exec=exit 1'])
  t.match(JSON.parse(denied.stdout), { outcome: 'fell-back', to: 6 }, denied.stderr)
})

await t.test('monitor takes an unreachable API server, and a missing mirror pod, for not ready', async (t) => {
  const gone = install(await InstallerApi.start(t))
  await gone.server.close()
  const refused = await watch(gone, [`--kubeconfig=${gone.kubeconfig}`])
  t.match(JSON.parse(refused.stdout), { outcome: 'fell-back', to: 6, message: /ECONNREFUSED/ }, refused.stderr)
  // No resolver asks for a name with an empty label. Where a static pod serves names, its failure must not keep it.
  const nameless = install(await InstallerApi.start(t))
  const text = readFileSync(nameless.kubeconfig, 'utf8').replace(/(https?:\/\/)[\d.]+/, '$1no..host')
  writeFileSync(nameless.kubeconfig, text)
  const lost = await watch(nameless, [`--kubeconfig=${nameless.kubeconfig}`])
  t.match(JSON.parse(lost.stdout), { outcome: 'fell-back', to: 6, message: /ENOTFOUND/ }, lost.stderr)
  const api = install(await InstallerApi.start(t))
  api.override = (seen, reply) => (notFound(seen, reply), true)
  const absent = await watch(api, [`--kubeconfig=${api.kubeconfig}`])
  t.match(JSON.parse(absent.stdout), { outcome: 'fell-back', to: 6, message: /does not exist/ }, absent.stderr)
})

await t.test('a URL that refuses the question, and a command that cannot run, prove nothing', async (t) => {
  const server = createServer((request, response) => {
    response.statusCode = Number(request.url?.slice(1))
    response.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const node = install(new NodeDisk(t))
  for (const status of [401, 403])
    await unknown(t, node, [`--ready-url=${url}/${status}`], new RegExp(`HTTP ${status}`))
  await unknown(t, node, ['--ready-exec=/no/such/program'], /exit code 127: the shell could not run the command/)
  const denied = await watch(node, [`--ready-url=${url}/500`])
  t.match(JSON.parse(denied.stdout), { outcome: 'fell-back', to: 6 }, 'a 500 of the pod itself is its own word')
})
