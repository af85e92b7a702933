import { existsSync, readdirSync } from 'node:fs'
import t from 'tap'
import { InstallerApi, notFoundPage } from './installer-api.js'

t.setTimeout(480_000)

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
