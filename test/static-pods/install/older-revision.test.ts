/** Without POD_NAME installers do not wait for each other: the live manifest decides, under the lock. */
import { existsSync } from 'node:fs'
import t from 'tap'
import { json } from '../../kubernetes/connection/api-server.js'
import { InstallerApi } from './installer-api.js'
import { live } from '../monitor/monitored-node.js'

await t.test('install does not replace a newer live revision by an older one without --allow-older', async (t) => {
  const api = await InstallerApi.start(t)
  for (const revision of [6, 7]) api.putRevision(revision)
  t.equal((await api.install(7)).code, 0)
  for (const more of [[], ['--dry-run']]) {
    const refused = await api.install(6, more)
    t.equal(refused.code, 1, refused.stderr)
    t.match(refused.stderr, /web-pod\.yaml is of revision 7.*revision 6 is older.*--allow-older/)
    t.equal(live(api).metadata.labels.revision, '7')
    t.notOk(existsSync(api.revision(6)), 'nothing was written')
  }
  const allowed = await api.install(6, ['--allow-older'])
  t.equal(allowed.code, 0, allowed.stderr)
  t.equal(live(api).metadata.labels.revision, '6')
  t.equal((await api.install(6)).code, 0, 'the same one again is no older one')
})

await t.test('of two installations at once, the newer one stays', async (t) => {
  for (let round = 0; round < 6; round++) {
    const api = await InstallerApi.start(t)
    for (const revision of [6, 7]) api.putRevision(revision)
    // The older installer comes late, after its first look: it reads its objects while the newer revision becomes live.
    let release = (): void => undefined
    const newer = new Promise<void>((resolve) => (release = resolve))
    api.override = ({ path }, reply) => {
      const object = api.objects.get(path)
      if (object === undefined || !path.endsWith('/secrets/client-6')) return undefined
      void newer.then(() => json(reply, 200, object))
      return true
    }
    const older = api.install(6)
    const first = await api.install(7)
    release()
    const last = await older
    t.equal(first.code, 0, first.stderr)
    t.equal(last.code, 1, last.stderr)
    t.equal(live(api).metadata.labels.revision, '7')
  }
})
