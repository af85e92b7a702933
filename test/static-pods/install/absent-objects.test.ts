/** Optional objects that are absent leave nothing: no directory of their own, none for their kind, and no warning. */
import { existsSync, readdirSync } from 'node:fs'
import t from 'tap'
import { begin, ended } from '../command.js'
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

await t.test('install prints no warning of Node, however many objects it reads at a time', async (t) => {
  const api = await InstallerApi.start(t)
  api.putRevision(6)
  const names = Array.from({ length: 20 }, (_, index) => `absent-${index}`).join(',')
  const { code, stderr } = await ended(begin(api.args(6, [`--optional-secrets=${names}`, '--log-format=json'])))
  t.equal(code, 0, stderr)
  t.same(
    stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{')),
    [],
  )
})
