/** The kubelet's API as a real TLS server answers it, with and without a client certificate. The real kubelet: test/node/kubeadm.test.ts. */
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parseManifest } from '../../../src/static-pods/pod/manifest.js'
import { kubeletProbe } from '../../../src/static-pods/ready/probe-kubelet.js'
import type { KubeletAccess } from '../../../src/static-pods/ready/readiness.js'
import { Authority } from '../../e2e/authority.js'
import { SimulatedTime } from '../../simulated-time.js'
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
  // The five seconds of a question are nobody's here: a busy machine takes longer.
  new SimulatedTime(t)
  const directory = scratch(t)
  const authority = await Authority.create(directory)
  const [serving, client] = [
    await authority.server('kubelet', ['127.0.0.1']),
    await authority.client('admin', 'admins'),
  ]
  const answer = { items: [pod()] as object[], status: 200, log: '' }
  const keys = { cert: readFileSync(serving.certificate), key: readFileSync(serving.key) }
  const options = { ...keys, ca: readFileSync(authority.certificate), requestCert: true, rejectUnauthorized: false }
  const server = createServer(options, (request, response) => {
    const authorized = 'authorized' in request.socket && request.socket.authorized === true
    const isKnown = authorized || request.headers.authorization === 'Bearer very-secret'
    const isLog = request.url?.startsWith('/containerLogs/kube-system/web-n1/web?tailLines=5') === true
    response.statusCode = request.url !== '/pods' && !isLog ? 404 : isKnown ? answer.status : 401
    response.end(isLog ? answer.log : JSON.stringify({ kind: 'PodList', items: answer.items }))
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
  const lastWords = () => kubeletProbe(access).lastWords?.(manifest, signal)
  return { answer, token, ask, lastWords }
}

await t.test('kubeletProbe is ready for the very pod of the manifest, once that is Ready', async (t) => {
  const { answer, token, ask } = await scene(t)
  t.match(await ask(), { state: 'ready' }, 'by a client certificate')
  t.match(await ask({ certificate: null, key: null, tokenFile: token }), { state: 'ready' }, 'by a token')
  const isNot = async (item: object, message: RegExp, state = 'not-ready') => {
    answer.items = [item]
    t.match(await ask(), { state, message })
  }
  await isNot(pod({}, 'False'), /^not Ready \(ContainersNotReady\)$/)
  await isNot(pod({ labels: { revision: '6' } }), /still of revision 6/)
  await isNot(
    pod({ annotations: { 'kubernetes.io/config.source': 'file', 'holdfast.dev/rollout': 'old' } }),
    /still the old pod/,
  )
  for (const other of [
    { annotations: { 'holdfast.dev/rollout': 'abc' } },
    { namespace: 'default' },
    { name: 'web-2-n1' },
  ])
    await isNot(pod(other), /does not run the pod/, 'absent')
})

await t.test(
  'kubeletProbe cannot ask after a refusal or a wrong question, and has no answer where no process listens',
  async (t) => {
    const { answer, ask } = await scene(t)
    answer.status = 401
    t.match(await ask(), { state: 'cannot-ask', message: /neither the client certificate nor the token/ })
    answer.status = 403
    t.match(await ask(), { state: 'cannot-ask', message: /nodes\/proxy/ })
    t.match(await ask({ authority: null }), { state: 'cannot-ask' })
    t.match(await ask({ tokenFile: '/none' }), { state: 'cannot-ask', message: 'ENOENT' })
    t.match(await ask({ url: 'https://127.0.0.1:1' }), { state: 'no-answer', message: 'ECONNREFUSED' })
  },
)

/** A pod with one container in this state. */
function withContainer(container: object, init: object[] = []): object {
  const status = { conditions: [{ type: 'Ready', status: 'False', reason: 'ContainersNotReady' }] }
  const statuses = { containerStatuses: [{ name: 'web', ready: false, restartCount: 0, ...container }] }
  return { ...pod(), status: { ...status, ...statuses, initContainerStatuses: init } }
}

await t.test('kubeletProbe tells why a pod is not ready, and how its log ends', async (t) => {
  const { answer, ask, lastWords } = await scene(t)
  const said = async (item: object): Promise<string> => {
    answer.items = [item]
    const result = await ask()
    return 'message' in result ? result.message : result.state
  }
  const terminated = { exitCode: 3, reason: 'Error' }
  const waiting = { reason: 'CrashLoopBackOff', message: 'back-off 10s restarting \u001b[31m' }
  const crashes = withContainer({ restartCount: 4, state: { waiting }, lastState: { terminated } })
  t.equal(
    await said(crashes),
    'not Ready (ContainersNotReady; container web: CrashLoopBackOff: back-off 10s restarting \\u001b[31m, ' +
      'ended with exit code 3, started again 4 times)',
  )
  answer.log = 'old\n\nlast \u001b[31mwords\n'
  t.equal(await lastWords(), 'the log of container web ends: old | last \\u001b[31mwords')
  const missing = { reason: 'ErrImageNeverPull', message: 'Container image "web:2" is not present' }
  const image =
    'not Ready (ContainersNotReady; container web: ErrImageNeverPull: Container image "web:2" is not present)'
  t.equal(await said(withContainer({ state: { waiting: missing } })), image)
  const killed = { terminated: { exitCode: 137, reason: 'OOMKilled' } }
  const init = [{ name: 'first', ready: true, restartCount: 0, state: { terminated: { exitCode: 0 } } }]
  const again = withContainer({ restartCount: 1, state: { running: {} }, lastState: killed }, init)
  t.match(await said(again), /; container web: ended with exit code 137 \(OOMKilled\), started again once\)$/)
  answer.status = 403
  t.equal(await lastWords(), undefined, 'a kubelet that shows no log')
  answer.status = 200
  const life = { startedAt: '2026-01-01T00:00:00Z', finishedAt: '2026-01-01T00:00:14Z', exitCode: 137 }
  const status = { conditions: [{ type: 'Ready', status: 'True' }] }
  const revived = { name: 'web', ready: true, restartCount: 2, lastState: { terminated: life } }
  answer.items = [{ ...pod(), status: { ...status, containerStatuses: [revived] } }]
  t.same(await ask(), { state: 'ready', restarts: 2, lived: 14_000 })
})
