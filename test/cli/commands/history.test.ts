/** `history: N` as the agent and `sync` keep it, and what `holdfast history` says of it. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { until } from '../../until.js'
import { holdfast, Node, scratch } from '../holdfast.js'
import { isKind } from '../../crash/judge/names.js'

interface Shown {
  readonly contents: readonly { sequence: number; why: string; state: string; objects: { name: string }[] }[]
}

async function past(path: string): Promise<string[]> {
  const { stdout } = await holdfast(['history', path, '-o', 'json'])
  return (JSON.parse(stdout) as Shown).contents.map(({ sequence, why, state }) => `${sequence} ${why} ${state}`)
}

const kept = (directory: string): string[] => readdirSync(directory).filter(isKind('generation'))

await t.test(
  'the agent keeps replaced contents, tells of repairs, and drops contents when the configuration keeps fewer',
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
  'the deletion of an object removes contents made from it, though its directory stays as it is',
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

/** The object as an API server would have it, or without a uid, as a person writes it. */
function put(node: Node, name: string, uid: string, key: string, more: object = {}): void {
  const metadata = { name, ...(uid !== '' && { uid }), ...more }
  const object = { apiVersion: 'v1', kind: 'Secret', metadata, stringData: { key } }
  writeFileSync(join(node.objects, `${name}.yaml`), JSON.stringify(object))
}

/** The keys that lie anywhere below the directory, in the published content and in copies of earlier ones. */
const keysIn = (directory: string): string[] =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && ['key', 'pair.pem'].includes(entry.name))
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8').trim())
    .sort()

const revoked = { path: 'disk/web', history: 3, contents: [{ secret: 'web' }] }

for (const uid of ['', 'first']) {
  await t.test(`history does not keep a key whose revocation holdfast saw (uid "${uid}")`, async (t) => {
    const node = new Node(t, [revoked])
    for (const key of ['1', '2']) {
      put(node, 'web', uid, key)
      t.match(await node.run('sync'), { code: 0 })
    }
    node.remove('web')
    t.match(await node.run('sync'), { code: 1, stdout: /ObjectMissing/ })
    t.strictSame(keysIn(node.path('disk')), ['2'], 'earlier keys go at once')
    put(node, 'web', uid && 'second', '3')
    t.match(await node.run('sync'), { code: 0 })
    t.strictSame(keysIn(node.path('disk')), ['3'], 'what is replaced was made from what was deleted')
    t.match(await node.run('sync'), { code: 0 })
    t.strictSame(keysIn(node.path('disk')), ['3'])
    put(node, 'web', uid && 'second', '4')
    t.match(await node.run('sync'), { code: 0 })
    t.strictSame(keysIn(node.path('disk')), ['3', '4'], 'what the new object gave is kept as always')
  })
}

await t.test('history drops a revoked key also where a check refuses the new content', async (t) => {
  const node = new Node(t, [revoked])
  for (const key of ['1', '2']) {
    put(node, 'web', 'first', key)
    t.match(await node.run('sync'), { code: 0 })
  }
  node.configure([{ ...revoked, beforePublish: [{ exec: ['false', '{dir}'] }] }])
  put(node, 'web', 'second', '3')
  t.match(await node.run('sync'), { code: 1, stdout: /ContentRejected/ })
  t.strictSame(keysIn(node.path('disk')), ['2'], 'what is in force alone')
})

await t.test('history drops earlier keys after an unseen deletion, over restarts', async (t) => {
  const node = new Node(t, [revoked])
  const run = async (uid: string, key: string) => {
    put(node, 'web', uid, key)
    const agent = node.agent()
    await agent.logged('Published')
    t.equal(await agent.end('SIGTERM'), 0)
  }
  await run('first', '1')
  await run('first', '2')
  t.strictSame(keysIn(node.path('disk')), ['1', '2'])
  await run('second', '3')
  t.strictSame(keysIn(node.path('disk')), ['3'])
  await run('second', '4')
  t.strictSame(keysIn(node.path('disk')), ['3', '4'])
})

await t.test(
  'another object of the same content drops earlier keys, and the content is its own from then on',
  async (t) => {
    const node = new Node(t, [revoked])
    for (const key of ['1', '2']) {
      put(node, 'web', 'first', key)
      t.match(await node.run('sync'), { code: 0 })
    }
    put(node, 'web', 'second', '2')
    t.match(await node.run('sync'), { code: 0, stdout: /unchanged/ })
    t.strictSame(keysIn(node.path('disk')), ['2'])
    put(node, 'web', 'second', '3')
    t.match(await node.run('sync'), { code: 0 })
    t.strictSame(keysIn(node.path('disk')), ['2', '3'])
  },
)

await t.test('a combined file that stays keeps the uid of the objects that it was made from', async (t) => {
  const from = [
    { secret: 'web', key: 'key' },
    { secret: 'ca', key: 'key' },
  ]
  const more = { secret: 'other', into: 'other' }
  const combine = { path: 'disk/web', history: 3, contents: [{ combine: 'pair.pem', from, optional: true }, more] }
  const node = new Node(t, [combine])
  put(node, 'web', 'first', 'old-key')
  put(node, 'ca', 'ca', '-ca')
  put(node, 'other', 'other', 'a')
  t.match(await node.run('sync'), { code: 0 })
  t.strictSame(keysIn(node.path('disk')), ['a', 'old-key-ca'])
  put(node, 'ca', 'ca', '-ca', { deletionTimestamp: '2026-01-01T00:00:00Z' })
  put(node, 'web', 'second', 'new-key')
  put(node, 'other', 'other', 'b')
  t.match(await node.run('sync'), { code: 0 })
  t.equal(node.read('disk/web/pair.pem'), 'old-key-ca', 'as it is published, beside other content')
  t.strictSame(keysIn(node.path('disk')), ['b', 'old-key-ca'])
  put(node, 'ca', 'ca', '-ca')
  t.match(await node.run('sync'), { code: 0 })
  t.strictSame(keysIn(node.path('disk')), ['b', 'new-key-ca'])
})

await t.test('history is empty where nothing was published', async (t) => {
  const path = join(scratch(t), 'nothing')
  t.match(await holdfast(['history', path]), { code: 1, stderr: /has published nothing at .*nothing/ })
  t.match(await holdfast(['history']), { code: 2 })
})
