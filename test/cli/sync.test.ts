/** One pass, from outside; the demo; and what an unreachable API server means for it. */
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { replaceFile } from '../../src/index.js'
import { begin, ended, Node } from './holdfast.js'

const canary = 'CANARY-77aa'
const web = { path: 'disk/web', contents: [{ secret: 'web' }] }

await t.test('sync publishes once; a dry run tells before, and writes nothing', async (t) => {
  const node = new Node(t, [web])
  node.put('Secret', 'web', { password: canary })
  const path = node.path('disk/web')
  const dry = await node.run('sync', '--dry-run')
  t.match(dry, {
    code: 0,
    stdout: new RegExp(`^would be created +${path} +sha256:[0-9a-f]{64}\n +\\+ password\n$`),
  })
  t.notOk(existsSync(node.path('disk')))
  const first = await node.run('sync')
  t.match(first, { code: 0, stdout: new RegExp(`^created +${path} +sha256:[0-9a-f]{64}\n$`) })
  t.equal(dry.stdout.match(/sha256:\w+/)?.[0], first.stdout.match(/sha256:\w+/)?.[0], 'just that digest')
  const second = await node.run('sync', '-o', 'json')
  // Whether it is depends on where this machine keeps temporary files.
  const unproven = second.stderr.includes('durability is not proven') ? { unproven: true } : {}
  t.strictSame(JSON.parse(second.stdout), {
    directories: [{ path, outcome: 'unchanged', digest: first.stdout.match(/sha256:\w+/)?.[0], ...unproven }],
  })
  node.put('Secret', 'web', { other: canary })
  const change = await node.run('sync', '--dry-run', '-o', 'json')
  t.match(JSON.parse(change.stdout), {
    directories: [
      {
        outcome: 'replaced',
        changes: [
          { path: 'other', change: 'add' },
          { path: 'password', change: 'remove' },
        ],
      },
    ],
  })
  for (const { stdout, stderr } of [dry, first, second, change]) t.notMatch(stdout + stderr, canary)
})

await t.test('what one directory lacks is exit 1, and does not hold up the others', async (t) => {
  const node = new Node(t, [web, { path: 'disk/lacks', contents: [{ secret: 'absent' }] }])
  node.put('Secret', 'web', { password: canary })
  const { code, stdout } = await node.run('sync', '-o', 'json')
  t.equal(code, 1)
  t.match(JSON.parse(stdout), {
    directories: [
      { outcome: 'created' },
      { path: node.path('disk/lacks'), outcome: 'failed', reason: 'ObjectMissing', message: /demo\/absent/ },
    ],
  })
  t.equal(node.read('disk/web/password'), canary)
})

await t.test('the dry run says that it is one, and what would be refused', async (t) => {
  const node = new Node(t, [web])
  node.put('Secret', 'web', { password: canary })
  const dry = await node.run('sync', '--dry-run', '-o', 'json')
  t.match(JSON.parse(dry.stdout), { dryRun: true, directories: [{ outcome: 'created' }] })
  mkdirSync(node.path('disk'))
  writeFileSync(node.path('disk/web'), 'a file')
  const refused = await node.run('sync', '--dry-run', '-o', 'json')
  t.equal(refused.code, 1)
  t.match(JSON.parse(refused.stdout), { directories: [{ outcome: 'failed', reason: 'TargetUnfit' }] })
})

await t.test('one missing object is one fault, however often it is asked for', async (t) => {
  const combine = { combine: 'all.pem', from: [{ secret: 'web', key: 'a' }] }
  const node = new Node(t, [{ path: 'disk/web', contents: [{ secret: 'web', into: 's' }, combine] }])
  const { code, stdout, stderr } = await node.run('sync', '-o', 'json')
  t.equal(code, 1)
  t.match(JSON.parse(stdout), {
    directories: [
      {
        message:
          'Secret demo/web does not exist: create it, or make directories[0].contents[0] and directories[0].contents[1] optional',
      },
    ],
  })
  t.equal(stderr.match(/ObjectMissing/g)?.length, 1)
})

await t.test('what is missing is reported, also where the target was removed', async (t) => {
  const node = new Node(t, [web])
  node.put('Secret', 'web', { password: canary })
  t.equal((await node.run('sync')).code, 0)
  rmSync(node.path('disk/web'), { recursive: true })
  node.remove('web')
  const { code, stdout } = await node.run('sync', '-o', 'json')
  t.equal(code, 1)
  t.match(JSON.parse(stdout), { directories: [{ outcome: 'failed', reason: 'ObjectMissing' }] })
})

