/** A directory that leaves the configuration and comes back: what another program did to it meanwhile is not lost. */
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { tryLock } from '../../native/index.js'
import { namesFor } from '../../src/durable/path/names.js'
import { nameBeside } from '../crash/judge/names.js'
import { until } from '../until.js'
import { holdfast, Node, type Agent } from './holdfast.js'

const contents = [{ secret: 'pki' }]
const other = { path: 'disk/other', contents: [{ secret: 'other' }] }

/** A directory that was adopted: `old` is the content 0 of its history. */
function adopted(t: Test, more: object = {}) {
  const directory = { path: 'disk/pki', adopt: 'replace', contents, ...more }
  const node = new Node(t, [directory, other])
  mkdirSync(node.path('disk/pki'), { recursive: true })
  writeFileSync(node.path('disk/pki/old.crt'), 'old')
  node.put('Secret', 'pki', { 'ca.crt': 'ours' })
  node.put('Secret', 'other', { a: '1' })
  return { node, directory, path: node.path('disk/pki') }
}

/** Another program's work. */
function edit(path: string): void {
  writeFileSync(join(path, 'ca.crt'), 'theirs')
  writeFileSync(join(path, 'ca.key'), 'their key')
}

const namesIn = (path: string): string[] => readdirSync(path).sort()

/** The files of the contents kept beside it, by name of file. What an agent has staged there may go meanwhile. */
const keptIn = (path: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(dirname(path))
      .map(nameBeside)
      .filter(({ kind, sequence }) => kind === 'generation' && sequence === 0)
      .flatMap(({ name }) => readdirSync(join(dirname(path), name), { recursive: true, withFileTypes: true }))
      .filter((entry) => entry.isFile())
      .map((entry) => [entry.name, readFileSync(join(entry.parentPath, entry.name), 'utf8')]),
  )

type Step = 'publishes' | 'lets go' | 'comes back'

/** The reasons that a pass may give for a directory of its configuration. */
const answers = ['Published', 'Unchanged', 'DriftRepaired', 'TargetForeign', 'AdoptionRefused', 'AdoptionPending']

/** By sync alone, by an agent that reloads, or by a restarted agent. Answers the reason reported for the directory. */
function way(node: Node, path: string, by: 'sync' | 'reload' | 'restart') {
  let agent: Agent | undefined
  const reasons = () =>
    (agent?.log() ?? []).flatMap(({ reason = '', directory }) =>
      directory === path && answers.includes(reason) ? [reason] : [],
    )
  const inForce = () => (agent?.log() ?? []).filter(({ msg }) => msg.endsWith('is in force')).length
  return {
    async take(step: Step): Promise<string> {
      if (by === 'sync') {
        const { stdout } = await node.run('sync', '-o', 'json')
        const { directories } = JSON.parse(stdout) as {
          directories: { path: string; outcome: string; reason: string }[]
        }
        const found = directories.find((one) => one.path === path)
        return found?.reason ?? found?.outcome ?? ''
      }
      const before = agent && by === 'reload' ? reasons().length : 0
      const read = inForce()
      if (agent && by === 'reload') agent.signal('SIGHUP')
      else agent = node.agent()
      await agent.address()
      if (step !== 'lets go') await until('an answer', () => reasons().length > before)
      else if (by === 'reload') await until('the file is in force', () => inForce() > read)
      if (by === 'restart') t.equal(await agent.end('SIGTERM'), 0)
      return reasons()[before] ?? ''
    },
    end: async () => by === 'reload' && agent?.end('SIGTERM'),
  }
}

for (const by of ['sync', 'reload', 'restart'] as const) {
  for (const adopt of [true, 'replace', false] as const) {
    await t.test(
      `a directory let go, changed and configured again needs adoption: ${by}, adopt: ${adopt}`,
      async (t) => {
        const { node, directory, path } = adopted(t)
        const steps = way(node, path, by)
        await steps.take('publishes')
        t.strictSame([namesIn(path), keptIn(path)], [['ca.crt'], { 'old.crt': 'old' }])
        node.configure([other])
        await steps.take('lets go')
        edit(path)
        node.configure([{ ...directory, adopt }, other])
        const reason = await steps.take('comes back')
        if (adopt === 'replace') {
          t.match(reason, /^(Published|replaced)$/)
          t.equal(node.read('disk/pki/ca.crt'), 'ours')
          t.strictSame(keptIn(path), { 'ca.crt': 'theirs', 'ca.key': 'their key' })
          t.match((await holdfast(['history', path])).stdout, /\n0 +- .* adopted +whole/)
        } else {
          t.equal(reason, adopt ? 'AdoptionRefused' : 'TargetForeign')
          t.equal(node.read('disk/pki/ca.crt'), 'theirs')
          t.strictSame([namesIn(path), keptIn(path)], [['ca.crt', 'ca.key'], { 'old.crt': 'old' }], 'all is as it was')
        }
        await steps.end()
      },
    )
  }

  await t.test(`a directory let go, unchanged and configured again needs no adoption: ${by}`, async (t) => {
    const { node, directory, path } = adopted(t)
    const steps = way(node, path, by)
    await steps.take('publishes')
    const inode = statSync(path).ino
    node.configure([other])
    await steps.take('lets go')
    node.configure([{ ...directory, adopt: false }, other])
    t.match(await steps.take('comes back'), /^unchanged$/i)
    t.equal(statSync(path).ino, inode, 'nothing is exchanged')
    writeFileSync(join(path, 'ca.crt'), 'drift')
    node.put('Secret', 'pki', { 'ca.crt': 'ours', more: 'a' })
    await until('it is looked after again', async () => {
      if (by === 'sync') await steps.take('publishes')
      if (by === 'restart') await steps.take('publishes')
      return node.read('disk/pki/more') === 'a' && node.read('disk/pki/ca.crt') === 'ours'
    })
    await steps.end()
  })
}

