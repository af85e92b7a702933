/** `movedFrom`: a directory gets another path while programs use it. */
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { holder } from '../check/holders.js'
import { seeingAll } from '../seeing-all.js'
import { until } from '../until.js'
import { hurried, namedIn, tenMinutesPass } from './absences.js'
import { holdfast, Node } from './holdfast.js'

const contents = [{ secret: 'web' }]
const old = { path: 'disk/old', contents, mode: '0750', publish: 'exchange' }
const moved = { path: 'disk/sub/new', contents, movedFrom: 'disk/old', movedFromKeep: '1h' }

interface Shown {
  readonly directories: readonly { path: string; conditions: readonly Record<string, string>[] }[]
}

await t.test('the agent keeps both paths up to date, through a crash, until the old one is gone', async (t) => {
  const node = new Node(t, [old], { driftInterval: '1s' })
  node.put('Secret', 'web', { key: '1' })
  const first = node.agentProcess()
  await first.logged('Published')
  const pid = await holder(t, 'hold', [], node.path('disk/old'))
  node.configure([moved], { driftInterval: '1s' })
  first.signal('SIGHUP')
  t.match(await first.logged('Relocating'), {
    directory: node.path('disk/old'),
    to: node.path('disk/sub/new'),
    state: 'both',
  })
  t.notOk(first.log().some(({ msg }) => msg.includes('is no longer configured')))
  node.put('Secret', 'web', { key: '2' })
  await until('the old path follows', () => node.read('disk/old/key') === '2')
  t.equal(node.read('disk/sub/new/key'), '2')
  const condition = async (): Promise<Record<string, string> | undefined> => {
    const { directories } = JSON.parse((await node.run('status', '-o', 'json')).stdout) as Shown
    return directories.find(({ path }) => path.endsWith('/old'))?.conditions.find(({ type }) => type === 'Published')
  }
  const waits = /old moves to .*sub\/new \(both\): .*(is in use: |stays until )/
  await until('the status says what it waits for', async () => waits.test((await condition())?.message ?? ''))
  t.match(await condition(), { status: 'True', reason: 'Relocating' })
  t.match((await node.run('status')).stdout, `process ${pid} (sh) works in old content`)
  const metric = async (): Promise<string | undefined> =>
    /holdfast_directory_moving\{directory="[^"]*old"\} (\d)/.exec((await first.get('/metrics')).text)?.[1]
  t.equal(await metric(), '1')
  t.equal((await first.get('/readyz')).status, 200)
  await first.end('SIGKILL')

  const second = node.agent()
  node.put('Secret', 'web', { key: '3' })
  await until('both go on', () => node.read('disk/old/key') === '3' && node.read('disk/sub/new/key') === '3')
  t.same(
    second.log().filter(({ reason, state }) => reason === 'Relocating' && state === 'staged'),
    [],
  )
  process.kill(pid, 'SIGKILL')
  const third = { path: 'disk/third', contents, movedFrom: 'disk/sub/new', movedFromKeep: '1h' }
  node.configure([third], { driftInterval: '1s' })
  second.signal('SIGHUP')
  t.match((await second.logged('ConfigurationInvalid')).msg, /disk\/old still moves to .*sub\/new.* stays in force$/)
  t.notOk(existsSync(node.path('disk/third')))
  t.match(await holdfast(['remove', node.path('disk/old'), '--force', '--wait', '10m', '--lock-timeout', '10m']), {
    code: 0,
    stdout: `removed ${node.path('disk/old')}\n`,
    stderr: /^((?!error).)*$/s,
  })
  t.match(await second.logged('Relocated'), { directory: node.path('disk/old'), state: 'done' })
  t.notOk(existsSync(node.path('disk/old')))
  await until('the status says nothing of it', async () => (await condition()) === undefined)
  await until('the refused file comes into force once that move is done', () => node.read('disk/third/key') === '3')
  const status = async () => (await node.run('status', '-o', 'json')).stdout
  await until('the status refuses it no more', async () => !(await status()).includes('configurationInvalid'))
  t.equal((await second.get('/readyz')).status, 200)
  mkdirSync(node.path('disk/old'))
  second.signal('SIGHUP')
  node.put('Secret', 'web', { key: '4' })
  await until('the new path goes on', () => node.read('disk/sub/new/key') === '4')
  t.same(readdirSync(node.path('disk/old')), [], 'what comes there later is left alone')
  t.equal(await second.end('SIGTERM'), 0)
})

