import { existsSync, readdirSync } from 'node:fs'
import t from 'tap'
import { silent } from '../../../src/log.js'
import { ApiReader } from '../../../src/kubernetes/reads/api-reader.js'
import { waitForInstallers } from '../../../src/static-pods/install/wait-for-installers.js'
import { connectTo } from '../../kubernetes/connection/connected.js'
import { InstallerApi, notFoundPage } from './installer-api.js'

const { signal } = new AbortController()

await t.test("an optional object is absent by the API server's word alone, not by a proxy's", async (t) => {
  const api = await InstallerApi.start(t)
  api.putRevision(6)
  api.override = ({ path }, reply) => {
    if (!path.endsWith('/secrets/extra-6')) return undefined
    notFoundPage(reply)
    return true
  }
  const refused = await api.install(6, ['--optional-secrets=extra'])
  t.equal(refused.code, 1, refused.stderr)
  t.match(refused.stderr, /Secret demo\/extra-6.*HTTP 404/)
  t.notOk(existsSync(api.resources), 'nothing was written')
  t.notOk(existsSync(api.manifests), 'no manifest was touched')
  t.match(api.events, [{ reason: 'StaticPodInstallerFailed', note: /extra-6/ }])

  api.override = () => undefined
  const absent = await api.install(6, ['--optional-secrets=extra'])
  t.equal(absent.code, 0, absent.stderr)
  t.same(readdirSync(`${api.revision(6)}/secrets`), ['client'])
})

await t.test('a name in both lists may be absent, as in library-go', async (t) => {
  const api = await InstallerApi.start(t)
  api.putRevision(6)
  const { code, stderr } = await api.install(6, ['--secrets=both', '--optional-secrets=both'])
  t.equal(code, 0, stderr)
  t.same(readdirSync(`${api.revision(6)}/secrets`), ['client'], 'what is absent leaves no directory')
})

await t.test("an installer does not wait for another of its own revision, as library-go's does not", async (t) => {
  const api = await InstallerApi.start(t)
  const pod = (name: string, ended: boolean) => ({
    metadata: { name },
    spec: { nodeName: 'n1' },
    status: { containerStatuses: [{ state: ended ? { terminated: {} } : { running: {} } }] },
  })
  const client = await connectTo(t, api.server.url)
  const wait = (...pods: object[]) => {
    api.objects.set('/api/v1/namespaces/demo/pods', { metadata: { resourceVersion: '1' }, items: pods })
    const request = { namespace: 'demo', revision: 6, nodeName: 'n1', podName: 'installer-6-retry-1-n1' }
    const timing = { poll: 1, limit: 20, pause: 1 }
    return waitForInstallers(new ApiReader(client, { log: silent }), { ...request, timing }, silent, signal)
  }
  const own = pod('installer-6-retry-1-n1', false)
  t.match(await wait(pod('installer-6-n1', false), own), { metadata: { name: 'installer-6-retry-1-n1' } })
  await t.rejects(wait(pod('installer-5-n1', false), own), /did not end in time: installer-5-n1/)
  t.match(await wait(pod('installer-5-n1', true), own), { metadata: { name: 'installer-6-retry-1-n1' } })
})
