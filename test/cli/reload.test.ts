/** What a new configuration asks for is put in force as a whole, or not at all. */
import t from 'tap'
import { until } from '../until.js'
import { Node } from './holdfast.js'

await t.test('a source that cannot be loaded now leaves all as it was, and can be had later', async (t) => {
  const web = { path: 'disk/web', contents: [{ configMap: 'conf' }] }
  const node = new Node(t, [web])
  node.put('ConfigMap', 'conf', { port: '80' })
  const agent = node.agent()
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
  t.match(await agent.logged('SourceUnavailable'), { msg: /kubeconfig/ })
  t.equal((await fetch(`http://${moved}/livez`)).status, 200)
  await t.rejects(fetch(new URL('/livez', before)), 'the old address is given up')
  t.equal(await agent.end('SIGTERM'), 0)
})