await t.test('sync moves as far as it can, and reports the rest; the way back has no gap', async (t) => {
  const node = new Node(t, [old])
  node.put('Secret', 'web', { key: '1' })
  t.match(await node.run('sync'), { code: 0 })
  await holder(t, 'hold', [], node.path('disk/old'))
  node.configure([moved])
  node.put('Secret', 'web', { key: '2' })
  t.match(await node.run('sync', '--dry-run'), { code: 0, stdout: /^would be created .*new .*\n +\+ key\n$/ })
  const dry = await node.run('sync', '-o', 'json')
  t.match(JSON.parse(dry.stdout), {
    directories: [
      { path: node.path('disk/sub/new'), outcome: 'created' },
      {
        path: node.path('disk/old'),
        outcome: 'moving',
        reason: 'Relocating',
        message: /moves to .*sub\/new \(both\): .*(in use|stays until)/,
      },
    ],
  })
  t.equal(node.read('disk/old/key'), '2')
  t.match(await node.run('sync'), { code: 0, stdout: /^unchanged .*\nmoving .* Relocating: .*moves to/ })
  t.match(
    (await node.run('status')).stdout,
    /disk\/old +True +Unknown +Relocating .*old moves to .*new \(both\)\n.*old: process \d+ \(sh\) works in /s,
  )
  t.match(await node.run('check'), { stdout: /disk\/sub\/new/ })

  node.configure([old])
  node.put('Secret', 'web', { key: '3' })
  t.match(await node.run('sync'), { code: 0, stdout: /^replaced .*old / })
  t.equal(node.read('disk/old/key'), '3')
  t.equal(node.read('disk/sub/new/key'), '2', 'what is not configured any more stays as it is')
  node.configure([moved])
  t.match(await node.run('sync'), { code: 0, stdout: /^replaced .*\nmoving / }, 'and once more')
  t.equal(node.read('disk/sub/new/key'), '3')
  node.configure([{ path: 'disk/third', contents, movedFrom: 'disk/sub/new', movedFromKeep: '1h' }])
  const refused = /TargetUnfit: .*disk\/old still moves to .*sub\/new \(both\).*disk\/third is published already/
  t.match(await node.run('sync'), { code: 1, stdout: refused }, 'a path that another one still moves to')
  t.same([node.read('disk/old/key'), node.read('disk/sub/new/key')], ['3', '3'])
  t.equal(node.read('disk/third/key'), '3', 'as the message says')
  node.configure([{ path: 'disk/sub/new', contents }])
  t.match(await node.run('sync'), { code: 0, stdout: /^unchanged [^\n]*\n$/ })
  t.ok(existsSync(join(node.path('disk/old'), 'key')))
})

const prefix = await seeingAll()

await t.test(
  'both paths of a move that leave the configuration midway go as its onDrop says',
  { skip: prefix === undefined && 'needs root to see all processes' },
  async (t) => {
    const onDrop = 'remove'
    const node = new Node(t, [{ ...old, onDrop }])
    node.put('Secret', 'web', { key: '1' })
    let agent = node.agentProcess([], prefix)
    await agent.logged('Published')
    const hold = await holder(t, 'hold', [], node.path('disk/old'))
    node.configure([{ ...moved, onDrop }])
    agent.signal('SIGHUP')
    await agent.logged('Relocating')
    await until('the new path is there', () => node.read('disk/sub/new/key') === '1')
    node.configure([{ path: 'disk/other', contents }])
    agent.signal('SIGHUP')
    const paths = ['disk/old', 'disk/sub/new'].map((name) => node.path(name))
    const pending = () => agent.log().filter(({ reason }) => reason === 'DropPending')
    await until('each waits', () => new Set(pending().map(({ directory }) => directory)).size === 2)
    await until('status tells', async () =>
      /old +Unknown +Unknown +DropPending/.test((await node.run('status')).stdout),
    )
    t.equal(await agent.end('SIGTERM'), 0)
    process.kill(hold, 'SIGKILL')
    agent = node.agentProcess([], prefix, node.configuration, hurried)
    await agent.logged('DropPending', 2)
    tenMinutesPass(agent)
    await agent.logged('Dropped', 2)
    for (const path of paths) t.notOk(existsSync(path), path)
    t.equal(node.read('disk/other/key'), '1')
    // The agent logs a removal before it saves which directories are left.
    await until('both entries go', () => Object.keys(namedIn(node.path('state'))).join() === node.path('disk/other'))
  },
)

await t.test(
  'an old path that has moved is waited for no more',
  { skip: prefix === undefined && 'needs root to see all processes' },
  async (t) => {
    const onDrop = 'remove'
    const node = new Node(t, [{ ...old, onDrop }], { driftInterval: '1s' })
    node.put('Secret', 'web', { key: '1' })
    const agent = node.agentProcess([], prefix)
    await agent.logged('Published')
    node.configure([{ ...moved, movedFromKeep: '1s', onDrop }], { driftInterval: '1s' })
    agent.signal('SIGHUP')
    await agent.logged('Relocated')
    t.notOk(existsSync(node.path('disk/old')))
    await until('its entry goes', () => namedIn(node.path('state'))[node.path('disk/old')]?.onDrop === undefined)
    node.configure([{ path: 'disk/other', contents }])
    agent.signal('SIGHUP')
    t.match(await agent.logged('DropPending'), { directory: node.path('disk/sub/new') })
    await until('the other is there', () => node.read('disk/other/key') === '1')
    t.equal(agent.log().filter(({ reason }) => reason === 'DropPending').length, 1)
  },
)