await t.test('status without an agent: what the disk says; and one that is no status', async (t) => {
  const node = new Node(t, [web, { path: 'disk/never', contents: [{ secret: 'absent' }] }])
  node.put('Secret', 'web', { password: canary })
  t.equal((await node.run('sync')).code, 1)
  const { code, stdout } = await node.run('status', '-o', 'json')
  t.equal(code, 0)
  t.match(JSON.parse(stdout), {
    agent: null,
    directories: [
      {
        path: node.path('disk/web'),
        conditions: [
          { type: 'Published', status: 'True' },
          { type: 'Fresh', status: 'Unknown', message: /no agent has reported/ },
        ],
        digest: /^sha256:/,
      },
      { conditions: [{ type: 'Published', status: 'False', message: 'nothing is published yet' }, {}] },
    ],
  })
  t.match(await node.run('status'), { code: 0, stdout: /web +True +Unknown[\s\S]*no agent has reported/ })
  mkdirSync(node.path('state'), { recursive: true })
  writeFileSync(node.path('state/status.json'), 'garbage')
  t.match(await node.run('status'), {
    code: 1,
    stderr: /status\.json is not a status as the agent writes it/,
  })
})

await t.test('verify: differences and details are in one order', async (t) => {
  const node = new Node(t, [web])
  node.put('Secret', 'web', { a: canary, b: canary, c: canary })
  t.equal((await node.run('sync')).code, 0)
  rmSync(node.path('disk/web/c'))
  writeFileSync(node.path('disk/web/aa'), '')
  writeFileSync(node.path('disk/web/b'), 'x')
  const { code, stdout } = await node.run('verify', '-o', 'json')
  t.equal(code, 4)
  t.match(JSON.parse(stdout), {
    directories: [
      {
        differences: [{ path: 'aa' }, { path: 'b' }, { path: 'c' }],
        details: ['aa was not published', 'b has other content', 'c is missing'],
      },
    ],
  })
})

await t.test('flags that only a cluster has a use for', async (t) => {
  const node = new Node(t, [web])
  for (const flag of ['--kubeconfig', '--context']) {
    const message = new RegExp(`${flag} \\(or HOLDFAST_\\w+\\) has no effect: the configured source is files`)
    t.match(await node.run('sync', flag, 'x'), { code: 2, stderr: message })
    t.match(await node.run('agent', flag, 'x'), { code: 2, stderr: message })
  }
})

await t.test('a hook that fails where --hooks asked for it', async (t) => {
  const node = new Node(t, [])
  node.configure([{ ...web, afterPublish: [{ exec: ['/bin/false'], retries: 0 }] }])
  node.put('Secret', 'web', { password: canary })
  const { code, stdout } = await node.run('sync', '--hooks', '-o', 'json')
  t.equal(code, 1)
  t.match(JSON.parse(stdout), { directories: [{ outcome: 'created', pendingHooks: ['exec false'] }] })
  t.match(await node.run('sync', '--hooks'), { code: 1, stdout: /the hook "exec false" failed/ })
  t.equal((await node.run('sync')).code, 0)
})

await t.test('hooks are left to the agent, unless they are asked for', async (t) => {
  const node = new Node(t, [])
  const hook = { exec: ['/bin/sh', '-c', `echo ran >> ${node.path('ran')}`] }
  node.configure([{ ...web, afterPublish: [hook] }])
  node.put('Secret', 'web', { password: canary })
  t.equal((await node.run('sync')).code, 0)
  t.equal(node.read('ran'), undefined)
  t.equal((await node.run('sync', '--hooks')).code, 0)
  t.equal(node.read('ran'), 'ran\n', 'what was left pending is run')
  t.equal((await node.run('sync', '--hooks')).code, 0)
  t.equal(node.read('ran'), 'ran\n', 'and once only')
})

/** A server that takes connections and never answers. */
async function silentServer(t: Test): Promise<Server> {
  const server = createServer(() => {}).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return server
}

