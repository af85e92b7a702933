/** The agent on objects in files, from outside: processes, signals, files, HTTP. */
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { until } from '../until.js'
import { Node } from './holdfast.js'

const canary = 'CANARY-8c2e'
const web = { path: 'disk/web', contents: [{ secret: 'web', into: 'secret' }, { configMap: 'conf' }] }

function webNode(t: Test): Node {
  const node = new Node(t, [web])
  node.put('Secret', 'web', { password: `${canary}-1`, user: 'alice' })
  node.put('ConfigMap', 'conf', { 'app.conf': 'port=80\n' })
  return node
}

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

await t.test('published, updated, a key removed; every place says so, none says what', async (t) => {
  const node = webNode(t)
  const agent = node.agent()
  const first = await agent.logged('Published')
  t.match(first, {
    level: 'info',
    operation: `publish ${node.path('disk/web')}`,
    directory: node.path('disk/web'),
    outcome: 'created',
    digest: /^sha256:[0-9a-f]{64}$/,
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

  await until('the status is written', async () =>
    (await node.run('status', '-o', 'json')).stdout.includes(String(second.digest)),
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
        objects: [{ kind: 'Secret', namespace: 'demo', name: 'web', uid: '' }, { kind: 'ConfigMap' }],
        digest: second.digest,
        publishedAt: time,
        confirmedAt: time,
      },
    ],
  })
  const table = await node.run('status')
  t.match(table.stdout, /^PATH +PUBLISHED +FRESH +REASON +AGE +CONFIRMED +DIGEST\n/)
  t.match(table.stdout, /True +True +Published/)
  t.match(await node.run('verify'), { code: 0, stdout: /web +ok/ })
  t.notMatch((await everythingSaid(node)) + metrics, canary)
  t.equal(await agent.end('SIGTERM'), 0)
  t.match((await node.run('status')).stdout, /ended in order/)
})

