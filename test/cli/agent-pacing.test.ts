/** What waits for the agent's intervals, what does not, and what becomes of it when the agent ends; on objects in files. */
import { writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { until } from '../until.js'
import { holdfast, Node } from './holdfast.js'

const long = { debounce: { quiet: '1h', atMost: '1h' }, minInterval: '1h', hookInterval: '1h' }
const directory = { path: 'disk/a', contents: [{ secret: 'a' }], ...long }

/** The first publication, which waits for nothing, is on the disk. */
async function publishedOnce(t: Test, more: object = {}, document: object = {}) {
  const node = new Node(t, [])
  node.configure([{ ...directory, ...more }], document)
  node.put('Secret', 'a', { v: '1' })
  const agent = node.agent()
  await until('the first publication is there', () => node.read('disk/a/v') === '1')
  return { node, agent }
}

interface Operations {
  readonly operations: readonly { readonly name: string; readonly state: string; readonly nextTry: string | null }[]
}

async function waits(node: Node, operation: string): Promise<void> {
  await until(`${operation} waits, and status tells until when`, () => {
    const { operations } = JSON.parse(node.read('state/status.json') ?? '{"operations":[]}') as Operations
    const found = operations.find(({ name }) => name.startsWith(`${operation} `))
    return found?.state === 'waiting' && Date.parse(found.nextTry ?? '') > Date.now() + 600_000
  })
}

await t.test('SIGHUP publishes a change that waits', async (t) => {
  const { node, agent } = await publishedOnce(t)
  node.put('Secret', 'a', { v: '2' })
  await waits(node, 'publish')
  t.equal(node.read('disk/a/v'), '1')
  t.match(
    (await node.run('status')).stdout,
    /disk\/a: debounce or minInterval lets the agent publish what has changed in \d+m\n/,
  )
  t.match((await agent.get('/metrics')).text, /^holdfast_operations_waiting\{operation="publish"\} 1$/m)
  agent.signal('SIGHUP')
  await until('the change is there', () => node.read('disk/a/v') === '2')
  t.equal(await agent.end('SIGTERM'), 0)
})

await t.test('drift is repaired while a change waits', async (t) => {
  const { node, agent } = await publishedOnce(t, {}, { driftInterval: '1s' })
  node.put('Secret', 'a', { v: '2' })
  await waits(node, 'publish')
  writeFileSync(node.path('disk/a/v'), 'drift')
  await until('it is repaired', () => node.read('disk/a/v') === '2')
  await agent.logged('DriftRepaired')
  t.equal(await agent.end('SIGTERM'), 0)
})

await t.test('the end of a hold publishes what waits', async (t) => {
  const { node, agent } = await publishedOnce(t)
  const target = node.path('disk/a')
  t.equal((await holdfast(['hold', target, '--for', '3s'])).code, 0)
  node.put('Secret', 'a', { v: '2' })
  await until('the change is there', () => node.read('disk/a/v') === '2')
  t.equal(await agent.end('SIGTERM'), 0)
})

await t.test('a change that waits is published by the next agent', async (t) => {
  const { node, agent } = await publishedOnce(t, { debounce: { quiet: '0s' } })
  for (const version of ['2', '3', '4', '5']) {
    node.put('Secret', 'a', { v: version })
    await until(`${version} is there`, () => node.read('disk/a/v') === version)
  }
  node.put('Secret', 'a', { v: '6' })
  await waits(node, 'publish')
  t.equal(await agent.end('SIGTERM'), 0)
  t.equal(node.read('disk/a/v'), '5')
  const next = node.agent()
  await until('the change is there', () => node.read('disk/a/v') === '6')
  t.equal(await next.end('SIGTERM'), 0)
})

await t.test('a hook that waits runs after SIGHUP, and after a restart', async (t) => {
  const node = new Node(t, [])
  const hook = { exec: ['/bin/sh', '-c', `cat ${node.path('disk/a/v')} >> ${node.path('ran')}`] }
  const { path, contents, hookInterval } = directory
  node.configure([{ path, contents, hookInterval, afterPublish: [hook] }])
  node.put('Secret', 'a', { v: '1' })
  const agent = node.agent()
  await until('it has run for the first publication', () => node.read('ran') === '1')
  const publish = async (version: string) => {
    node.put('Secret', 'a', { v: version })
    await until(`${version} is there`, () => node.read('disk/a/v') === version)
    await waits(node, 'afterPublish')
  }
  await publish('2')
  t.match((await node.run('status')).stdout, /the hook "exec sh" has not run yet: hookInterval lets it run in \d+m\n/)
  t.equal(node.read('ran'), '1')
  agent.signal('SIGHUP')
  await until('it has run', () => node.read('ran') === '12')
  await publish('3')
  t.equal(await agent.end('SIGTERM'), 0)
  t.equal(node.read('ran'), '12')
  const next = node.agent()
  await until('it has run after the restart', () => node.read('ran') === '123')
  t.equal(await next.end('SIGTERM'), 0)
})
