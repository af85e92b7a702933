/** A failure that stands is a state of the metrics: since when, over a restart, until it has ended; an operator's hold is none. */
import t from 'tap'
import { until } from '../until.js'
import { holdfast, type Agent } from './holdfast.js'
import { webNode } from './web-node.js'

async function standing(agent: Agent): Promise<{ current: number; since: number }> {
  const { text } = await agent.get('/metrics')
  const value = (name: string) =>
    Number(new RegExp(`^holdfast_directory_${name}\\{.*\\} (\\S+)$`, 'm').exec(text)?.[1] ?? 0)
  return { current: value('current'), since: value('failing_since_timestamp_seconds') }
}

await t.test('the metrics say since when a directory is not what it must be', async (t) => {
  const node = webNode(t)
  node.remove('web')
  const before = Date.now() / 1000
  const agent = node.agent()
  await agent.logged('ObjectMissing')
  const failing = await standing(agent)
  t.equal(failing.current, 0)
  t.ok(failing.since >= before - 1 && failing.since <= Date.now() / 1000, `since ${failing.since}`)
  t.equal(await agent.end('SIGTERM'), 0)

  const again = node.agent()
  await again.logged('ObjectMissing')
  t.same(await standing(again), failing, 'a restart does not begin anew')
  node.put('Secret', 'web', { key: '1' })
  await again.logged('Published')
  t.same(await until('it is current', async () => (await standing(again)).current === 1 && standing(again)), {
    current: 1,
    since: 0,
  })
  t.equal((await holdfast(['hold', node.path('disk/web')])).code, 0)
  node.put('Secret', 'web', { key: '2' })
  await again.logged('Held')
  t.same(await until('it is not current', async () => (await standing(again)).current === 0 && standing(again)), {
    current: 0,
    since: 0,
  })
})
