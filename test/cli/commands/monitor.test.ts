/** `monitor --kubeconfig`: what the mirror pod says, of a real server over TLS. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { json, startServer } from '../../kubernetes/connection/api-server.js'
import { authority, serving } from '../../kubernetes/connection/connected.js'
import { base64, kubeconfig } from '../../kubernetes/credentials/kubeconfig-text.js'
import { NodeDisk, podText } from '../../static-pods/pods.js'
import { holdfast } from '../holdfast.js'

const mirrorPod = (revision: number) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web-n1', namespace: 'demo', labels: { revision: String(revision) } },
  status: { conditions: [{ type: 'Ready', status: 'True' }] },
})

/** A node with revision 7 installed, and a server with its mirror pod of this revision. */
async function scene(t: Test, revision: number) {
  const node = new NodeDisk(t)
  node.makeRevision(7)
  node.makeManifest(podText({ labels: { revision: '7' } }))
  const server = await startServer({ serving, handler: (_, reply) => json(reply, 200, mirrorPod(revision)) })
  t.teardown(() => server.close())
  const file = join(node.root, 'kubeconfig')
  const cluster = { server: server.url, 'certificate-authority-data': base64(authority.certificate) }
  writeFileSync(file, kubeconfig(cluster, { token: 'very-secret' }))
  const flags = [
    'monitor',
    '--ready-for=0s',
    '--revision=7',
    '--target-name=web',
    `--resource-dir=${node.resources}`,
    `--manifests-dir=${node.manifests}`,
    `--kubeconfig=${file}`,
  ]
  return { flags, server }
}

await t.test('monitor records a revision that is ready by its mirror pod, in words and as JSON', async (t) => {
  const { flags, server } = await scene(t, 7)
  const text = await holdfast([...flags, '--node-name=N1', '--fallback-timeout-duration=5m'])
  t.match(
    text,
    { code: 0, stdout: 'revision 7 is ready; the monitor recorded it as the last known good one\n' },
    text.stderr,
  )
  t.ok(server.requests.every(({ method, path }) => method === 'GET' && path.endsWith('/pods/web-n1')))
  const again = await holdfast([...flags, '-o', 'json'], { env: { NODE_NAME: 'N1' } })
  t.match(JSON.parse(again.stdout), { outcome: 'ready', revision: 7 })
  t.notMatch(text.stdout + text.stderr + again.stdout + again.stderr, /very-secret/)
})

await t.test(
  'monitor takes the mirror pod of another revision for not ready, and finds nothing to fall back to',
  async (t) => {
    const { flags } = await scene(t, 6)
    const ended = await holdfast([...flags, '--node-name=n1', '--fallback-timeout-duration=1ms'])
    t.match(ended, { code: 1, stdout: /^revision 7 did not become ready, and there is none to fall back to \(/ })
  },
)

await t.test('monitor names the flags that the mirror pod needs before it asks anything', async (t) => {
  const { flags, server } = await scene(t, 7)
  t.match(await holdfast(flags), { code: 2, stderr: /--node-name \(or NODE_NAME\) is missing/ })
  const wrong = await holdfast(flags, { env: { NODE_NAME: 'No Name' } })
  t.match(wrong, { code: 2, stderr: /NODE_NAME is "No Name": it must be a name that Kubernetes allows/ })
  t.equal(server.requests.length, 0)
})
