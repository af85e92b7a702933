/** The agent's answers to SIGHUP, SIGTERM and SIGINT, in each of its states. */
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { until } from '../until.js'
import { begin, ended } from './holdfast.js'
import { web, webNode } from './web-node.js'

await t.test('SIGHUP makes the agent repair drift, and count it', async (t) => {
  const node = webNode(t)
  const agent = node.agent()
  await agent.logged('Published')
  rmSync(node.path('disk/web/app.conf'))
  chmodSync(node.path('disk/web/secret/user'), 0o644)
  writeFileSync(node.path('disk/web/foreign'), '')
  t.match(await node.run('verify'), { code: 4, stdout: /differs/ })
  agent.signal('SIGHUP')
  const line = await agent.logged('DriftRepaired')
  t.match(line, {
    outcome: 'replaced',
    causes: ['drift check'],
    msg: /app\.conf is missing.*foreign was not published.*secret\/user has another mode/,
  })
  t.equal(node.read('disk/web/app.conf'), 'port=80\n')
  t.notOk(existsSync(node.path('disk/web/foreign')))
  const { text } = await agent.get('/metrics')
  for (const name of ['holdfast_drift_total', 'holdfast_directory_recent_drifts'])
    t.match(text, `${name}{directory="${node.path('disk/web')}"} 1`)
  t.equal((await node.run('verify')).code, 0)
})

await t.test('SIGHUP adds a new directory, drops a missing one, and refuses an invalid configuration', async (t) => {
  const node = webNode(t)
  const agent = node.agent()
  await agent.logged('Published')
  const second = { path: 'disk/second', contents: [{ configMap: 'conf' }] }
  node.configure([second])
  agent.signal('SIGHUP')
  await agent.logged('Published', 2)
  t.equal(node.read('disk/second/app.conf'), 'port=80\n')
  t.equal(node.read('disk/web/secret/user'), 'alice', 'a dropped directory stays')
  t.notMatch((await agent.get('/metrics')).text, 'disk/web')

  const metric = async (name: string): Promise<number> =>
    Number(new RegExp(`^holdfast_${name} (.*)$`, 'm').exec((await agent.get('/metrics')).text)?.[1])
  const isValid = () => metric('configuration_valid')
  const succeeded = () => metric('last_reload_successful_timestamp_seconds')
  t.equal(await isValid(), 1)
  const before = await succeeded()
  t.ok(before > 1_600_000_000)
  node.configure([{ ...second, contnets: [] }])
  agent.signal('SIGHUP')
  const invalid = await agent.logged('ConfigurationInvalid')
  t.match(invalid, {
    level: 'error',
    line: Number,
    place: 'directories[0].contnets',
    msg: /contnets: unknown field: did you mean "contents"\?$/,
  })
  t.match(await agent.logged('ConfigurationInvalid', 2), { msg: /is invalid; .*stays in force$/ })
  await until('the status says so', () => node.read('state/status.json')?.includes('configurationInvalid'))
  t.equal(await isValid(), 0)
  t.equal(await succeeded(), before)
  node.put('ConfigMap', 'conf', { 'app.conf': 'port=81\n' })
  await agent.logged('Published', 3)
  t.equal(node.read('disk/second/app.conf'), 'port=81\n', 'the old one stays in force')

  node.configure([{ ...second, fileMode: '0640' }])
  agent.signal('SIGHUP')
  await agent.logged('Published', 4)
  t.equal(statSync(node.path('disk/second/app.conf')).mode & 0o7777, 0o640)
  await until('it is valid again', async () => (await isValid()) === 1)
  t.ok((await succeeded()) > before)
  t.equal(await agent.end('SIGTERM'), 0)
})

