/** rollback, from outside: its output and refusals, and a running agent that leaves it until a newer version comes. */
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import t from 'tap'
import { loadConfiguration } from '../../../src/config/parse.js'
import { readPublication, replaceFile } from '../../../src/index.js'
import { makeAuthority } from '../../kubernetes/connection/certificates.js'
import { until } from '../../until.js'
import { holdfast, Node } from '../holdfast.js'

/** A certificate of January 2020; its key exists nowhere. */
const expired = `-----BEGIN CERTIFICATE-----
MIIBFzCBvgIBATAKBggqhkjOPQQDAjAYMRYwFAYDVQQDDA1ob2xkZmFzdC50ZXN0
MB4XDTIwMDEwMTAwMDAwMFoXDTIwMDIwMTAwMDAwMFowGDEWMBQGA1UEAwwNaG9s
ZGZhc3QudGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABLKTW37zj3AONKhQ
XjNqpj6DX8xQ5Krq7Y4cMSwX+4MmQqm2p+Z05Sx8hnT4T2PtiV7HWVbzdVfa5H4r
+O7P6AIwCgYIKoZIzj0EAwIDSAAwRQIhAI2Wx+WnhEzRNJuN4vPOemQorb4pE1Hp
HjjQYoJDsLfeAiAyHTMCDqMPMEa4XjTRLanpbjT7hyPmLcMoQ3plJwx2/Q==
-----END CERTIFICATE-----
`

