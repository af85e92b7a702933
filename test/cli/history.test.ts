/** `history: N` as the agent and `sync` keep it, and what `holdfast history` says of it. */
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { until } from '../until.js'
import { holdfast, Node, scratch } from './holdfast.js'

interface Shown {
  readonly contents: readonly { sequence: number; why: string; state: string; objects: { name: string }[] }[]
}

async function past(path: string): Promise<string[]> {
  const { stdout } = await holdfast(['history', path, '-o', 'json'])
  return (JSON.parse(stdout) as Shown).contents.map(({ sequence, why, state }) => `${sequence} ${why} ${state}`)
}

const kept = (directory: string): string[] =>
  readdirSync(directory).filter((name) => /^\.holdfast-[0-9a-f]{16}\.\d+-[0-9a-f]{16}$/.test(name))

await t.test(
  'the agent keeps what it replaces, says what it has repaired, and keeps fewer once it is told to',
  async (t) => {
    const directory = { path: 'disk/web', history: 2, contents: [{ secret: 'web' }] }
    const node = new Node(t, [directory], { driftInterval: '1s' })
    const path = node.path('disk/web')
    const agent = node.agent()
    for (const [index, key] of ['1', '2', '3', '4'].entries()) {
      node.put('Secret', 'web', { key })
      await agent.logged('Published', index + 1)
    }
    t.strictSame(await past(path), ['4 published present', '3 published whole', '2 published whole'])
    const { stdout } = await holdfast(['history', path])
    t.match(stdout, /^SEQUENCE {2}PUBLISHED +REPLACED +WHY +STATE +DIGEST +OBJECTS\n4 .*Z {2}- +published {2}present /)
    t.match(stdout, /\n2 .*Z {2}\S+Z {2}published {2}whole +sha256:[0-9a-f]{12} {2}Secret demo\/web\n$/)

    writeFileSync(join(path, 'key'), 'edited')
    await agent.logged('DriftRepaired')
    t.equal((await past(path))[0], '5 driftRepaired present')

    node.configure([{ ...directory, history: 1 }], { driftInterval: '1s' })
    agent.signal('SIGHUP')
    await until('the older one goes', () => kept(node.path('disk')).length === 1)
    node.configure([{ ...directory, history: 1, historyMaxAge: '1s' }], { driftInterval: '1s' })
    agent.signal('SIGHUP')
    await until('its time is over', () => kept(node.path('disk')).length === 0)
    t.equal(await agent.end('SIGTERM'), 0)
  },
)

await t.test(
  'an object that is gone takes away what was made from it, though its directory stays as it is',
  async (t) => {
    const contents = [{ secret: 'web' }, { secret: 'key', into: 'more' }]
    const node = new Node(t, [{ path: 'disk/web', history: 3, contents }])
    const path = node.path('disk/web')
    node.put('Secret', 'key', { key: 'k' })
    for (const key of ['1', '2', '3']) {
      node.put('Secret', 'web', { key })
      t.match(await node.run('sync'), { code: 0 })
    }
    t.equal((await past(path)).length, 3)
    node.remove('key')
    t.match(await node.run('sync'), { code: 1, stdout: /ObjectMissing|key/ })
    t.strictSame(await past(path), ['3 published present'])
    t.strictSame(kept(node.path('disk')), [])
  },
)

await t.test('where nothing was published there is no history', async (t) => {
  const path = join(scratch(t), 'nothing')
  t.match(await holdfast(['history', path]), { code: 1, stderr: /has published nothing at .*nothing/ })
  t.match(await holdfast(['history']), { code: 2 })
})