await t.test(
  'a missing object keeps the directory unpublished; readyz says why; a broken file changes nothing',
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

await t.test('drift is repaired at SIGHUP, and counted', async (t) => {
  const node = webNode(t)
  const agent = node.agent()
  await agent.logged('Published')
  rmSync(node.path('disk/web/app.conf'))
  chmodSync(node.path('disk/web/secret/user'), 0o644)
  writeFileSync(node.path('disk/web/foreign'), '')
  t.match(await node.run('verify'), { code: 4, stdout: /differs/ })
  agent.signal('SIGHUP')
  const line = await agent.logged('DriftRepaired')
  t.match(line, {
    outcome: 'replaced',
    causes: ['drift check'],
    msg: /app\.conf is missing.*foreign was not published.*secret\/user has another mode/,
  })
  t.equal(node.read('disk/web/app.conf'), 'port=80\n')
  t.notOk(existsSync(node.path('disk/web/foreign')))
  t.match((await agent.get('/metrics')).text, `holdfast_drift_total{directory="${node.path('disk/web')}"} 1`)
  t.equal((await node.run('verify')).code, 0)
})

await t.test('SIGHUP: a new directory, one that is dropped, and a configuration that is invalid', async (t) => {
  const node = webNode(t)
  const agent = node.agent()
  await agent.logged('Published')
  const second = { path: 'disk/second', contents: [{ configMap: 'conf' }] }
  node.configure([second])
  agent.signal('SIGHUP')
  await agent.logged('Published', 2)
  t.equal(node.read('disk/second/app.conf'), 'port=80\n')
  t.equal(node.read('disk/web/secret/user'), 'alice', 'a dropped directory stays')
  t.notMatch((await agent.get('/metrics')).text, 'disk/web')

  node.configure([{ ...second, contnets: [] }])
  agent.signal('SIGHUP')
  const invalid = await agent.logged('ConfigurationInvalid')
  t.match(invalid, {
    level: 'error',
    line: Number,
    place: 'directories[0].contnets',
    msg: /contnets: unknown field: did you mean "contents"\?$/,
  })
  t.match(await agent.logged('ConfigurationInvalid', 2), { msg: /is invalid; .*stays in force$/ })
  await until('the status says so', () => node.read('state/status.json')?.includes('configurationInvalid'))
  node.put('ConfigMap', 'conf', { 'app.conf': 'port=81\n' })
  await agent.logged('Published', 3)
  t.equal(node.read('disk/second/app.conf'), 'port=81\n', 'the old one stays in force')

  node.configure([{ ...second, fileMode: '0640' }])
  agent.signal('SIGHUP')
  await agent.logged('Published', 4)
  t.equal(statSync(node.path('disk/second/app.conf')).mode & 0o7777, 0o640)
  t.equal(await agent.end('SIGTERM'), 0)
})

await t.test('killed at any time and started again: whole, and nothing is written again', async (t) => {
  const node = webNode(t)
  const agent = node.agent()
  const { digest } = await agent.logged('Published')
  await until('the status is there', () => node.read('state/status.json')?.includes(String(digest)))
  const transition = (text: string | undefined) =>
    (JSON.parse(text ?? '') as { directories: { conditions: object[] }[] }).directories[0]?.conditions[0]
  const before = transition(node.read('state/status.json'))
  t.equal(await agent.end('SIGKILL'), 'SIGKILL')
  const inode = statSync(node.path('disk/web')).ino
  const again = node.agent()
  const line = await again.logged('Unchanged')
  t.match(line, { outcome: 'unchanged', digest })
  t.equal(statSync(node.path('disk/web')).ino, inode)
  t.equal(await again.end('SIGTERM'), 0)
  t.match(transition(node.read('state/status.json')), before, 'conditions go on over a restart')
})

await t.test('SIGTERM in the middle of a stream of updates: exit 0, and the target is whole', async (t) => {
  const node = webNode(t)
  for (let round = 0; round < 3; round++) {
    const agent = node.agent()
    const write = () => {
      const text = `${Math.random()}`
      node.put('Secret', 'web', { password: text, user: text })
    }
    write()
    await agent.logged('Published')
    const over = new AbortController()
    const published = () => agent.log().filter(({ reason }) => reason === 'Published').length
    const writer = (async () => {
      while (!over.signal.aborted) {
        const before = published()
        write()
        // A file that never comes to rest is never read: the next version follows the publication of this one.
        await until('it is published', () => over.signal.aborted || published() > before)
      }
    })()
    await agent.logged('Published', 3)
    await new Promise((resolve) => setTimeout(resolve, 37 * round))
    t.equal(await agent.end('SIGTERM'), 0)
    over.abort()
    await writer
    t.equal(node.read('disk/web/secret/password'), node.read('disk/web/secret/user'))
    t.equal((await node.run('verify')).code, 0)
    t.strictSame(
      readdirSync(node.path('disk')).filter((name) => /-[0-9a-f]{16}$/.test(name)),
      [],
      'no staging is left',
    )
  }
})

await t.test('a foreign directory is left alone, until adopt says otherwise', async (t) => {
  const node = webNode(t)
  execFileSync('mkdir', ['-p', node.path('disk/web')])
  writeFileSync(node.path('disk/web/precious'), 'mine')
  const agent = node.agent()
  t.match(await agent.logged('TargetForeign'), { level: 'error', published: false })
  t.match(await agent.get('/readyz'), { status: 503, text: /TargetForeign/ })
  t.strictSame(readdirSync(node.path('disk/web')), ['precious'])
  node.configure([{ ...web, adopt: true }])
  agent.signal('SIGHUP')
  await agent.logged('Published')
  t.strictSame(readdirSync(node.path('disk/web')).sort(), ['app.conf', 'secret'])
})

await t.test(
  'hooks run after a publication; one that fails is reported and retried, and changes nothing else',
  async (t) => {
    const ran = (node: Node) => node.read('ran')?.trim().split('\n').length ?? 0
    const node = webNode(t)
    const script = `cat ${node.path('disk/web/secret/user')} >> ${node.path('ran')}; echo >> ${node.path('ran')}; test -e ${node.path('allowed')}`
    node.configure([{ ...web, afterPublish: [{ exec: ['/bin/sh', '-c', script], retries: 0 }] }])
    const agent = node.agent()
    await agent.logged('HookFailed')
    t.equal((await agent.get('/readyz')).status, 200)
    t.equal((await node.run('verify')).code, 0)
    await until(
      'status tells of it',
      () =>
        (JSON.parse(node.read('state/status.json') ?? '') as { directories: { pendingHooks: string[] }[] })
          .directories[0]?.pendingHooks.length === 1,
    )
    t.equal(await agent.end('SIGKILL'), 'SIGKILL')
    const tried = ran(node)
    writeFileSync(node.path('allowed'), '')
    const again = node.agent()
    await until('it runs again after a restart', () => ran(node) > tried)
    await until('and is done', () => again.log().some(({ msg }) => msg.includes('has run')))
    const metrics = (await again.get('/metrics')).text
    t.match(metrics, /holdfast_hooks_total\{.*result="success"\} 1/)
    const done = ran(node)
    again.signal('SIGHUP')
    await until('the configuration was read again', () => again.log().some(({ msg }) => msg.includes('is in force')))
    t.equal(await again.end('SIGTERM'), 0)
    const third = node.agent()
    await third.logged('Unchanged')
    t.equal(await third.end('SIGTERM'), 0)
    t.equal(ran(node), done, 'and never again')
  },
)

await t.test('a pending hook is found again after the list around it was edited', async (t) => {
  const node = webNode(t)
  const hook = (name: string, then: string) => ({
    exec: ['/bin/sh', '-c', `echo ${name} >> ${node.path('ran')}; ${then}`],
    retries: 0,
  })
  const two = hook('two', `test -e ${node.path('allowed')}`)
  node.configure([{ ...web, afterPublish: [hook('one', 'true'), two] }])
  const agent = node.agent()
  t.match(await agent.logged('HookFailed'), {
    hook: 'exec sh #2',
    place: 'directories[0].afterPublish[1]',
  })
  await until('status names it', () => node.read('state/status.json')?.includes('exec sh #2'))
  t.equal(await agent.end('SIGTERM'), 0)
  writeFileSync(node.path('allowed'), '')
  writeFileSync(node.path('ran'), '')
  node.configure([{ ...web, afterPublish: [hook('three', 'true'), hook('four', 'true'), two] }])
  const again = node.agent()
  await until('it is done', () => again.log().some(({ msg }) => msg.includes('has run')))
  t.equal(await again.end('SIGTERM'), 0)
  t.equal(node.read('ran'), 'two\n', 'just the one that was pending')
})

await t.test('hooks of what another process published meanwhile are run', async (t) => {
  const node = webNode(t)
  const hook = { exec: ['/bin/sh', '-c', `echo ran >> ${node.path('ran')}`] }
  const directory = { ...web, afterPublish: [hook] }
  node.configure([directory], { driftInterval: '1s' })
  const agent = node.agent()
  await until('it has run once', () => node.read('ran') === 'ran\n')
  // The agent sees nothing of it but the disk.
  node.configure([directory], { source: { namespace: 'demo', files: { path: node.path('others') } } })
  mkdirSync(node.path('others'))
  for (const name of ['web', 'conf']) {
    const kind = name === 'web' ? 'Secret' : 'ConfigMap'
    const object = { apiVersion: 'v1', kind, metadata: { name } }
    writeFileSync(node.path(`others/${name}.yaml`), JSON.stringify(object))
  }
  t.equal((await node.run('sync')).code, 0)
  await until('it runs again', () => node.read('ran')?.startsWith('ran\nran\n'))
  t.equal(await agent.end('SIGTERM'), 0)
})

await t.test('drift is found in the configured interval, without a signal', async (t) => {
  const node = webNode(t)
  node.configure([web], { driftInterval: '1s' })
  const agent = node.agent()
  await agent.logged('Published')
  writeFileSync(node.path('disk/web/app.conf'), 'edited')
  t.match(await agent.logged('DriftRepaired'), { causes: ['drift check'] })
  t.equal(node.read('disk/web/app.conf'), 'port=80\n')
})

await t.test('a target that was removed hides no missing object', async (t) => {
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

await t.test('the status file is for its owner alone, and holds nothing of a secret', async (t) => {
  const node = webNode(t)
  const agent = node.agent()
  await agent.logged('Published')
  // The status is first written when nothing is published yet.
  const status = await until('the status names an object', () => {
    const text = node.read('state/status.json')
    return text?.includes('resourceVersion') && text
  })
  t.equal(statSync(node.path('state/status.json')).mode & 0o7777, 0o600)
  t.match(JSON.parse(status), { directories: [{ objects: [{ resourceVersion: /^file:[0-9a-f]{32}$/ }] }] })
})

await t.test('an address that is taken: exit 1, and what to do', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const node = webNode(t)
  const agent = node.agent(['--listen', `127.0.0.1:${port}`])
  t.equal(await agent.end(), 1)
  t.match(agent.log().at(-1), { level: 'error', msg: /EADDRINUSE.*stop it, or choose another port/ })
})

await t.test('two agents on one node: both go on, and what they publish is whole', async (t) => {
  const node = webNode(t)
  const [one, two] = [node.agent(), node.agent()]
  for (let round = 0; round < 5; round++) {
    node.put('Secret', 'web', { password: `${round}`, user: `${round}` })
    // One agent may publish this version, and the other one, which is behind, the last one once more.
    const isThere = (name: string) => node.read(`disk/web/secret/${name}`) === `${round}`
    await until('it is on the disk', () => isThere('password') && isThere('user'))
  }
  let round = 5
  // Each of them looks before it writes its status, which it does after a change: both may have looked at once.
  await until('one of them says so', async () => {
    if ([one, two].some((agent) => agent.log().some(({ msg }) => msg.includes('stop one of them')))) return true
    node.put('Secret', 'web', { password: `${round}`, user: `${round++}` })
    await new Promise((resolve) => setTimeout(resolve, 300))
    return false
  })
  t.equal(await one.end('SIGTERM'), 0)
  t.equal(await two.end('SIGTERM'), 0)
  t.equal((await node.run('verify')).code, 0)
})

await t.test('SIGHUP while the agent starts is heard, and one while it ends changes nothing', async (t) => {
  const node = webNode(t)
  for (let round = 0; round < 3; round++) {
    const agent = node.agent()
    // Before a process has taken it on, the signal ends it: its handler shows in the mask of those that are caught.
    await until('it catches SIGHUP', () => agent.catches('SIGHUP'))
    agent.signal('SIGHUP')
    await until('the configuration was read again', () => agent.log().some(({ msg }) => msg.includes('is in force')))
    agent.signal('SIGTERM')
    const ends = () => agent.log().some(({ msg }) => msg.startsWith('SIGTERM'))
    // Soon: what comes when Node has taken its handlers down, in the last moment of a process, is the system's matter.
    await until('it ends', ends, { every: 1 })
    agent.signal('SIGHUP')
    t.equal(await agent.end(), 0)
  }
})

const mayMount = spawnSync('unshare', ['--mount', 'true']).status === 0

await t.test(
  'requireProven that is changed by SIGHUP takes effect',
  { skip: !mayMount && 'needs the right to mount' },
  async (t) => {
    const node = webNode(t)
    mkdirSync(node.path('memory'))
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', node.path('memory')])
    t.teardown(() => spawnSync('umount', ['--lazy', node.path('memory')]))
    const directory = { ...web, path: 'memory/web' }
    node.configure([directory])
    const agent = node.agent()
    t.match(await agent.logged('Published'), { outcome: 'created' })
    node.configure([directory], { requireProven: true })
    agent.signal('SIGHUP')
    t.match(await agent.logged('TargetUnfit'), { published: false, msg: /proven/ })
    t.equal((await agent.get('/readyz')).status, 200, 'what is there is whole')
    node.configure([directory])
    agent.signal('SIGHUP')
    await agent.logged('Unchanged')
    t.equal(await agent.end('SIGTERM'), 0)
  },
)

await t.test('SIGINT is an end in order, too, and its number is reported', async (t) => {
  const agent = webNode(t).agent()
  await agent.logged('Published')
  t.equal(await agent.end('SIGINT'), 130)
  t.match(readFileSync(agent.logFile, 'utf8'), /ended in order/)
})
