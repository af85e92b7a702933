/** Hooks of the agent, on objects in files: after which publication they run, and which ones run after a restart. */
import { mkdirSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { until } from '../until.js'
import { Node } from './holdfast.js'
import { web, webNode } from './web-node.js'

await t.test(
  'the agent runs hooks after a publication, and reports and retries a failed one without other changes',
  async (t) => {
    const ran = (node: Node) => node.read('ran')?.trim().split('\n').length ?? 0
    const node = webNode(t)
    const script = `cat ${node.path('disk/web/secret/user')} >> ${node.path('ran')}; echo >> ${node.path('ran')}; test -e ${node.path('allowed')}`
    node.configure([{ ...web, afterPublish: [{ exec: ['/bin/sh', '-c', script], retries: 0 }] }])
    const agent = node.agentProcess()
    await agent.logged('HookFailed')
    t.equal((await agent.get('/readyz')).status, 200)
    t.match((await agent.get('/metrics')).text, /^holdfast_hook_failing_since_timestamp_seconds\{.*"\} \d{9,}$/m)
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
    t.notMatch(metrics, /^holdfast_hook_failing_since/m)
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

await t.test('the agent finds a pending hook again after the list around it was edited', async (t) => {
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

await t.test('the agent runs the hooks of a directory that another process published meanwhile', async (t) => {
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

await t.test(
  'the agent runs the same hook of several directories once, after all of them; after a failure again for all',
  async (t) => {
    const node = new Node(t, [])
    const names = ['a', 'b', 'c']
    const files = names.map((name) => node.path(`disk/${name}/v`)).join(' ')
    // The hook's output shows that none of the directories is behind; `fail` makes it fail.
    const script = `cat ${files} >> ${node.path('ran')}; echo >> ${node.path('ran')}; ! rm ${node.path('fail')} 2> /dev/null`
    const reload = { exec: ['/bin/sh', '-c', script], retries: 0 }
    const own = (name: string) => ({ exec: ['/bin/sh', '-c', `echo ${name} >> ${node.path('own')}`] })
    node.configure(
      names.map((name) => ({
        path: `disk/${name}`,
        contents: [{ secret: 'shared' }],
        hookInterval: '1s',
        afterPublish: name === 'b' ? [reload, own(name)] : [own(name), reload],
      })),
    )
    const finished = () => {
      const { directories } = JSON.parse(node.read('state/status.json') ?? '') as {
        directories: { pendingHooks: string[] }[]
      }
      return directories.length === 3 && directories.every(({ pendingHooks }) => pendingHooks.length === 0)
    }
    const lines = (file: string) => (node.read(file) ?? '').split('\n').length - 1
    for (const version of ['1', '2', '3']) {
      if (version === '3') writeFileSync(node.path('fail'), '')
      node.put('Secret', 'shared', { v: version })
      if (version === '1') node.agent()
      await until(`the directories' own hooks, ${version}`, () => lines('own') === 3 * Number(version))
      await until(`the shared one, ${version}`, () => lines('ran') >= Number(version) + (version === '3' ? 1 : 0))
      await until(`no hook is left, ${version}`, finished)
    }
    t.equal(
      node.read('ran'),
      '111\n222\n333\n333\n',
      'once for each version, after all of them; once more for all after a failure',
    )
  },
)
