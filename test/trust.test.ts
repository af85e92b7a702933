/** What holdfast obeys as its own user, and who may write to it. */
import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, lchownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { doubtOf } from '../src/trust.js'
import { othersWrite } from '../src/writers.js'
import { needsRoot, Scene } from './check/scene.js'
import { Node } from './cli/holdfast.js'
import { scratch } from './durable/scratch.js'
import { project } from './project.js'
import { until } from './until.js'

/** Makes a tree of files (`x`) and directories (`x/`) with these modes, and answers the paths in it. */
function tree(root: string, modes: Readonly<Record<string, number>>): (name: string) => string {
  for (const name of Object.keys(modes)) {
    if (name.endsWith('/')) mkdirSync(join(root, name))
    else writeFileSync(join(root, name), '')
  }
  for (const [name, mode] of Object.entries(modes).reverse()) chmodSync(join(root, name), mode)
  return (name) => join(root, name)
}

await t.test('a file that others may write to, or a directory above it, is a doubt that names it', async (t) => {
  const at = tree(scratch(t), {
    good: 0o644,
    all: 0o646,
    group: 0o664,
    'open/': 0o757,
    'open/file': 0o600,
    'sticky/': 0o1777,
    'sticky/file': 0o600,
    'sticky/deep/': 0o775,
    'sticky/deep/file': 0o600,
  })
  symlinkSync('all', at('link'))
  symlinkSync(at('good'), at('open/link'))
  symlinkSync('loop', at('loop'))
  const doubts = async (names: readonly string[]) =>
    Promise.all(
      names.map(async (name) =>
        (await doubtOf(at(name)))?.replaceAll(join(at(''), '/'), '').replace(/group \d+/, 'group'),
      ),
    )
  t.strictSame(
    await doubts(['good', 'all', 'group', 'open/file', 'sticky/file', 'sticky/deep/file', 'link', 'open/link']),
    [
      undefined,
      'everybody may write to all (mode 0646)',
      'group may write to group (mode 0664)',
      'everybody may write to open (mode 0757)',
      undefined,
      'group may write to sticky/deep (mode 0775)',
      'everybody may write to all (mode 0646)',
      'everybody may write to open (mode 0757)',
    ],
  )
  t.strictSame(
    await doubts(['none', 'none/below', 'open/none', 'loop', 'good/below']),
    [undefined, undefined, 'everybody may write to open (mode 0757)', undefined, undefined],
    'what does not exist can be made by those alone who may write above it',
  )
})

await t.test('the owner of each part counts, and in a sticky directory the owner alone', async (t) => {
  const part = { path: '/x', kind: 'file', uid: 0, gid: 0, mode: 0o644 } as const
  t.equal(othersWrite({ ...part, uid: 7 }, 7), undefined)
  t.equal(othersWrite({ ...part, uid: 8 }, 7), '/x belongs to user 8')
  t.equal(othersWrite({ ...part, kind: 'link', mode: 0o777 }, 7), undefined)
  t.equal(othersWrite({ ...part, kind: 'link', mode: 0o777, uid: 8 }, 7), '/x belongs to user 8')
  t.equal(othersWrite({ ...part, kind: 'directory', mode: 0o1777 }, 7), undefined)
  t.equal(
    othersWrite({ ...part, mode: 0o1666 }, 7),
    'everybody may write to /x (mode 01666)',
    'no such thing for a file',
  )
})

await t.test('a link or a file of another user is a doubt wherever it lies', { skip: needsRoot }, async (t) => {
  const at = tree(scratch(t), { 'sticky/': 0o1777, 'sticky/theirs': 0o600, good: 0o600 })
  chownSync(at('sticky/theirs'), 1, 1)
  symlinkSync(at('good'), at('sticky/link'))
  lchownSync(at('sticky/link'), 1, 1)
  t.equal(await doubtOf(at('sticky/theirs')), `${at('sticky/theirs')} belongs to user 1`)
  t.equal(await doubtOf(at('sticky/link')), `${at('sticky/link')} belongs to user 1`)
})

await t.test('a mount that is read-only here has no writers', { skip: needsRoot }, async (t) => {
  const at = tree(scratch(t), { 'volume/': 0o777, 'volume/file': 0o666, 'mounted/': 0o755 })
  const say = `import(${JSON.stringify(join(project, 'dist/src/trust.js'))})
    .then(({ doubtOf }) => doubtOf(${JSON.stringify(at('mounted/file'))})).then((doubt) => console.log(doubt ?? 'none'))`
  const said = (options: string) => {
    const mounts = `mount --bind ${at('volume')} ${at('mounted')} && mount -o remount,bind,${options} ${at('mounted')}`
    const line = ['--mount', 'sh', '-c', `${mounts} && exec "$0" -e "$1"`, process.execPath, say]
    return spawnSync('unshare', line, { encoding: 'utf8' }).stdout.trim()
  }
  t.match(said('rw'), /^everybody may write to .*mounted \(mode 0777\)$/)
  t.equal(said('ro'), 'none')
})

