/** A directory's life, against the real API: kept, shown, rolled back, held, moved, adopted and dropped while objects change. */
import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import t from 'tap'
import { Cluster } from './cluster.js'
import { readTree } from './disk.js'
import { type Directory, Node } from './node.js'
import { until } from './until.js'

t.setTimeout(180_000)

const cluster = await Cluster.start()
t.teardown(() => cluster.stop())
const namespace = await cluster.namespace()
for (const name of ['web', 'moves', 'taken', 'leaves']) await namespace.putSecret(name, { key: `${name} 1` })

const web: Directory = { path: 'web', history: 3, contents: [{ secret: 'web' }] }
const moves: Directory = { path: 'moves', contents: [{ secret: 'moves' }] }
const taken: Directory = { path: 'taken', adopt: true, contents: [{ secret: 'taken' }] }
const leaves: Directory = { path: 'leaves', onDrop: 'remove', contents: [{ secret: 'leaves' }] }

const node = await Node.create(t, namespace, {
  allowed: { secrets: ['web', 'moves', 'taken', 'leaves'] },
  directories: [web, moves, taken, leaves],
})
const { agent } = node
const path = node.path('web')
const key = (directory: string): string | undefined => readTree(node.path(directory))?.['key']

/** Puts the value into the API, and waits until it is on the disk. */
async function follow(name: string, value: string, directories: readonly string[] = [name]): Promise<void> {
  await namespace.putSecret(name, { key: value })
  await until(`${value} is on the disk`, () => directories.every((directory) => key(directory) === value))
}

interface Contents {
  readonly contents: readonly {
    readonly sequence: number
    readonly why: string
    readonly state: string
    readonly objects: readonly { readonly resourceVersion: string }[]
  }[]
}

async function history(): Promise<Contents['contents']> {
  return (JSON.parse((await agent.runPlain('history', path, '-o', 'json')).stdout) as Contents).contents
}

const short = (contents: Contents['contents']): string[] => contents.map(({ why, state }) => `${why} ${state}`)

await t.test("the agent adopts another program's directory without a visible change for readers", async (t) => {
  const target = node.path('taken')
  mkdirSync(target)
  writeFileSync(`${target}/key`, 'taken 1', { mode: 0o600 })
  const { ino } = statSync(target)
  t.match(await agent.run('adopt', target, '--dry-run'), {
    code: 0,
    stdout: /exists +passed.*noOtherWriter +passed.*space/s,
  })
  t.equal(statSync(target).ino, ino, 'a dry run changes nothing')
  agent.start()
  await until('each is on the disk', () => ['web', 'moves', 'leaves'].every((name) => key(name) === `${name} 1`))
  await agent.condition(target, 'Published', 'True')
  t.equal(key('taken'), 'taken 1')
  t.not(statSync(target).ino, ino, 'by files of its own')
})

await t.test('history and diff show each content with the API versions that it came from', async (t) => {
  const versions = [...(await history()).flatMap(({ objects }) => objects.map((each) => each.resourceVersion))]
  for (const value of ['web 2', 'web 3']) {
    const secret = await namespace.putSecret('web', { key: value })
    versions.unshift(secret.metadata.resourceVersion)
    await agent.condition(path, 'Published', 'True', undefined, { objects: [secret] })
    t.equal(key('web'), value)
  }
  const contents = await history()
  t.strictSame(short(contents), ['published present', 'published whole', 'published whole'])
  t.strictSame(
    contents.flatMap(({ objects }) => objects.map((each) => each.resourceVersion)),
    versions,
  )
  t.match(await agent.run('diff', path), { code: 0 }, 'the disk has what the API says')
  const older = await agent.run('diff', path, '--from', '1', '--to', 'desired')
  t.match(older, { code: 4, stdout: /changed +key / })
  t.notMatch(older.stdout, /web [13]/, 'without a byte of the Secret')
})

await t.test('a hold keeps the newer version back until the release', async (t) => {
  t.match(await agent.runPlain('hold', path, '--reason', 'maintenance'), { code: 0 })
  await namespace.putSecret('web', { key: 'web 4' })
  await agent.condition(path, 'Published', 'False', 'Held')
  t.equal(key('web'), 'web 3')
  t.match(await agent.run('diff', path), { code: 4, stdout: /changed +key / }, 'what the release will publish')
  t.match(await agent.runPlain('release', path), { code: 0 })
  await until('it is published', () => key('web') === 'web 4')
})

await t.test("a rollback keeps the API's version out until a newer one comes", async (t) => {
  t.match(await agent.run('rollback', path, '--reason', 'old clients'), { code: 0, stdout: /^rolled back .* to \d+ / })
  t.equal(key('web'), 'web 3')
  await agent.condition(path, 'Published', 'False', 'RolledBack')
  t.equal(short(await history())[0], 'rolledBack present')
  await follow('web', 'web 5')
  await agent.condition(path, 'Published', 'True')
})

await t.test('a directory moves, and both paths follow; another leaves the configuration, and waits', async (t) => {
  const moved: Directory = {
    path: 'moved',
    contents: moves.contents,
    movedFrom: node.path('moves'),
    movedFromKeep: '1h',
  }
  t.match(await node.configure([web, taken, moved]), /put its configuration in force/)
  await until('the new path is there', () => key('moved') === 'moves 1')
  await follow('moves', 'moves 2', ['moves', 'moved'])
  const message = /moves moves to .*moved \(both\)/
  await agent.condition(node.path('moves'), 'Published', 'True', 'Relocating', { message })
  t.match(agent.logged('Relocating').at(-1), { state: 'both' })
  await until('the drop is announced', () => agent.logged('DropPending').length > 0)
  t.equal(key('leaves'), 'leaves 1', 'ten minutes are left to take it back')
  const orphans = await agent.run('status', '--orphans', dirname(node.path('leaves')))
  t.match(orphans.stdout, node.path('leaves'))
  t.match(await node.configure([web, taken, moved, leaves]), /in force/)
  await follow('leaves', 'leaves 2')
})

await t.test('the agent keeps all of it through SIGKILL', async (t) => {
  await agent.kill()
  await namespace.putSecret('moves', { key: 'moves 3' })
  agent.start()
  await until('both follow again', () => key('moves') === 'moves 3' && key('moved') === 'moves 3')
  t.strictSame(short(await history()).slice(0, 2), ['published present', 'rolledBack whole'])
  t.same(
    readdirSync(dirname(path)).filter((name) => name.includes('foreign')),
    [],
  )
  t.equal(await agent.stop(), 0)
})
