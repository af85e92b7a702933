/** A new configuration comes in force as a whole, or not at all. */
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { until } from '../../until.js'
import { Node } from '../holdfast.js'

await t.test('a reload with an unloadable source changes nothing, and a later one succeeds', async (t) => {
  const web = { path: 'disk/web', contents: [{ configMap: 'conf' }] }
  const node = new Node(t, [web])
  node.put('ConfigMap', 'conf', { port: '80' })
  const agent = node.agentProcess()
  await agent.logged('Published')
  const before = new URL(await agent.address())
  const moved = `127.0.0.2:${before.port}`

  // The file and the new address take one each; the code of the source takes more.
  agent.limitDescriptors(2)
  const kubernetes = { kubeconfig: node.path('kubeconfig') }
  const more = { source: { namespace: 'demo', kubernetes }, server: { address: moved } }
  node.configure([web], more)
  const refusal = /source\.kubernetes cannot be loaded: too few file descriptors .*EMFILE/
  const answers = () => agent.log().filter(({ msg }) => msg.endsWith('stays in force'))
  // Something else of the agent's may take them in that moment: asked again, it comes to the same.
  for (let tries = 1; !refusal.test(answers().at(-1)?.msg ?? '') && tries <= 20; tries++) {
    const before = answers().length
    agent.signal('SIGHUP')
    await until('an answer', () => answers().length > before)
  }
  t.match(answers().at(-1)?.msg, refusal)
  agent.limitDescriptors('as before')
  t.equal((await agent.get('/livez')).status, 200)
  await t.rejects(fetch(`http://${moved}/livez`), 'the new address is given up')
  const publishedBefore = agent.log().filter(({ reason }) => reason === 'Published').length
  node.put('ConfigMap', 'conf', { port: '81' })
  await agent.logged('Published', publishedBefore + 1)
  t.equal(node.read('disk/web/port'), '81', 'the old source goes on')

  agent.signal('SIGHUP')
  // The files' source may have reported the same reason while there were no descriptors.
  const unavailable = /SourceUnavailable.*kubeconfig/
  await until('the new source reports', () =>
    agent.log().some(({ reason, msg }) => unavailable.test(`${reason} ${msg}`)),
  )
  t.equal((await fetch(`http://${moved}/livez`)).status, 200)
  await t.rejects(fetch(new URL('/livez', before)), 'the old address is given up')
  t.equal(await agent.end('SIGTERM'), 0)
})

const inForce = / is in force$/

await t.test('reload: auto puts a changed file in force, a mounted ConfigMap too; signal leaves it', async (t) => {
  const directory = (name: string) => ({ path: `disk/${name}`, contents: [{ configMap: 'conf' }] })
  const node = new Node(t, [directory('a')], { reload: 'auto' })
  node.put('ConfigMap', 'conf', { port: '80' })
  // As kubelet mounts it: the file is a link into a directory that another link names.
  const mount = node.path('mount')
  const version = (number: number, directories: object[], more: object): void => {
    const data = join(mount, `..${number}`)
    mkdirSync(data, { recursive: true })
    node.configure(directories, more)
    // Relative paths start at the configuration file's directory.
    const text = readFileSync(node.configuration, 'utf8').replaceAll('"disk/', `"${node.path('disk')}/`)
    writeFileSync(join(data, 'holdfast.yaml'), text)
    symlinkSync(`..${number}`, join(mount, '..data_tmp'))
    renameSync(join(mount, '..data_tmp'), join(mount, '..data'))
    if (number > 1) rmSync(join(mount, `..${number - 1}`), { recursive: true })
  }
  const auto = { reload: 'auto' }
  version(1, [directory('a')], auto)
  symlinkSync('..data/holdfast.yaml', join(mount, 'holdfast.yaml'))
  const agent = node.agentProcess([], [], join(mount, 'holdfast.yaml'))
  await until('published', () => node.read('disk/a/port'))
  version(2, [directory('a'), directory('b')], auto)
  await until('the new directory is published', () => node.read('disk/b/port'))
  t.equal(agent.log().filter(({ msg }) => inForce.test(msg)).length, 1, 'it was read once')

  version(3, [{ path: 'disk/b', contents: [] }], auto)
  t.match(await agent.logged('ConfigurationInvalid'), { msg: /directories\[0\]\.contents: is an empty list/ })
  version(4, [directory('c')], { reload: 'signal' })
  await until('what was wrong is corrected', () => node.read('disk/c/port'))
  version(5, [directory('d')], auto)
  agent.signal('SIGHUP')
  await until('the signal puts it in force', () => node.read('disk/d/port'))
  version(6, [directory('d'), directory('e')], auto)
  await until('and it is watched again', () => node.read('disk/e/port'))
  t.equal(await agent.end('SIGTERM'), 0)
})

