/** What the mirror pod's probe says of an API server that refuses to tell. */
import t from 'tap'
import { mirrorPodProbe } from '../../../src/static-pods/ready/probe-mirror-pod.js'
import { refuse } from '../../kubernetes/connection/api-server.js'
import { start } from '../../kubernetes/connection/connected.js'

const manifest = { name: 'web', namespace: 'ns' } as Parameters<ReturnType<typeof mirrorPodProbe>['ask']>[0]

for (const [status, user, message, advice] of [
  [403, { token: 'x' }, /^HTTP 403: it needs the verb get on the resource pods in namespace ns,/, /prints the Role/],
  [401, { token: 'x' }, /^HTTP 401: the API server rejects/, /whose credentials the API server accepts/],
  [403, {}, /^HTTP 403: no credential was sent$/, /^give the user in the kubeconfig a token/],
  [401, {}, /^HTTP 401: no credential was sent$/, /^give the user in the kubeconfig a token/],
] as const) {
  await t.test(`HTTP ${status} to a user with ${JSON.stringify(user)}`, async (t) => {
    const { api } = await start(t, { handler: (_, reply) => void refuse(reply, status, 'no') }, user)
    const probe = mirrorPodProbe([{ api, namespace: () => Promise.resolve(undefined) }], 'n1', undefined)
    t.match(await probe.ask(manifest, new AbortController().signal), { state: 'cannot-ask', message, advice })
  })
}
