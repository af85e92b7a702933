/** The agent on objects in files, from outside: processes, files, HTTP. */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import { readPublication } from '../../../src/index.js'
import { until } from '../../until.js'
import type { Node } from '../holdfast.js'
import { canary, web, webNode } from '../web-node.js'

/** Everything that a process of ours has said anywhere but in the published files. */
async function everythingSaid(node: Node): Promise<string> {
  const status = await node.run('status')
  const json = await node.run('status', '-o', 'json')
  const verify = await node.run('verify', '-o', 'json')
  const sync = await node.run('sync', '--dry-run')
  const records = readdirSync(node.path('disk'))
    .filter((name) => name.startsWith('.holdfast-'))
    .map((name) => node.read(`disk/${name}`) ?? '')
  return [
    ...[status, json, verify, sync].flatMap(({ stdout, stderr }) => [stdout, stderr]),
    ...records,
    node.read('agent.log'),
    node.read('state/status.json'),
  ].join('\n')
}

await t.test(
  'the agent publishes, updates and removes a key; every place reports it, and none shows content',
  async (t) => {
    const node = webNode(t)
    const agent = node.agent()
    const first = await agent.logged('Published')
    t.match(first, {
      level: 'info',
      operation: `publish ${node.path('disk/web')}`,
      directory: node.path('disk/web'),
      outcome: 'created',
      sequence: 1,
      objects: [
        { kind: 'Secret', namespace: 'demo', name: 'web', resourceVersion: /^file:/ },
        { kind: 'ConfigMap', name: 'conf' },
      ],
      milliseconds: Number,
    })
    t.equal(node.read('disk/web/secret/password'), `${canary}-1`)
    t.equal(node.read('disk/web/app.conf'), 'port=80\n')
    t.equal(statSync(node.path('disk/web/secret/password')).mode & 0o7777, 0o600)

    node.put('Secret', 'web', { password: `${canary}-2` })
    const second = await agent.logged('Published', 2)
    t.match(second, { outcome: 'replaced', causes: ['Secret demo/web'] })
    t.equal(node.read('disk/web/secret/password'), `${canary}-2`)
    t.notOk(existsSync(node.path('disk/web/secret/user')), 'a key that was removed is removed')

    t.match(await agent.get('/livez'), { status: 200, text: 'ok\n' })
    t.match(await agent.get('/healthz'), { status: 200 })
    t.strictSame(await agent.get('/readyz'), {
      status: 200,
      text: `[+]${node.path('disk/web')} ok\nreadyz check passed\n`,
    })
    t.match(await agent.get('/nothing'), { status: 404 })
    const { text: metrics } = await agent.get('/metrics')
    const directory = node.path('disk/web')
    t.match(metrics, `holdfast_publishes_total{directory="${directory}",result="created"} 1`)
    t.match(metrics, `holdfast_publishes_total{directory="${directory}",result="replaced"} 1`)
    t.match(metrics, `holdfast_directory_ready{directory="${directory}"} 1`)

    const { digest } = (await readPublication(directory)) ?? {}
    await until('the status is written', async () =>
      (await node.run('status', '-o', 'json')).stdout.includes(String(digest)),
    )
    const status = JSON.parse((await node.run('status', '-o', 'json')).stdout) as object
    const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
    t.match(status, {
      directories: [
        {
          path: directory,
          conditions: [
            {
              type: 'Published',
              status: 'True',
              reason: 'Published',
              message: String,
              lastTransitionTime: time,
            },
            { type: 'Fresh', status: 'True', reason: 'Published', message: String, lastTransitionTime: time },
          ],
          objects: [
            { kind: 'Secret', namespace: 'demo', name: 'web', uid: '', resourceVersion: /^file:[0-9a-f]{32}$/ },
            { kind: 'ConfigMap' },
          ],
          digest,
          publishedAt: time,
          confirmedAt: time,
        },
      ],
    })
    t.equal(statSync(node.path('state/status.json')).mode & 0o7777, 0o600)
    const table = await node.run('status')
    t.match(table.stdout, /^PATH +PUBLISHED +FRESH +REASON +AGE +CONFIRMED +DIGEST\n/)
    t.match(table.stdout, /True +True +Published/)
    t.match(await node.run('verify'), { code: 0, stdout: /web +ok/ })
    t.notMatch((await everythingSaid(node)) + metrics, canary)
    t.equal(await agent.end('SIGTERM'), 0)
    t.match((await node.run('status')).stdout, /ended in order/)
  },
)

await t.test(
  'a missing object keeps the directory unpublished, readyz says why, and a broken file changes nothing',
  async (t) => {
    const node = webNode(t)
    node.remove('web')
    const agent = node.agent()
    await agent.logged('ObjectMissing')
    t.match(await agent.get('/readyz'), {
      status: 503,
      text: /\[-\].*disk\/web ObjectMissing: .*Secret demo\/web/,
    })
    t.notOk(existsSync(node.path('disk/web')))
    t.match((await agent.get('/metrics')).text, `holdfast_directory_ready{directory="${node.path('disk/web')}"} 0`)
    t.match(await node.run('verify'), { code: 4, stdout: /unpublished/ })

    node.put('Secret', 'web', { password: `${canary}-1` })
    await agent.logged('Published')
    t.equal((await agent.get('/readyz')).status, 200)
    writeFileSync(join(node.objects, 'web.yaml'), `kind: Secret\nstringData: {password: ${canary}-broken\n`)
    await until('the bad file is reported', () =>
      agent.log().some(({ reason, level }) => reason === 'ObjectInvalid' && level !== 'info'),
    )
    t.equal(node.read('disk/web/secret/password'), `${canary}-1`)
    t.equal((await agent.get('/readyz')).status, 200)
    t.notMatch(await everythingSaid(node), canary)
  },
)