await t.test('sync leaves a rolled-back directory alone until its release', async (t) => {
  const node = new Node(t, [{ path: 'disk/web', history: 3, contents: [{ secret: 'web' }] }])
  const path = node.path('disk/web')
  for (const key of ['1', '2']) {
    node.put('Secret', 'web', { key })
    t.match(await node.run('sync'), { code: 0 })
  }
  t.match(await node.run('rollback', path, '--reason', 'INC-9'), {
    code: 0,
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
  const unchecked = await holdfast(['rollback', path, '--pin', '2h', '-o', 'json', '--no-check'])
  t.match(unchecked, { code: 0, stdout: /"pin": "20\d\d-.*Z"/ })
  t.notMatch(unchecked.stderr, /beforePublish/)
})

await t.test("rollback refuses unexamined content where an agent's configuration may name a check", async (t) => {
  const web = { path: 'disk/web', history: 3, contents: [{ secret: 'web' }] }
  const node = new Node(t, [web])
  const path = node.path('disk/web')
  for (const key of ['1', '2']) {
    node.put('Secret', 'web', { key })
    t.match(await node.run('sync'), { code: 0 })
  }
  mkdirSync(node.path('state'), { recursive: true })
  const rollback = (...args: string[]) =>
    holdfast(['rollback', path, '--pin', 'released', '--state-directory', node.path('state'), ...args])
  /** Writes the status of an agent that has read this file when it had this text. */
  const inForce = (configuration: object | undefined) =>
    writeFileSync(
      node.path('state/status.json'),
      JSON.stringify({ agent: { version: '', writtenAt: '', pid: 7, configuration }, directories: [] }),
    )
  const file = node.configuration
  const { digest } = await loadConfiguration(file)
  const isRefused = async (why: RegExp) => {
    const { code, stderr } = await rollback()
    t.equal(code, 1, stderr)
    t.match(stderr, why)
    t.match(stderr, /--config FILE.*--no-check.*holdfast left \S+disk\/web as it was/s)
    t.equal(node.read('disk/web/key'), '2')
  }
  symlinkSync('state', node.path('link'))
  t.match(await rollback('--state-directory', `${node.path('link')}/..`), { code: 2, stderr: /write the path without/ })
  await isRefused(/no agent that keeps its state in \S+state names a configuration/)
  writeFileSync(node.path('state/status.json'), '{')
  await isRefused(/status\.json is not a status file/)
  inForce(undefined)
  await isRefused(/no agent that keeps its state in \S+state names a configuration/)
  inForce({ file: node.path('state'), digest })
  await isRefused(/state: is not a regular file|state: is a directory/)
  inForce({ file, digest })
  node.configure([{ ...web, history: 2 }])
  await isRefused(/holdfast\.yaml is not what .*agent.*in force.*holdfast reload/)
  node.configure([{ ...web, history: 'many' }])
  await isRefused(/holdfast\.yaml:\d+:\d+: directories\[0\]\.history/)

  const { unproven } = await replaceFile(node.path('probe'), '')
  node.configure([web], { requireProven: true })
  if (unproven) {
    inForce({ file, digest: (await loadConfiguration(file)).digest })
    for (const args of [[], ['--config', file]]) {
      t.match(await rollback(...args), { code: 1, stderr: /remove requireProven/ })
    }
    t.equal(node.read('disk/web/key'), '2')
  }
  const warning = / WARN .*no beforePublish examines what is published at \S+disk\/web: .*--config FILE/
  inForce({ file: node.path('none'), digest })
  const done = await rollback('-o', 'json')
  t.match(done, { code: 0, stderr: warning })
  t.same((JSON.parse(done.stdout) as { unproven?: true }).unproven, unproven)
  t.equal(done.stderr.includes('durability is not proven'), unproven === true)
  t.equal(node.read('disk/web/key'), '1')
  node.configure([{ ...web, path: 'disk/other' }])
  inForce({ file, digest: (await loadConfiguration(file)).digest })
  t.match(await rollback('--to', '2'), { code: 0, stderr: warning })
})

await t.test('rollback refuses an expired certificate, unless --force is given', async (t) => {
  const node = new Node(t, [{ path: 'disk/web', history: 1, contents: [{ secret: 'web' }] }])
  const { certificate: valid } = makeAuthority('valid')
  for (const certificate of [`${valid}${expired}`, 'none']) {
    node.put('Secret', 'web', { 'another.crt': valid, certificate })
    t.match(await node.run('sync'), { code: 0 })
  }
  const path = node.path('disk/web')
  const refused = await holdfast(['rollback', path])
  t.match(refused, { code: 1, stderr: /certificate of the earlier content: a certificate expired at .*--force/ })
  t.equal(node.read('disk/web/certificate'), 'none')
  t.match(await holdfast(['rollback', path, '--force']), { code: 0 })
  t.equal(node.read('disk/web/certificate'), `${valid}${expired}`)
})

await t.test('a running agent sees the rollback, runs the hooks, and publishes newer content', async (t) => {
  const directory = { path: 'disk/web', history: 3, contents: [{ secret: 'web' }] }
  const node = new Node(t, [])
  const path = node.path('disk/web')
  const ran = node.path('ran')
  const afterPublish = [{ exec: ['/bin/sh', '-c', `cat ${path}/key >> ${ran}`] }]
  const refuse = node.path('refuse')
  const beforePublish = [{ exec: ['/bin/sh', '-c', `[ ! -e ${refuse} ]`, 'sh', '{dir}'] }]
  node.configure([{ ...directory, beforePublish, afterPublish }])
  const agent = node.agent([], relative(process.cwd(), node.configuration))
  for (const [index, key] of ['1', '2'].entries()) {
    node.put('Secret', 'web', { key })
    await agent.logged('Published', index + 1)
    await until('its hook has run', () => node.read('ran')?.length === index + 1)
  }
  await until('the record says so', async () => (await readPublication(path))?.pendingHooks.length === 0)
  // The agent's state names its configuration, for those who work in another directory, too.
  t.match(node.read('state/status.json'), `"file": "${node.configuration}"`)
  const rollback = () => holdfast(['rollback', path, '--state-directory', node.path('state')])
  writeFileSync(refuse, '')
  t.match(await rollback(), { code: 1, stderr: /its new content is rejected .*what is published stays/ })
  t.equal(node.read('disk/web/key'), '2')
  rmSync(refuse)
  const { code, stderr } = await rollback()
  t.equal(code, 0, stderr)
  t.notMatch(stderr, /beforePublish/)
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
