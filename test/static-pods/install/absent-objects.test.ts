/** Optional objects that are absent leave nothing: no directory of their own, and none for their kind. */
import { existsSync, readdirSync } from 'node:fs'
import t from 'tap'
import { InstallerApi } from './installer-api.js'

await t.test('install makes no directory for a kind of which all objects are absent, and no --cert-dir', async (t) => {
  const api = await InstallerApi.start(t)
  api.putRevision(6)
  api.objects.delete('/api/v1/namespaces/demo/secrets/client-6')
  const optional = ['--optional-secrets=client,other', '--optional-configmaps=none']
  const certificates = [`--cert-dir=${api.certificates}`, '--optional-cert-secrets=a', '--optional-cert-configmaps=b']
  const { code, stderr } = await api.install(6, [...optional, ...certificates])
  t.equal(code, 0, stderr)
  t.same(readdirSync(api.revision(6)).sort(), ['configmaps', 'web-pod.yaml'])
  t.same(readdirSync(`${api.revision(6)}/configmaps`), ['web-pod'])
  t.notOk(existsSync(api.certificates))
})
