/** A live manifest that is unreadable as a pod hides its revision: the monitor says so, and counts the revisions that its text names. */
import { existsSync, readFileSync } from 'node:fs'
import t from 'tap'
import { InstallerApi } from '../install/installer-api.js'
import { live } from './monitored-node.js'

await t.test(
  'monitor replaces a torn manifest that names no revision, with one warning of its assumption',
  async (t) => {
    const api = await InstallerApi.start(t)
    api.putRevision(6)
    for (const text of ['{', '\0'.repeat(512), '']) {
      api.makeManifest(text)
      for (const more of [['--dry-run'], []]) {
        const { code, stderr } = await api.install(6, more)
        t.equal(code, 0, stderr)
        const warnings = stderr.split('\n').filter((line) => /web-pod\.yaml is not readable as a pod/.test(line))
        t.equal(warnings.length, 1, stderr)
        t.match(warnings[0], /assumes that revision 6 is not older than the live one/)
      }
      t.equal(live(api).metadata.labels.revision, '6')
    }
  },
)

await t.test('monitor does not replace a torn manifest of a newer revision by an older one', async (t) => {
  const api = await InstallerApi.start(t)
  for (const revision of [6, 7]) api.putRevision(revision)
  const torn = `{"apiVersion":"v1","kind":"Pod","spec":{"volumes":[{"hostPath":{"path":"${api.revision(7)}"}}],"cont`
  api.makeManifest(torn)
  for (const more of [['--dry-run'], []]) {
    const refused = await api.install(6, more)
    t.equal(refused.code, 1, refused.stderr)
    t.match(
      refused.stderr,
      /web-pod\.yaml is not readable as a pod.*names revision 7.*revision 6 is older.*--allow-older/,
    )
    t.equal(readFileSync(api.manifest(), 'utf8'), torn)
    t.notOk(existsSync(api.revision(6)), 'nothing was written')
  }
  const repaired = await api.install(7)
  t.equal(repaired.code, 0, repaired.stderr)
  t.match(repaired.stderr, /web-pod\.yaml is not readable as a pod/)
  t.equal(live(api).metadata.labels.revision, '7')
  api.makeManifest(torn)
  const allowed = await api.install(6, ['--allow-older'])
  t.equal(allowed.code, 0, allowed.stderr)
  t.equal(live(api).metadata.labels.revision, '6')
})
