/** rollback, from outside: what it prints and refuses, and that a running agent leaves it until something newer comes. */
import { rmSync, writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import t from 'tap'
import { until } from '../until.js'
import { holdfast, Node } from './holdfast.js'

/** Of a key that nobody has, for January 2020. */
const expired = `-----BEGIN CERTIFICATE-----
MIIBFzCBvgIBATAKBggqhkjOPQQDAjAYMRYwFAYDVQQDDA1ob2xkZmFzdC50ZXN0
MB4XDTIwMDEwMTAwMDAwMFoXDTIwMDIwMTAwMDAwMFowGDEWMBQGA1UEAwwNaG9s
ZGZhc3QudGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABLKTW37zj3AONKhQ
XjNqpj6DX8xQ5Krq7Y4cMSwX+4MmQqm2p+Z05Sx8hnT4T2PtiV7HWVbzdVfa5H4r
+O7P6AIwCgYIKoZIzj0EAwIDSAAwRQIhAI2Wx+WnhEzRNJuN4vPOemQorb4pE1Hp
HjjQYoJDsLfeAiAyHTMCDqMPMEa4XjTRLanpbjT7hyPmLcMoQ3plJwx2/Q==
-----END CERTIFICATE-----
`

await t.test('sync leaves what was rolled back, until it is released', async (t) => {
  const node = new Node(t, [{ path: 'disk/web', history: 3, contents: [{ secret: 'web' }] }])
  const path = node.path('disk/web')
  for (const key of ['1', '2']) {
    node.put('Secret', 'web', { key })
    t.match(await node.run('sync'), { code: 0 })
  }
  t.match(await holdfast(['rollback', path, '--reason', 'INC-9', '--state-directory', node.root]), {
    code: 0,
    stderr:
      /^\{"level":"warn",[^\n]*no beforePublish examines what is published at \S+disk\/web: .*--config FILE"\}\n$/,
    stdout:
      /^rolled back \S+ to 1 sha256:[0-9a-f]{64}\npinned until an object is newer than those that were rolled back from\n$/,
  })
  t.equal(node.read('disk/web/key'), '1')
  t.match(await node.run('sync'), { code: 1, stdout: /RolledBack.*is rolled back since .* \(INC-9\)/ })
  t.equal(node.read('disk/web/key'), '1')
  t.match((await holdfast(['history', path])).stdout, /\n3 .* rolled back +present/)
  t.match(await holdfast(['release', path]), { code: 0, stdout: `released ${path}\n` })
  t.match(await node.run('sync'), { code: 0 })
  t.equal(node.read('disk/web/key'), '2')
  t.match(await holdfast(['rollback', path, '--to', '77', '-o', 'json']), { code: 1, stdout: /no earlier content 77/ })
  node.configure([{ path: 'disk/other', contents: [{ secret: 'web' }] }])
  const { code, stderr } = await node.run('rollback', path)
  t.equal(code, 2)
  t.match(
    stderr,
    /disk\/web is not a directory of \S+, which has \S+disk\/other; with --no-check, no configuration is asked/,
  )
  t.match(await holdfast(['rollback', path, '--pin', 'ever']), {
    code: 2,
    stderr: /be newer, released, or .* 2h, 1m30s/,
  })
  t.match(await holdfast(['rollback', path, '--to', 'x']), { code: 2, stderr: /number/ })
  t.match(await holdfast(['rollback', path, '--pin', '2h', '-o', 'json', '--no-check']), {
    code: 0,
    stdout: /"pin": "20\d\d-.*Z"/,
    stderr: '',
  })
})

await t.test('a certificate that has expired is not gone back to, unless it is forced', async (t) => {
  const node = new Node(t, [{ path: 'disk/web', history: 1, contents: [{ secret: 'web' }] }])
  for (const certificate of [expired, 'none']) {
    node.put('Secret', 'web', { certificate })
    t.match(await node.run('sync'), { code: 0 })
  }
  const path = node.path('disk/web')
  const refused = await holdfast(['rollback', path])
  t.match(refused, { code: 1, stderr: /certificate of the earlier content: a certificate expired at .*--force/ })
  t.equal(node.read('disk/web/certificate'), 'none')
  t.match(await holdfast(['rollback', path, '--force']), { code: 0 })
  t.equal(node.read('disk/web/certificate'), expired)
})

await t.test('a running agent sees it, runs the hooks, and publishes what is newer', async (t) => {
  const directory = { path: 'disk/web', history: 3, contents: [{ secret: 'web' }] }
  const node = new Node(t, [])
  const path = node.path('disk/web')
  const ran = node.path('ran')
  const afterPublish = [{ exec: ['/bin/sh', '-c', `cat ${path}/key >> ${ran}`] }]
  const refuse = node.path('refuse')
  const beforePublish = [{ exec: ['/bin/sh', '-c', `[ ! -e ${refuse} ]`, 'sh', '{dir}'] }]
  node.configure([{ ...directory, beforePublish, afterPublish }])
  const agent = node.agent([], [], relative(process.cwd(), node.configuration))
  for (const [index, key] of ['1', '2'].entries()) {
    node.put('Secret', 'web', { key })
    await agent.logged('Published', index + 1)
    await until('its hook has run', () => node.read('ran')?.length === index + 1)
  }
  // The agent's state names its configuration, for those who work in another directory, too.
  t.match(node.read('state/status.json'), `"file": "${node.configuration}"`)
  const rollback = () => holdfast(['rollback', path, '--state-directory', node.path('state')])
  writeFileSync(refuse, '')
  t.match(await rollback(), { code: 1, stderr: /its new content is rejected .*what is published stays/ })
  t.equal(node.read('disk/web/key'), '2')
  rmSync(refuse)
  t.match(await rollback(), { code: 0, stderr: '' })
  t.match(await agent.logged('RolledBack'), { level: 'warn', directory: path })
  await until('its hook has run', () => node.read('ran') === '121')
  await until('its status says so', async () => (await node.run('status')).stdout.includes('RolledBack'))
  t.equal(node.read('disk/web/key'), '1')
  writeFileSync(node.path('disk/web/key'), 'edited')
  agent.signal('SIGHUP')
  await agent.logged('RolledBack', 2)
  t.equal(node.read('disk/web/key'), 'edited', 'drift is not repaired')
  node.put('Secret', 'web', { key: '3' })
  await until('it is published', () => node.read('disk/web/key') === '3')
  t.match((await holdfast(['history', path])).stdout, /^SEQUENCE.*\n4 .*published +present/)
  t.equal(await agent.end('SIGTERM'), 0)
})
