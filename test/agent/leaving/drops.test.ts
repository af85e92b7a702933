/** `onDrop: remove`: only an absence of ten minutes is a wish, and only for what this state directory had configured so. */
import { mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Departures } from '../../../src/agent/leaving/departures.js'
import { Drops } from '../../../src/agent/leaving/drops.js'
import { NamedDirectories } from '../../../src/agent/leaving/named-directories.js'
import type { AgentConfiguration, DirectoryConfiguration } from '../../../src/config/types.js'
import { readPublication, replaceDirectory } from '../../../src/durable/index.js'
import { DurableWriteError } from '../../../src/durable/errors.js'
import type { PublicationOptions } from '../../../src/durable/types.js'
import { scratchWith } from '../../durable/scratch.js'
import { SimulatedTime } from '../../simulated-time.js'
import { until } from '../../until.js'

const minute = 60_000

function scene(t: Test) {
  const [root, state] = scratchWith(t, 'state')
  mkdirSync(state)
  const told: string[] = []
  const clock = { milliseconds: 5 * minute }
  const removed: string[] = []
  const refusals: Error[] = []
  const add = (level: string) => (_: object, message: string) => void told.push(`${level} ${message}`)
  const log = { debug: add('debug'), info: add('info'), warn: add('warn'), error: add('error') }
  const remove = (path: string): Promise<void> => {
    const [refusal] = refusals.splice(0, 1)
    if (refusal) return Promise.reject(refusal)
    removed.push(path)
    return Promise.resolve()
  }
  const started: { readonly close: () => unknown }[] = []
  const start = (options: Partial<Omit<ConstructorParameters<typeof Drops>[0], 'signal'>> = {}, real = false) => {
    const ending = new AbortController()
    const { signal } = ending
    const named = new NamedDirectories(true)
    const departures = new Departures({ log, named, signal, identity: options.identity ?? (() => undefined) })
    const drops = new Drops({
      log,
      named,
      signal,
      inForce: {
        events: { pass: ({ events }) => void told.push(...events.map(({ reason }) => `event ${reason}`)) },
      },
      changed: () => {},
      now: () => clock.milliseconds,
      ...(real ? {} : { remove }),
      ...options,
    })
    const close = async (): Promise<void> => {
      ending.abort()
      await Promise.all([drops.ended(), departures.ended()])
    }
    started.push({ close })
    return {
      status: () => drops.status(),
      pending: () => drops.status().map(({ path }) => path),
      close,
      /** As the agent does when it reads its file. */
      async configure(directories: readonly DirectoryConfiguration[]): Promise<void> {
        const configuration = { file: '/etc/holdfast.yaml', stateDirectory: state, directories } as AgentConfiguration
        await Promise.all([departures.configure(configuration), drops.configure(configuration)])
      },
    }
  }
  const named = () => JSON.parse(readFileSync(join(state, 'directories.json'), 'utf8')) as Record<string, object>
  t.teardown(() => Promise.all(started.map((each) => each.close())))
  const configured = (path: string, onDrop: DirectoryConfiguration['onDrop'] = 'remove') =>
    ({ path, onDrop }) as DirectoryConfiguration
  return { root, state, told, clock, removed, refusals, start, configured, named }
}

await t.test(
  'a directory goes after ten minutes of absence, which a restart begins anew; its return within them cancels',
  async (t) => {
    const { named, told, clock, removed, start, configured } = scene(t)
    const first = start()
    await first.configure([configured('/a'), configured('/b'), configured('/kept', 'keep')])
    await first.configure([])
    t.match(first.status(), [
      { path: '/a' },
      { path: '/b', conditions: [{ reason: 'DropPending', status: 'Unknown' }] },
    ])
    t.same(first.pending(), ['/a', '/b'])
    t.equal(told.filter((line) => line === 'event DropPending').length, 2)
    await first.close()
    clock.milliseconds += 9 * minute
    const second = start()
    await second.configure([])
    clock.milliseconds += 9 * minute
    await second.configure([configured('/b')])
    t.same(second.pending(), ['/a'])
    t.same(removed, [], 'nine minutes of each process')
    t.match(told.join('\n'), /\/b is configured again: holdfast does not remove it/)
    clock.milliseconds += 1 * minute
    await second.configure([])
    t.same(removed, ['/a'], 'of /b, the time began again')
    t.ok(told.includes('event Dropped'))
    clock.milliseconds += 10 * minute - 1
    await second.configure([])
    t.same(removed, ['/a'])
    clock.milliseconds += 1
    await second.configure([])
    t.same(removed, ['/a', '/b'])
    t.same(second.status(), [])
    t.same(named(), {})
  },
)

await t.test('a removal comes again until it succeeds', async (t) => {
  const { told, clock, removed, refusals, start, configured } = scene(t)
  const drops = start()
  await drops.configure([configured('/a')])
  await drops.configure([])
  clock.milliseconds += 10 * minute
  const details = { code: 'EBUSY', syscall: 'none', path: '/a', reason: 'InUse' as const }
  refusals.push(new DurableWriteError('/a is in use: process 7', details))
  await drops.configure([])
  t.match(drops.status(), [{ conditions: [{ message: /cannot be removed yet: \/a is in use: process 7/ }] }])
  t.same(removed, [])
  await drops.configure([])
  t.same(removed, ['/a'])
  t.equal(told.filter((line) => line === 'event Dropped').length, 1)
})