await t.test(
  'SIGTERM in the middle of a stream of updates ends the agent with 0, and leaves the target intact',
  async (t) => {
    const node = webNode(t)
    for (let round = 0; round < 3; round++) {
      const agent = node.agent()
      const write = () => {
        const text = `${Math.random()}`
        node.put('Secret', 'web', { password: text, user: text })
      }
      write()
      await agent.logged('Published')
      const over = new AbortController()
      const published = () => agent.log().filter(({ reason }) => reason === 'Published').length
      const writer = (async () => {
        while (!over.signal.aborted) {
          const before = published()
          write()
          // A file that never comes to rest is never read: the next version follows the publication of this one.
          await until('it is published', () => over.signal.aborted || published() > before)
        }
      })()
      await agent.logged('Published', 3)
      await new Promise((resolve) => setTimeout(resolve, 37 * round))
      t.equal(await agent.end('SIGTERM'), 0)
      over.abort()
      await writer
      t.equal(node.read('disk/web/secret/password'), node.read('disk/web/secret/user'))
      t.equal((await node.run('verify')).code, 0)
      t.strictSame(
        readdirSync(node.path('disk')).filter((name) => /-[0-9a-f]{16}$/.test(name)),
        [],
        'no staging is left',
      )
    }
  },
)

/** Sends SIGHUP to its own process whenever the program, of which the first module is loaded, asks for another one. */
const hangingUp = `
const Module = require('node:module')
const load = Module._load
let begun = false
Module._load = function (request, ...rest) {
  if (begun) process.kill(process.pid, 'SIGHUP')
  begun ||= request === './prepare.js'
  return load.call(this, request, ...rest)
}
`

await t.test('no SIGHUP ends the agent from the first module of the program on', async (t) => {
  const node = webNode(t)
  const preload = node.path('hanging-up.cjs')
  writeFileSync(preload, hangingUp)
  const args = ['agent', '--config', node.configuration]
  const child = begin(args, { env: { NODE_OPTIONS: `--require=${preload}` } })
  const ending = ended(child)
  const published = () => node.read('disk/web/app.conf') !== undefined
  await until('it publishes, or ends', () => published() || child.exitCode !== null || child.signalCode !== null)
  child.kill('SIGTERM')
  t.match(await ending, { code: 0, signal: null, stderr: /ended in order/ })
})

await t.test('a SIGHUP still ends another command while it starts', async (t) => {
  const node = webNode(t)
  const preload = node.path('hanging-up.cjs')
  writeFileSync(preload, hangingUp)
  const child = begin(['status', '--config', node.configuration], { env: { NODE_OPTIONS: `--require=${preload}` } })
  t.match(await ended(child), { signal: 'SIGHUP' })
})

await t.test('the agent hears a SIGHUP while it starts, and ignores one while it ends', async (t) => {
  const node = webNode(t)
  for (let round = 0; round < 3; round++) {
    // The start takes the lock before it publishes.
    rmSync(node.path('state/agent.lock'), { force: true })
    const agent = node.agentProcess()
    await until('it has its lock', () => existsSync(node.path('state/agent.lock')), { every: 1 })
    agent.signal('SIGHUP')
    await until('the configuration was read again', () => agent.log().some(({ msg }) => msg.includes('is in force')))
    agent.signal('SIGTERM')
    const ends = () => agent.log().some(({ msg }) => msg.startsWith('SIGTERM'))
    // Soon: what comes when Node has taken its handlers down, in the last moment of a process, is the system's matter.
    await until('it ends', ends, { every: 1 })
    agent.signal('SIGHUP')
    t.equal(await agent.end(), 0)
  }
})

const mayMount = spawnSync('unshare', ['--mount', 'true']).status === 0

await t.test(
  'SIGHUP puts a changed requireProven into effect',
  { skip: !mayMount && 'needs root to mount' },
  async (t) => {
    const node = webNode(t)
    mkdirSync(node.path('memory'))
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', node.path('memory')])
    t.teardown(() => spawnSync('umount', ['--lazy', node.path('memory')]))
    const directory = { ...web, path: 'memory/web' }
    node.configure([directory])
    const agent = node.agent()
    t.match(await agent.logged('Published'), { outcome: 'created' })
    node.configure([directory], { requireProven: true })
    agent.signal('SIGHUP')
    t.match(await agent.logged('TargetUnfit'), { published: false, msg: /proven/ })
    t.equal((await agent.get('/readyz')).status, 200, 'what is there is whole')
    node.configure([directory])
    agent.signal('SIGHUP')
    await agent.logged('Unchanged')
    t.equal(await agent.end('SIGTERM'), 0)
  },
)

await t.test('SIGINT ends the agent in order, too, with its number as exit code', async (t) => {
  const agent = webNode(t).agent()
  await agent.logged('Published')
  t.equal(await agent.end('SIGINT'), 130)
  t.match(agent.text, /ended in order/)
})