await t.test('check warns of a program that others may write to, and of the way to it', async (t) => {
  const scene = new Scene(t)
  mkdirSync(scene.path('bin'))
  const hook = scene.path('bin/hook')
  writeFileSync(hook, '#!/bin/sh\n', { mode: 0o755 })
  const directories = [{ path: scene.target, contents: [{ secret: 'serving-cert' }], afterPublish: [{ exec: [hook] }] }]
  scene.configure(directories)
  const found = async (subject: string) => (await scene.check(t)).one('writers', subject)
  t.match(await found(hook), { status: 'OK', found: /^program of hook exec hook: no user other than root/ })
  t.match(await found(scene.configuration), { status: 'OK', found: /^configuration: / })
  chmodSync(scene.path('bin'), 0o777)
  t.match(await found(hook), { status: 'WARN', found: /everybody may write to \S+bin \(mode 0777\)$/, advice: /chmod/ })
  scene.configure(directories, { requireTrusted: true })
  t.match(await found(hook), { status: 'FAULT' })
})

await t.test(
  'agent warns once of what others may write to; requireTrusted refuses it at a start and a reload',
  async (t) => {
    const node = new Node(t, [])
    node.put('ConfigMap', 'web', { v: '1' })
    const hook = node.path('hook')
    writeFileSync(hook, '#!/bin/sh\n', { mode: 0o755 })
    const directory = { path: 'disk/web', contents: [{ configMap: 'web' }], afterPublish: [{ exec: [hook] }] }
    node.configure([directory], { requireTrusted: true })
    const agent = node.agent()
    await agent.logged('Published')
    chmodSync(hook, 0o757)
    agent.signal('SIGHUP')
    const refused = await agent.logged('ConfigurationInvalid')
    t.match(refused.msg, /everybody may write to \S+hook \(mode 0757\), .*requireTrusted refuses it.*stays in force$/)
    node.configure([directory])
    const inForce = () => agent.log().filter(({ msg }) => msg.endsWith('is in force')).length
    for (const times of [1, 2]) {
      agent.signal('SIGHUP')
      await until(`reload ${times}`, () => inForce() === times)
    }
    const warned = agent.log().filter(({ level, path }) => level === 'warn' && path === hook)
    t.match(warned, [
      { msg: /^program of hook exec hook \S+hook: everybody may write to \S+hook \(mode 0757\), and so/ },
    ])
    t.equal(warned.length, 1)
    await agent.end('SIGTERM')

    node.configure([directory], { requireTrusted: true })
    t.match(await node.run('sync'), { code: 2, stderr: /requireTrusted refuses it/ })
  },
)

await t.test('requireTrusted runs no credential plugin that others may write to', async (t) => {
  const node = new Node(t, [])
  const [plugin, ran] = [node.path('plugin'), node.path('ran')]
  writeFileSync(plugin, `#!/bin/sh\ntouch ${ran}\nexit 1\n`, { mode: 0o755 })
  chmodSync(plugin, 0o757)
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: './plugin', interactiveMode: 'Never' }
  const file = node.path('kubeconfig')
  const user = { name: 'u', user: { exec } }
  const cluster = { name: 'c', cluster: { server: 'https://127.0.0.1:1' } }
  const context = { name: 'x', context: { cluster: 'c', user: 'u' } }
  const config = { clusters: [cluster], users: [user], contexts: [context], 'current-context': 'x' }
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 })
  const source = { namespace: 'demo', kubernetes: { kubeconfig: file } }
  const directories = [{ path: 'disk/web', contents: [{ configMap: 'web' }] }]
  // What is refused does not wait for the server.
  const sync = (more: object, timeout = '1h') => {
    node.configure(directories, { source, ...more })
    return node.run('sync', '--timeout', timeout)
  }
  t.match(await sync({ requireTrusted: true }), { code: 2, stderr: /credential plugin \S+plugin: everybody may write/ })
  t.notOk(existsSync(ran))
  t.match((await node.run('check', '-o', 'json')).stdout, /credential plugin: everybody may write to/)
  t.ok(existsSync(ran), 'check asks the API server as the agent would')
  chmodSync(file, 0o606)
  t.match(await sync({ requireTrusted: true }), { code: 2, stderr: /kubeconfig \S+: everybody may write/ })
  t.match(await sync({}, '1s'), { code: 1, stderr: /kubeconfig: everybody may write.*and so may choose/ })
})
