/** One pass, from outside: its publications, its dry run, and the later reports of it. */
import { chmodSync, chownSync, existsSync, mkdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Node } from '../holdfast.js'

const canary = 'CANARY-77aa'
const web = { path: 'disk/web', contents: [{ secret: 'web' }] }

await t.test('sync publishes once; a dry run before it prints the changes, and writes nothing', async (t) => {
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

await t.test('sync exits with 1 where one directory lacks an object, and publishes the others', async (t) => {
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

await t.test('sync --dry-run says that it is one, and which publication would be refused', async (t) => {
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

await t.test('sync reports one missing object once, however often the configuration names it', async (t) => {
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

await t.test('status without an agent tells what the disk shows; an unreadable status file is an error', async (t) => {
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
          { type: 'Fresh', status: 'Unknown', message: /no agent runs, and nobody has asked the source since/ },
        ],
        digest: /^sha256:/,
      },
      {
        conditions: [
          { type: 'Published', status: 'False', reason: 'ObjectMissing', message: /absent does not exist/ },
          {},
        ],
      },
    ],
  })
  t.match(await node.run('status'), { code: 0, stdout: /web +True +Unknown[\s\S]*no agent runs/ })
  mkdirSync(node.path('state'), { recursive: true })
  writeFileSync(node.path('state/status.json'), 'garbage')
  t.match(await node.run('status'), {
    code: 1,
    stderr: /status\.json is not a status file of the agent/,
  })
})

await t.test(
  "verify lists what differs by paths, and tells a missing target from another program's file in its place",
  async (t) => {
    const node = new Node(t, [web])
    node.put('Secret', 'web', { password: canary })
    t.match(await node.run('sync'), { code: 0 })
    const path = node.path('disk/web')
    const verified = async () => {
      const { code, stdout } = await node.run('verify', '-o', 'json')
      t.equal(code, 4)
      return (JSON.parse(stdout) as { directories: [{ details: string[]; differences: object[] }] }).directories[0]
    }
    const said = async () => (await verified()).details
    for (const name of ['z', 'a']) writeFileSync(join(path, name), '')
    rmSync(join(path, 'password'))
    t.match(await verified(), {
      details: ['a was not published', 'password is missing', 'z was not published'],
      differences: [{ path: 'a' }, { path: 'password' }, { path: 'z' }],
    })
    rmSync(path, { recursive: true })
    t.strictSame(await said(), [`${path} does not exist`])
    const other = [`${path} is not of the kind that was published (file, directory or link)`]
    writeFileSync(path, 'a file')
    t.strictSame(await said(), other)
    rmSync(path)
    symlinkSync('elsewhere', path)
    t.strictSame(await said(), other)
  },
)

await t.test('sync, agent and check refuse --kubeconfig and --context for the source files', async (t) => {
  const node = new Node(t, [web])
  for (const flag of ['--kubeconfig', '--context']) {
    const message = new RegExp(`${flag} \\(or HOLDFAST_\\w+\\) has no effect: the configured source is files`)
    for (const command of ['sync', 'agent', 'check'])
      t.match(await node.run(command, flag, 'x'), { code: 2, stderr: message }, command)
  }
})

await t.test('sync --hooks exits with 1 where a hook fails', async (t) => {
  const node = new Node(t, [])
  node.configure([{ ...web, afterPublish: [{ exec: ['/bin/false'], retries: 0 }] }])
  node.put('Secret', 'web', { password: canary })
  const { code, stdout } = await node.run('sync', '--hooks', '-o', 'json')
  t.equal(code, 1)
  t.match(JSON.parse(stdout), { directories: [{ outcome: 'created', pendingHooks: ['exec false'] }] })
  t.match(await node.run('sync', '--hooks'), { code: 1, stdout: /the hook "exec false" failed/ })
  t.equal((await node.run('sync')).code, 0)
})

await t.test('sync leaves hooks to the agent without --hooks', async (t) => {
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

await t.test(
  'sync publishes neither of two names of one directory, nor a directory inside another by a link, but all others',
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

await t.test(
  'attributes: keep lets a change of mode and owner outlive the next content, and counts it as no drift',
  async (t) => {
    const node = new Node(t, [{ ...web, attributes: 'keep' }])
    node.put('Secret', 'web', { password: canary })
    t.match(await node.run('sync'), { code: 0, stdout: /^created/ })
    const path = node.path('disk/web/password')
    const attributes = () => {
      const { mode, uid, gid } = statSync(path)
      return [mode & 0o7777, uid, gid]
    }
    chmodSync(path, 0o640)
    if (process.geteuid?.() === 0) chownSync(path, 12, 34)
    const kept = attributes()
    t.match(await node.run('verify'), { code: 0 })
    t.match(await node.run('sync'), { code: 0, stdout: /^unchanged/ })
    node.put('Secret', 'web', { password: 'new' })
    t.match(await node.run('sync'), { code: 0, stdout: /^replaced/ })
    t.equal(node.read('disk/web/password'), 'new')
    t.strictSame(attributes(), kept)
  },
)
