import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { executable } from '../project.js'
import { scratch } from '../durable/scratch.js'
import { until } from '../until.js'

/** Soft and hard limit, in bytes. */
function coreLimit(limits: string): string | undefined {
  return /Max core file size\s+(\S+)\s+(\S+)/.exec(readFileSync(limits, 'utf8'))?.slice(1).join(' ')
}

await t.test('commands that read secrets from the disk end with core files turned off', async (t) => {
  const directory = scratch(t)
  const at = (name: string): string => join(directory, name)
  for (const name of ['manifests', 'objects']) mkdirSync(at(name))
  writeFileSync(
    at('web.yaml'),
    '{ apiVersion: v1, kind: Pod, metadata: { name: web }, spec: { containers: [{ name: web, image: web }] } }',
  )
  writeFileSync(
    at('holdfast.yaml'),
    JSON.stringify({
      apiVersion: 'holdfast.dev/v1alpha1',
      kind: 'AgentConfiguration',
      source: { files: { path: 'objects' } },
      directories: [{ path: at('target'), contents: [{ secret: 'tls' }] }],
    }),
  )
  // The process's own view of its limits at its end.
  const keep = `fs.writeFileSync(${JSON.stringify(at('limits'))}, fs.readFileSync("/proc/self/limits"))`
  writeFileSync(at('at-exit.cjs'), `const fs = require("node:fs"); process.on("exit", () => ${keep})`)
  for (const args of [
    ['install', at('web.yaml'), '--pod-manifest-dir', at('manifests')],
    ['verify', '--config', at('holdfast.yaml')],
  ]) {
    spawnSync(process.execPath, ['--require', at('at-exit.cjs'), executable, ...args], { stdio: 'ignore' })
    t.equal(coreLimit(at('limits')), '1 1', args.join(' '))
    rmSync(at('limits'))
  }
})

await t.test('an installation turns core files off before it reads a secret from the API', async (t) => {
  const directory = scratch(t)
  let asked = false
  // The server accepts a request and never answers: all that precedes the first secret has happened by then.
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    asked = true
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const kubeconfig = join(directory, 'kubeconfig')
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'c',
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
      clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${port}` } }],
      users: [{ name: 'u', user: { token: 'none' } }],
    }),
  )
  for (const name of ['resources', 'manifests']) mkdirSync(join(directory, name))
  const child = spawn(
    process.execPath,
    [
      executable,
      'install',
      '--revision=1',
      '--namespace=demo',
      '--pod=web-pod',
      '--configmaps=web-pod',
      '--node-name=n1',
      `--resource-dir=${join(directory, 'resources')}`,
      `--pod-manifest-dir=${join(directory, 'manifests')}`,
      `--kubeconfig=${kubeconfig}`,
    ],
    { stdio: 'ignore' },
  )
  t.teardown(() => {
    child.kill('SIGKILL')
    server.close()
  })
  await until('the installation asks the API server', () => asked || undefined)
  t.equal(coreLimit(`/proc/${child.pid ?? 0}/limits`), '1 1')
})
