/** The kubelet's API as a real TLS server answers it, with and without a client certificate. The real kubelet: test/node/kubeadm.test.ts. */
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parseManifest } from '../../../src/static-pods/pod/manifest.js'
import { kubeletProbe, type KubeletAccess } from '../../../src/static-pods/ready/probe-kubelet.js'
import { Authority } from '../../e2e/authority.js'
import { podText, scratch } from '../pods.js'

const { signal } = new AbortController()

const pod = (more: object = {}, status = 'True') => ({
  metadata: {
    name: 'web-n1',
    namespace: 'kube-system',
    labels: { revision: '7' },
    annotations: { 'kubernetes.io/config.source': 'file', 'holdfast.dev/rollout': 'abc' },
    ...more,
  },
  spec: { nodeName: 'n1' },
  status: { conditions: [{ type: 'Ready', status, reason: 'ContainersNotReady' }] },
})

/** A kubelet that takes a client certificate of its authority's, or a token. */
async function scene(t: Test) {
  const directory = scratch(t)
  const authority = await Authority.create(directory)
  const [serving, client] = [
    await authority.server('kubelet', ['127.0.0.1']),
    await authority.client('admin', 'admins'),
  ]
  const answer = { items: [pod()] as object[], status: 200 }
  const keys = { cert: readFileSync(serving.certificate), key: readFileSync(serving.key) }
  const options = { ...keys, ca: readFileSync(authority.certificate), requestCert: true, rejectUnauthorized: false }
  const server = createServer(options, (request, response) => {
    const authorized = 'authorized' in request.socket && request.socket.authorized === true
    const isKnown = authorized || request.headers.authorization === 'Bearer very-secret'
    response.statusCode = request.url !== '/pods' ? 404 : isKnown ? answer.status : 401
    response.end(JSON.stringify({ kind: 'PodList', items: answer.items }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const token = join(directory, 'token')
  writeFileSync(token, 'very-secret\n')
  const access: KubeletAccess = {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    authority: authority.certificate,
    certificate: client.certificate,
    key: client.key,
    tokenFile: null,
  }
  const text = podText({ labels: { revision: '7' }, annotations: { 'holdfast.dev/rollout': 'abc' } })
  const manifest = await parseManifest(Buffer.from(text), 'web.yaml')
  const ask = (more: Partial<KubeletAccess> = {}) => kubeletProbe({ ...access, ...more }).ask(manifest, signal)
  return { answer, token, ask }
}

await t.test('kubeletProbe is ready for the very pod of the manifest, once that is Ready', async (t) => {
  const { answer, token, ask } = await scene(t)
  t.same(await ask(), { state: 'ready' }, 'by a client certificate')
  t.same(await ask({ certificate: null, key: null, tokenFile: token }), { state: 'ready' }, 'by a token')
  const isNot = async (item: object, message: RegExp) => {
    answer.items = [item]
    t.match(await ask(), { state: 'not-ready', message })
  }
  await isNot(pod({}, 'False'), /^not Ready \(ContainersNotReady\)$/)
  await isNot(pod({ labels: { revision: '6' } }), /still of revision 6/)
  await isNot(
    pod({ annotations: { 'kubernetes.io/config.source': 'file', 'holdfast.dev/rollout': 'old' } }),
    /still the old pod/,
  )
  await isNot(pod({ annotations: { 'holdfast.dev/rollout': 'abc' } }), /does not run the pod/)
  await isNot(pod({ namespace: 'default' }), /does not run the pod/)
  await isNot(pod({ name: 'web-2-n1' }), /does not run the pod/)
})

await t.test(
  'kubeletProbe answers unknown after a refusal or a wrong question, and no-answer where no process listens',
  async (t) => {
    const { answer, ask } = await scene(t)
    answer.status = 401
    t.match(await ask(), { state: 'unknown', message: /neither the client certificate nor the token/ })
    answer.status = 403
    t.match(await ask(), { state: 'unknown', message: /nodes\/proxy/ })
    t.match(await ask({ authority: null }), { state: 'unknown' })
    t.match(await ask({ tokenFile: '/none' }), { state: 'unknown', message: 'ENOENT' })
    t.match(await ask({ url: 'https://127.0.0.1:1' }), { state: 'no-answer', message: 'ECONNREFUSED' })
  },
)
