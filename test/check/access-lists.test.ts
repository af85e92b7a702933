import { spawnSync } from 'node:child_process'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Scene } from './scene.js'

await t.test('check warns of an ACL that opens a private file', async (t) => {
  const scene = new Scene(t)
  t.equal((await scene.run('sync')).code, 0)
  t.strictSame((await scene.check(t)).all('acl'), [])
  const file = join(scene.target, 'tls.crt')
  if (spawnSync('setfacl', ['-m', 'u:1000:r', file]).status !== 0) {
    t.comment('no setfacl, or a file system without ACLs')
    return
  }
  t.match((await scene.check(t)).one('acl'), {
    status: 'WARN',
    found: 'an ACL opens files that their mode keeps private: tls.crt (user:1000:r--)',
    advice: new RegExp(`setfacl -b, as of ${file}$`),
  })
  t.equal((await scene.run('verify')).code, 0, 'its mask is no drift of the mode')
  chmodSync(file, 0o644)
  t.strictSame((await scene.check(t)).all('acl'), [], 'a file that is open anyway')
})