await t.test('reload: auto waits for a half-written file, and for a missing one', async (t) => {
  const directory = (name: string) => ({ path: `disk/${name}`, contents: [{ configMap: 'conf' }] })
  const node = new Node(t, [directory('a')], { reload: 'auto' })
  node.put('ConfigMap', 'conf', { port: '80' })
  const agent = node.agentProcess()
  await until('published', () => node.read('disk/a/port'))
  rmSync(node.configuration)
  node.configure([directory('a'), directory('b')], { reload: 'auto' })
  await until('what was removed and written again', () => node.read('disk/b/port'))
  node.configure([directory('c')])
  await until('the last that asks for it', () => node.read('disk/c/port'))
  t.notOk(agent.log().some(({ reason }) => reason === 'ConfigurationInvalid'))
  t.equal(await agent.end('SIGTERM'), 0)
})

await t.test('reload prints the answer of the running agent, and fails where none runs', async (t) => {
  const directory = (name: string) => ({ path: `disk/${name}`, contents: [{ configMap: 'conf' }] })
  const node = new Node(t, [directory('a')])
  node.put('ConfigMap', 'conf', { port: '80' })
  t.match(await node.run('reload'), { code: 1, stderr: /no agent has written .*status\.json/ })
  const agent = node.agentProcess()
  await until('published', () => node.read('disk/a/port'))
  await until('the status is written', () => node.read('state/status.json'))

  node.configure([directory('b')])
  t.match(await node.run('reload', '-o', 'json'), { code: 0, stdout: /"reloaded": true/ })
  await until('the new directory', () => node.read('disk/b/port'))
  t.match(await node.run('reload'), { code: 0, stdout: /^process \d+ has put its configuration in force\n$/ }, 'again')

  node.configure([directory('b')], { stateDirectory: node.path('state'), server: { address: '203.0.113.1:1' } })
  t.match(await node.run('reload'), { code: 2, stderr: /keeps its previous configuration: .*203\.0\.113\.1/ })
  const forced = agent.log().filter(({ msg }) => inForce.test(msg)).length
  node.configure([{ path: 'disk/b', contents: [] }])
  t.match(await node.run('reload'), { code: 2, stderr: /contents: is an empty list/ })
  t.equal(agent.log().filter(({ msg }) => inForce.test(msg)).length, forced, 'a file that is wrong asks no agent')
  node.configure([directory('b')])
  t.equal((await node.run('reload')).code, 0)

  t.equal(await agent.end('SIGTERM'), 0)
  t.match(await node.run('reload'), { code: 1, stderr: /runs no more/ })
  // Its pid may be another process's by now: this one's.
  const status = JSON.parse(node.read('state/status.json') ?? '') as { agent: Record<string, unknown> }
  const process_ = { ...(status.agent['process'] as object), pid: process.pid }
  const forged = { ...status, agent: { ...status.agent, stoppedAt: undefined, pid: process.pid, process: process_ } }
  writeFileSync(node.path('state/status.json'), JSON.stringify(forged))
  t.match(await node.run('reload'), { code: 1, stderr: /runs no more/ }, 'no other process gets the signal')
  const elsewhere = { ...forged, agent: { ...forged.agent, process: { ...process_, pidNamespace: 'pid:[1]' } } }
  writeFileSync(node.path('state/status.json'), JSON.stringify(elsewhere))
  t.match(await node.run('reload'), { code: 1, stderr: /another pid namespace/ })
})
