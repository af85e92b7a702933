/** Entries that lie beside a target on purpose. */
import t from 'tap'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { publish } from '../../src/durable/publish/publish.js'
import { directoryPublication } from '../../src/durable/publish/replace.js'
import { holder } from './holders.js'
import { Scene } from './scene.js'

await t.test('check counts old content that stays for its users as no leftover', async (t) => {
  const scene = new Scene(t)
  t.equal((await scene.run('sync')).code, 0)
  await holder(t, 'hold', [], scene.target)
  const request = { target: scene.target, files: { 'tls.crt': '2' }, retireTimeout: 3_600_000 }
  await publish([directoryPublication(new NodeFileSystem(), request)])
  t.match((await scene.check(t)).one('leftovers'), { status: 'OK', found: /^none but old content that stays until/ })
})