await t.test('status, check and status --orphans say when the agent let a directory go', async (t) => {
  const { node, directory, path } = adopted(t)
  await node.run('sync')
  node.configure([other])
  await node.run('sync')
  t.match((await node.run('status', '--orphans')).stdout, /disk\/pki .* there, let go at \d{4}-/)
  node.configure([{ ...directory, adopt: false }, other])
  t.match((await node.run('check')).stdout, /target +OK +a directory on the same mount/)
  edit(path)
  t.match((await node.run('check')).stdout, /left the configuration at .*Z and has changed since/)
  t.match(
    (await node.run('status')).stdout,
    /disk\/pki left the configuration at .*Z, and has changed since: it comes back by an/,
  )
})

await t.test(
  'an old path that has left the configuration does not move once another program has changed it',
  async (t) => {
    const { node, path } = adopted(t)
    await node.run('sync')
    const moved = { path: 'disk/new', movedFrom: path, movedFromKeep: '1h', contents }
    node.configure([moved, other])
    await node.run('sync')
    node.configure([{ path: 'disk/new', contents }, other])
    await node.run('sync')
    edit(path)
    node.configure([moved, other])
    t.match(
      (await node.run('sync')).stdout,
      /TargetForeign: .*disk\/pki left the configuration at .*, and has changed since/,
    )
    t.strictSame([namesIn(path), node.read('disk/pki/ca.crt')], [['ca.crt', 'ca.key'], 'theirs'])
  },
)

for (const adopt of [true, 'replace', false] as const) {
  await t.test(`a directory in the form symlink, let go and changed, needs adoption: adopt: ${adopt}`, async (t) => {
    const directory = { path: 'disk/pki', publish: 'symlink', contents, adopt }
    const node = new Node(t, [directory, other])
    node.put('Secret', 'pki', { 'ca.crt': 'ours' })
    node.put('Secret', 'other', { a: '1' })
    const path = node.path('disk/pki')
    await node.run('sync')
    node.configure([other])
    await node.run('sync')
    edit(join(path, '..data'))
    node.configure([directory, other])
    const { stdout } = await node.run('sync')
    if (adopt === 'replace') {
      t.equal(node.read('disk/pki/ca.crt'), 'ours')
      t.strictSame(keptIn(path), { 'ca.crt': 'theirs', 'ca.key': 'their key' })
    } else {
      t.match(stdout, /TargetForeign: .*left the configuration at /)
      t.equal(node.read('disk/pki/..data/ca.key'), 'their key')
    }
  })
}

for (const by of ['sync', 'restart'] as const) {
  await t.test(`a directory comes back before its record could say that it had left: ${by}`, async (t) => {
    const { node, directory, path } = adopted(t)
    const steps = way(node, path, by)
    await steps.take('publishes')
    // Another process publishes, and takes its time.
    const lock = openSync(join(path, '..', namesFor('pki').lock), 'r')
    t.ok(tryLock(lock))
    node.configure([other])
    await steps.take('lets go')
    edit(path)
    node.configure([{ ...directory, adopt: false }, other])
    t.equal(await steps.take('comes back'), 'TargetForeign')
    closeSync(lock)
    t.equal(await steps.take('comes back'), 'TargetForeign', 'what it holds may be what another program has made of it')
    t.equal(node.read('disk/pki/ca.crt'), 'theirs')
    t.strictSame(namesIn(path), ['ca.crt', 'ca.key'])
    node.configure([{ ...directory, adopt: 'replace' }, other])
    t.match(await steps.take('comes back'), /^(Published|replaced)$/)
    t.strictSame(keptIn(path), { 'ca.crt': 'theirs', 'ca.key': 'their key' })
  })
}

await t.test('a directory that was never published comes back to an empty parent', async (t) => {
  const web = { path: 'empty/web', contents: [{ secret: 'web' }] }
  const node = new Node(t, [web, other])
  node.put('Secret', 'other', { a: '1' })
  mkdirSync(node.path('empty'))
  t.match(await node.run('sync'), { code: 1, stdout: /web .*ObjectMissing/ })
  node.configure([other])
  t.match(await node.run('sync'), { code: 0 })
  node.put('Secret', 'web', { key: '1' })
  node.configure([web, other])
  t.match(await node.run('sync'), { code: 0, stdout: /^created .*web/ })
  t.equal(node.read('empty/web/key'), '1')
})