await t.test('an agent killed at any time leaves intact content, and writes nothing again', async (t) => {
  const node = webNode(t)
  const agent = node.agentProcess()
  const { sequence } = await agent.logged('Published')
  const { digest } = (await readPublication(node.path('disk/web'))) ?? {}
  await until('the status is there', () => node.read('state/status.json')?.includes(String(digest)))
  const transition = (text: string | undefined) =>
    (JSON.parse(text ?? '') as { directories: { conditions: object[] }[] }).directories[0]?.conditions[0]
  const before = transition(node.read('state/status.json'))
  t.equal(await agent.end('SIGKILL'), 'SIGKILL')
  const inode = statSync(node.path('disk/web')).ino
  const again = node.agent()
  const line = await again.logged('Unchanged')
  t.match(line, { outcome: 'unchanged', sequence })
  t.equal(statSync(node.path('disk/web')).ino, inode)
  t.equal(await again.end('SIGTERM'), 0)
  t.match(transition(node.read('state/status.json')), before, 'conditions go on over a restart')
})

await t.test("the agent leaves another program's directory alone until adopt allows it", async (t) => {
  const node = webNode(t)
  execFileSync('mkdir', ['-p', node.path('disk/web')])
  writeFileSync(node.path('disk/web/precious'), 'mine')
  const agent = node.agent()
  t.match(await agent.logged('TargetForeign'), { level: 'error', published: false })
  t.match(await agent.get('/readyz'), { status: 503, text: /TargetForeign/ })
  t.strictSame(readdirSync(node.path('disk/web')), ['precious'])
  node.configure([{ ...web, adopt: true }])
  agent.signal('SIGHUP')
  t.match(await agent.logged('AdoptionRefused'), {
    level: 'warn',
    published: false,
    msg: /: content: .*\(precious\)/,
  })
  t.match(await agent.get('/readyz'), { status: 503, text: /AdoptionRefused/ })
  t.strictSame(readdirSync(node.path('disk/web')), ['precious'])
  node.configure([{ ...web, adopt: 'replace' }])
  agent.signal('SIGHUP')
  await agent.logged('Published')
  t.strictSame(readdirSync(node.path('disk/web')).sort(), ['app.conf', 'secret'])
})

await t.test('a removed target does not hide a missing object', async (t) => {
  const node = webNode(t)
  const agent = node.agent()
  await agent.logged('Published')
  node.remove('web')
  await agent.logged('ObjectMissing')
  rmSync(node.path('disk/web'), { recursive: true })
  agent.signal('SIGHUP')
  await agent.logged('ObjectMissing', 2)
  t.match(await agent.get('/readyz'), { status: 503, text: /ObjectMissing: Secret demo\/web does not exist/ })
  t.notOk(agent.log().some(({ reason }) => reason === 'PublishFailed'))
})

await t.test(
  'an agent whose address is taken works, says what to do, and serves there once the address is free',
  async (t) => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const release = () => new Promise((resolve) => server.close(resolve))
    t.teardown(release)
    const address = server.address()
    const port = typeof address === 'object' ? address?.port : undefined
    const node = webNode(t)
    const agent = node.agent(['--listen', `127.0.0.1:${port}`])
    await agent.logged('Published')
    const taken = () => agent.log().filter(({ msg }) => msg.includes('EADDRINUSE'))
    t.match(taken(), [{ level: 'warn', msg: /EADDRINUSE.*stop it, or choose another port.*tries again/ }], 'once')
    const status = async () => (await node.run('status')).stdout
    await until('the status says so', async () => /tries again: .*EADDRINUSE/.test(await status()))
    await release()
    t.equal(new URL(await agent.address()).port, `${port}`)
    t.match(await agent.get('/readyz'), { status: 200 })
    await until('the status says no more', async () => !(await status()).includes('EADDRINUSE'))
    t.equal(await agent.end('SIGTERM'), 0)
  },
)

await t.test('SIGTERM and a new address end the wait for a taken one', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const node = webNode(t)
  const directories = [{ path: 'disk/web', contents: [{ secret: 'web' }] }]
  node.configure(directories, { server: { address: `127.0.0.1:${port}` } })
  const agent = node.agentProcess()
  const says = () => node.read('state/status.json')?.includes('EADDRINUSE')
  await until('the status says so', says)
  node.configure(directories, { server: { address: '127.0.0.1:0' } })
  const reloaded = await node.run('reload')
  t.equal(reloaded.code, 0, reloaded.stderr)
  await until('the status says no more', () => !says())
  node.configure(directories, { server: { address: `127.0.0.1:${port}` } })
  t.match(await node.run('reload'), { code: 2, stderr: /EADDRINUSE/ }, 'what is served stays')
  t.equal(await agent.end('SIGTERM'), 0)
  const waiting = node.agent()
  await until('it waits', () => waiting.log().some(({ msg }) => msg.includes('EADDRINUSE')))
  await until('it has started', () => waiting.log().some(({ msg }) => msg.includes('keeps 1 directory')))
  t.equal(await waiting.end('SIGTERM'), 0)
})