await t.test('a directories.json that cannot be read removes nothing', async (t) => {
  const { state, told, clock, removed, start, configured } = scene(t)
  const drops = start()
  await drops.configure([configured('/a', 'keep')])
  await drops.configure([])
  t.same(readdirSync(state), ['directories.json'])
  const wrong = ['{"onDrop":"keep"}', '{"left":false}', 'null']
  const entries = wrong.map((one) => `{"/a":${one.replace('{', '{"file":"/etc/holdfast.yaml",')}}`)
  for (const text of ['not JSON', '[]', '{"/a":{"onDrop":"remove"}}', ...entries]) {
    writeFileSync(join(state, 'directories.json'), text)
    clock.milliseconds += 60 * minute
    await start().configure([])
    t.match(told.at(-1), /directories\.json is not a file of the agent: remove it/, text)
  }
  t.same(removed, [])
})

await t.test('the agent removes only what it has published and let go, and nobody has published since', async (t) => {
  const { root, told, clock, start, configured } = scene(t)
  const target = join(root, 'certs')
  await replaceDirectory(target, { files: { a: '' } })
  const drops = start({ identity: () => 'this one' }, true)
  const gone = join(root, 'gone')
  const [others, unnamed] = [join(root, 'others'), join(root, 'unnamed')]
  const remove: PublicationOptions = { publisher: 'agent' }
  await replaceDirectory(unnamed, { files: { a: '' }, ...remove })
  await drops.configure([target, gone, others, unnamed].map((path) => configured(path)))
  await drops.configure([])
  await replaceDirectory(others, { files: { a: '' }, ...remove, agent: 'another' })
  await drops.configure([])
  t.match(told.at(-1), /others is not configured any more, and stays: another agent publishes it now/, 'at once')
  t.equal(
    drops.status().some(({ path }) => path === others),
    false,
  )
  clock.milliseconds += 10 * minute
  await drops.configure([])
  t.match(told.join('\n'), /certs is not configured any more, and stays: no agent has published what it holds/)
  t.match(told.join('\n'), /unnamed is not .* stays: its record does not say which agent .*; run "holdfast remove /)
  for (const path of [target, others, unnamed]) t.ok(await readPublication(path))
  t.same(drops.status(), [], 'where nothing is left, nothing is pending')
})

await t.test('a directory that is configured by another name stays, and so does its record', async (t) => {
  const { root, named, told, clock, start, configured } = scene(t)
  mkdirSync(join(root, 'run'))
  symlinkSync('run', join(root, 'var'))
  const [dropped, other] = [join(root, 'var/certs'), join(root, 'run/certs')]
  await replaceDirectory(dropped, { files: { a: '' }, publisher: 'agent' })
  const drops = start({}, true)
  await drops.configure([configured(dropped)])
  await drops.configure([configured(other)])
  clock.milliseconds += 10 * minute
  await drops.configure([configured(other)])
  t.match(
    told.at(-1),
    `info ${dropped} is not configured any more, and stays: it is the same directory as ${other}, which is configured`,
  )
  t.equal((await readPublication(other))?.path, other)
  t.same(drops.status(), [])
  t.same(named(), { [other]: { file: '/etc/holdfast.yaml', onDrop: 'remove' } })
})

await t.test('what comes back by another name while it is removed aborts that', async (t) => {
  const { told, clock, start, configured } = scene(t)
  const signals: AbortSignal[] = []
  const drops = start({
    remove: (_, signal) => {
      signals.push(signal)
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))
    },
  })
  await drops.configure([configured('/var/run/a')])
  await drops.configure([])
  clock.milliseconds += 10 * minute
  const removing = drops.configure([])
  await until('it is under way', () => signals.length === 1)
  void drops.configure([configured('/run/b')])
  t.equal(signals[0]?.aborted, false)
  void drops.configure([configured('/run/a')])
  t.equal(signals[0]?.aborted, true)
  await removing
  t.notMatch(told.join('\n'), /cannot be removed yet/)
})

await t.test('the agent does not report the removal of a missing directory', async (t) => {
  const { root, told, clock, start, configured } = scene(t)
  const disk = join(root, 'disk')
  const target = join(disk, 'certs')
  await replaceDirectory(target, { files: { a: '' }, publisher: 'agent' })
  const drops = start({}, true)
  await drops.configure([configured(target)])
  // As without its disk: no mount point, then a bare one.
  renameSync(disk, join(root, 'away'))
  await drops.configure([])
  clock.milliseconds += 10 * minute
  await drops.configure([])
  const message = /cannot be removed yet: .*disk is not there, or is empty: its disk may not be mounted/
  t.match(drops.status(), [{ conditions: [{ reason: 'DropPending', message }] }])
  mkdirSync(disk)
  await drops.configure([])
  t.match(drops.status(), [{ conditions: [{ message }] }])
  t.same(drops.pending(), [target])
  t.notOk(told.includes('event Dropped'))
  // A directory with an unreadable record stays.
  writeFileSync(join(disk, 'other'), '')
  await drops.configure([])
  t.match(told.at(-1), /certs is not configured any more, and stays: no record beside it can be read/)
  t.same(drops.status(), [])
  t.notOk(told.includes('event Dropped'))
})

await t.test('of two configurations that come together, the older one does not come back with a retry', async (t) => {
  const time = new SimulatedTime(t)
  const { root, start, configured, named, told } = scene(t)
  const [one, two] = ['one', 'two'].map((name) => configured(join(root, name), 'keep'))
  if (one === undefined || two === undefined) throw new Error('there are two')
  // Its record can never say that it has left.
  writeFileSync(join(root, 'file'), '')
  const agent = start()
  await agent.configure([configured(join(root, 'file', 'gone'), 'keep'), one])
  const older = agent.configure([one])
  await Promise.resolve()
  await Promise.all([older, agent.configure([one, two])])
  const tries = () => told.filter((line) => line.endsWith('the agent tries again')).length
  const before = tries()
  await time.advance(1.5 * minute)
  await until('a retry has failed', () => tries() > before)
  await agent.close()
  t.match(named()[two.path], { file: '/etc/holdfast.yaml', left: undefined })
})
