/** One pass with a source that is out of reach, or configured wrongly. */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Server } from 'node:net'
import t, { type Test } from 'tap'
import { begin, ended, Node } from './holdfast.js'

const canary = 'CANARY-77aa'
const web = { path: 'disk/web', contents: [{ secret: 'web' }] }

/** A server that takes connections and never answers. */
async function silentServer(t: Test): Promise<Server> {
  const server = createServer(() => {}).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return server
}

function kubeconfigFor(server: Server): string {
  const { port } = server.address() as AddressInfo
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'x',
    clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${port}` } }],
    users: [{ name: 'u', user: { token: canary } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
  })
}

await t.test('sync exits with 1 where the source is silent; with --allow-stale with 0 if all is whole', async (t) => {
  const node = new Node(t, [web])
  node.put('Secret', 'web', { password: canary })
  t.equal((await node.run('sync')).code, 0)
  const kubeconfig = node.path('kubeconfig')
  node.configure([web], { source: { namespace: 'demo', kubernetes: { kubeconfig } } })
  writeFileSync(kubeconfig, kubeconfigFor(await silentServer(t)))
  const strict = await node.run('sync', '--timeout', '500ms', '-o', 'json')
  t.equal(strict.code, 1, strict.stderr)
  t.match(JSON.parse(strict.stdout), { directories: [{ outcome: 'failed', reason: 'SourceUnavailable' }] })
  const stale = await node.run('sync', '--timeout', '500ms', '--allow-stale', '-o', 'json')
  t.equal(stale.code, 0, stale.stderr)
  t.match(JSON.parse(stale.stdout), { directories: [{ outcome: 'stale', digest: /^sha256:/ }] })
  writeFileSync(node.path('disk/web/password'), 'damaged')
  t.equal((await node.run('sync', '--timeout', '500ms', '--allow-stale')).code, 1, 'not whole: not good enough')
  t.notMatch(strict.stdout + strict.stderr + stale.stdout + stale.stderr, canary)

  // A separate server: the end of an earlier connection may arrive late.
  const server = await silentServer(t)
  writeFileSync(kubeconfig, kubeconfigFor(server))
  const connected = once(server, 'connection')
  const waiting = begin(['sync', '--config', node.configuration])
  const end = ended(waiting)
  await connected
  waiting.kill('SIGINT')
  t.equal((await end).code, 130, 'Ctrl-C while it waits')
})

await t.test('sync reports a lasting mistake in the source at once', async (t) => {
  const node = new Node(t, [web])
  node.put('Secret', 'web', { password: canary })
  t.equal((await node.run('sync')).code, 0)
  const kubeconfig = node.path('kubeconfig')
  writeFileSync(node.path('garbage'), 'clusters: 1')
  writeFileSync(kubeconfig, kubeconfigFor(await silentServer(t)))
  const kubernetes = (fields: object) => ({ source: { namespace: 'demo', kubernetes: fields } })
  const mistakes: [string, object, RegExp][] = [
    ['an unknown context', kubernetes({ kubeconfig, context: 'nope' }), /there is no context "nope"/],
    ['no kubeconfig', kubernetes({ kubeconfig: node.path('absent') }), /cannot read .*absent \(ENOENT\)/],
    ['a kubeconfig that is none', kubernetes({ kubeconfig: node.path('garbage') }), /garbage: clusters/],
    ['no service account', kubernetes({}), /this is not a pod/],
    [
      'no directory of objects',
      { source: { namespace: 'demo', files: { path: node.path('absent') } } },
      /absent.*ENOENT/,
    ],
    ['a file in its place', { source: { namespace: 'demo', files: { path: kubeconfig } } }, /kubeconfig.*ENOTDIR/],
  ]
  // Whoever waited for the source would wait longer than any test.
  const patient = ['--timeout', '1h']
  for (const [name, source, message] of mistakes) {
    node.configure([web], source)
    const strict = await node.run('sync', ...patient, '-o', 'json')
    t.equal(strict.code, 2, name)
    t.match(
      JSON.parse(strict.stdout),
      { directories: [{ outcome: 'failed', reason: 'SourceUnavailable', message }] },
      name,
    )
    t.equal((await node.run('sync', ...patient, '--dry-run')).code, 2, name)
    t.equal((await node.run('diff', node.path('disk/web'), ...patient)).code, 2, `${name}: diff`)
    t.equal((await node.run('sync', ...patient, '--allow-stale')).code, 0, `${name}: what is on the disk is whole`)
  }
})