function kubeconfigFor(server: Server): string {
  const { port } = server.address() as AddressInfo
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'x',
    clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${port}` } }],
    users: [{ name: 'u', user: { token: canary } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
  })
}

await t.test('a source that does not answer: exit 1; with --allow-stale 0 if all is whole', async (t) => {
  const node = new Node(t, [web])
  node.put('Secret', 'web', { password: canary })
  t.equal((await node.run('sync')).code, 0)
  const kubeconfig = node.path('kubeconfig')
  node.configure([web], { source: { namespace: 'demo', kubernetes: { kubeconfig } } })
  writeFileSync(kubeconfig, kubeconfigFor(await silentServer(t)))
  const strict = await node.run('sync', '--timeout', '500ms', '-o', 'json')
  t.equal(strict.code, 1, strict.stderr)
  t.match(JSON.parse(strict.stdout), { directories: [{ outcome: 'failed', reason: 'SourceUnavailable' }] })
  const stale = await node.run('sync', '--timeout', '500ms', '--allow-stale', '-o', 'json')
  t.equal(stale.code, 0, stale.stderr)
  t.match(JSON.parse(stale.stdout), { directories: [{ outcome: 'stale', digest: /^sha256:/ }] })
  writeFileSync(node.path('disk/web/password'), 'damaged')
  t.equal((await node.run('sync', '--timeout', '500ms', '--allow-stale')).code, 1, 'not whole: not good enough')
  t.notMatch(strict.stdout + strict.stderr + stale.stdout + stale.stderr, canary)

  // A server of its own: the end of a connection of those before may arrive late.
  const server = await silentServer(t)
  writeFileSync(kubeconfig, kubeconfigFor(server))
  const connected = once(server, 'connection')
  const waiting = begin(['sync', '--config', node.configuration])
  const end = ended(waiting)
  await connected
  waiting.kill('SIGINT')
  t.equal((await end).code, 130, 'Ctrl-C while it waits')
})

await t.test('a mistake in the source that waiting does not mend is reported at once', async (t) => {
  const node = new Node(t, [web])
  node.put('Secret', 'web', { password: canary })
  t.equal((await node.run('sync')).code, 0)
  const kubeconfig = node.path('kubeconfig')
  writeFileSync(node.path('garbage'), 'clusters: 1')
  writeFileSync(kubeconfig, kubeconfigFor(await silentServer(t)))
  const kubernetes = (fields: object) => ({ source: { namespace: 'demo', kubernetes: fields } })
  const mistakes: [string, object, RegExp][] = [
    ['an unknown context', kubernetes({ kubeconfig, context: 'nope' }), /there is no context "nope"/],
    ['no kubeconfig', kubernetes({ kubeconfig: node.path('absent') }), /cannot read .*absent \(ENOENT\)/],
    ['a kubeconfig that is none', kubernetes({ kubeconfig: node.path('garbage') }), /garbage: clusters/],
    ['no service account', kubernetes({}), /this is not a pod/],
    [
      'no directory of objects',
      { source: { namespace: 'demo', files: { path: node.path('absent') } } },
      /absent.*ENOENT/,
    ],
    ['a file in its place', { source: { namespace: 'demo', files: { path: kubeconfig } } }, /kubeconfig.*ENOTDIR/],
  ]
  for (const [name, source, message] of mistakes) {
    node.configure([web], source)
    const started = performance.now()
    const strict = await node.run('sync', '--timeout', '5s', '-o', 'json')
    t.equal(strict.code, 1, name)
    t.match(
      JSON.parse(strict.stdout),
      { directories: [{ outcome: 'failed', reason: 'SourceUnavailable', message }] },
      name,
    )
    t.equal((await node.run('sync', '--timeout', '5s', '--dry-run')).code, 1, name)
    t.equal(
      (await node.run('sync', '--timeout', '5s', '--allow-stale')).code,
      0,
      `${name}: what is on the disk is whole`,
    )
    t.ok(performance.now() - started < 4_000, `${name}: nobody waits for it`)
  }
})

await t.test('the demo publishes, swaps an update in, and ends in order with Ctrl-C', async (t) => {
  const node = new Node(t, [])
  const directory = node.path('demo')
  const demo = begin(['demo', '--directory', directory])
  const end = ended(demo)
  let text = ''
  let interrupted = false
  demo.stdout?.on('data', (chunk: string) => {
    text += chunk
    if (!interrupted && text.includes('Ctrl-C ends the demo')) interrupted = demo.kill('SIGINT')
  })
  const { code, stdout } = await end
  t.equal(code, 0)
  t.match(stdout, /0600 +1 +\d+ +\d+ +tls\.key/)
  t.match(stdout, /The program read [1-9]\d* pairs of certificate and key meanwhile; 0 of them did not match/)
  t.equal(stdout.match(/^sha256:[0-9a-f]{64}$/gm)?.length, 2)
  t.equal(readFileSync(join(directory, 'node/web/tls/rotation'), 'utf8'), '2')
  t.notMatch(stdout, /PRIVATE KEY/)
  const { unproven } = await replaceFile(node.path('probe'), '')
  if (unproven) t.notMatch(stdout, /durable/, 'nothing is called durable where that is not proven')
  t.match(
    stdout,
    unproven ? /On the disk, \d+ ms after .*\. Durability is not proven here/ : /On the disk and durable, \d+ ms/,
  )
})

await t.test(
  'two names of one directory, and a directory in another one by a link: neither is published, the others are',
  async (t) => {
    const node = new Node(t, [])
    mkdirSync(node.path('x'))
    symlinkSync('x', node.path('link'))
    node.put('ConfigMap', 'one', { k: '1' })
    node.put('ConfigMap', 'two', { k: '2' })
    const directory = (name: string, configMap: string) => ({
      path: node.path(name),
      adopt: true,
      contents: [{ configMap }],
    })
    for (const [first, second] of [
      ['link/same', 'x/same'],
      ['link/outer/inner', 'x/outer'],
    ] as const) {
      node.configure([directory(first, 'one'), directory(second, 'two'), directory('other', 'one')])
      const { code, stdout, stderr } = await node.run('sync')
      t.equal(code, 1)
      t.match(stdout + stderr, /the same directory, or one lies in the other/)
      t.equal(node.read(join(second, 'k')), undefined)
      t.equal(node.read(join(first, 'k')), undefined)
      t.equal(node.read('other/k'), '1')
    }
  },
)
