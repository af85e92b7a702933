import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { begin, Node } from '../cli/holdfast.js'
import { kubeconfig } from '../kubernetes/credentials/kubeconfig-text.js'
import { executable } from '../project.js'
import { until } from '../until.js'
import { NodeDisk, podText } from './pods.js'

/** Soft and hard limit, in bytes. */
function coreLimit(limits: string): string | undefined {
  return /Max core file size\s+(\S+)\s+(\S+)/.exec(readFileSync(limits, 'utf8'))?.slice(1).join(' ')
}

await t.test('commands that read secrets from the disk end with core files turned off', (t) => {
  const node = new Node(t, [{ path: 'target', contents: [{ secret: 'tls' }] }])
  writeFileSync(node.path('web.yaml'), podText())
  // The process's own view of its limits at its end.
  const limits = node.path('limits')
  const keep = `fs.writeFileSync(${JSON.stringify(limits)}, fs.readFileSync("/proc/self/limits"))`
  writeFileSync(node.path('at-exit.cjs'), `const fs = require("node:fs"); process.on("exit", () => ${keep})`)
  for (const args of [
    ['install', node.path('web.yaml'), '--pod-manifest-dir', node.root],
    ['verify', '--config', node.configuration],
  ]) {
    spawnSync(process.execPath, ['--require', node.path('at-exit.cjs'), executable, ...args], { stdio: 'ignore' })
    t.equal(coreLimit(limits), '1 1', args.join(' '))
    rmSync(limits)
  }
  t.end()
})

await t.test('an installation turns core files off before it reads a secret from the API', async (t) => {
  const node = new NodeDisk(t)
  let asked = false
  // The server accepts a request and never answers: all that precedes the first secret has happened by then.
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    asked = true
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const access = join(node.root, 'kubeconfig')
  const { port } = server.address() as AddressInfo
  writeFileSync(access, kubeconfig({ server: `http://127.0.0.1:${port}` }, { token: 'none' }))
  const child = begin([
    ...['install', '--revision=1', '--namespace=demo', '--pod=web-pod', '--configmaps=web-pod', '--node-name=n1'],
    ...[`--resource-dir=${node.resources}`, `--pod-manifest-dir=${node.manifests}`, `--kubeconfig=${access}`],
  ])
  t.teardown(() => {
    child.kill('SIGKILL')
    server.close()
  })
  await until('the installation asks the API server', () => asked || undefined)
  t.equal(coreLimit(`/proc/${child.pid ?? 0}/limits`), '1 1')
})
