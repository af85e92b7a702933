/** A hold, a pin and an age end in time: no change comes, and the next comparison is ten minutes away. */
import { readdirSync } from 'node:fs'
import t, { type Test } from 'tap'
import { until } from '../until.js'
import { holdfast, Node } from './holdfast.js'

const web = { path: 'disk/web', contents: [{ secret: 'web' }], history: 2 }
const quiet = ['--log-level', 'error']

async function published(t: Test, directory: object = web) {
  const node = new Node(t, [{ ...web, ...directory }])
  node.put('Secret', 'web', { password: 'one' })
  const agent = node.agent()
  await agent.logged('Published')
  node.put('Secret', 'web', { password: 'two' })
  await agent.logged('Published', 2)
  t.equal(node.read('disk/web/password'), 'two')
  return { node, agent, path: node.path('disk/web') }
}

await t.test('the agent publishes the newer content again once a timed pin is over', async (t) => {
  const { node, path } = await published(t)
  const args = ['--pin', '6s', '--state-directory', node.path('state'), '--no-check', ...quiet]
  const rolledBack = await holdfast(['rollback', path, ...args])
  t.equal(rolledBack.code, 0, rolledBack.stderr)
  t.equal(node.read('disk/web/password'), 'one')
  await until('the pin is over', () => node.read('disk/web/password') === 'two')
})

await t.test('the agent removes each earlier content once its historyMaxAge is over', async (t) => {
  const { node, agent } = await published(t, { historyMaxAge: '5s' })
  const earlier = () => readdirSync(node.path('disk')).filter((name) => /\.[0-9]+-[0-9a-f]{16}$/.test(name))
  node.put('Secret', 'web', { password: 'three' })
  await agent.logged('Published', 3)
  t.ok(earlier().length > 0, 'what was just replaced stays')
  await until('all are gone', () => earlier().length === 0)
})
