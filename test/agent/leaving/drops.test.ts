/** `onDrop: remove`: only an absence of ten minutes is a wish, and only for what this state directory had configured so. */
import { mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Drops } from '../../../src/agent/leaving/drops.js'
import type { DirectoryConfiguration } from '../../../src/config/types.js'
import { readPublication, replaceDirectory } from '../../../src/durable/index.js'
import { DurableWriteError } from '../../../src/durable/errors.js'
import type { PublicationOptions } from '../../../src/durable/types.js'
import { scratch } from '../../durable/scratch.js'
import { until } from '../../until.js'

const minute = 60_000

function scene(t: Test) {
  const root = scratch(t)
  const state = join(root, 'state')
  mkdirSync(state)
  const told: string[] = []
  const clock = { boot: 'first', milliseconds: 5 * minute }
  const removed: string[] = []
  const refusals: Error[] = []
  const pending = new Set<string>()
  const add = (level: string) => (_: object, message: string) => void told.push(`${level} ${message}`)
  const log = { debug: add('debug'), info: add('info'), warn: add('warn'), error: add('error') }
  const remove = (path: string): Promise<void> => {
    const [refusal] = refusals.splice(0, 1)
    if (refusal) return Promise.reject(refusal)
    removed.push(path)
    return Promise.resolve()
  }
  const started: Drops[] = []
  const start = (options: Partial<ConstructorParameters<typeof Drops>[0]> = {}, real = false): Drops => {
    const drops = new Drops({
      log,
      stateDirectory: () => state,
      metrics: {
        dropPending(path, is) {
          if (is) pending.add(path)
          else pending.delete(path)
        },
      },
      events: () => ({ pass: ({ events }) => void told.push(...events.map(({ reason }) => `event ${reason}`)) }),
      changed: () => {},
      uptime: () => Promise.resolve({ ...clock }),
      ...(real ? {} : { remove }),
      ...options,
    })
    started.push(drops)
    return drops
  }
  t.teardown(() => Promise.all(started.map((drops) => drops.close())))
  const configured = (path: string, onDrop: DirectoryConfiguration['onDrop'] = 'remove') =>
    ({ path, onDrop }) as DirectoryConfiguration
  return { root, state, told, clock, removed, refusals, pending, start, configured }
}

await t.test(
  'a directory goes after ten minutes of absence, over restarts, with any clock; its return within them cancels',
  async (t) => {
    const { state, told, clock, removed, pending, start, configured } = scene(t)
    const first = start()
    await first.configure([configured('/a'), configured('/b'), configured('/kept', 'keep')])
    await first.configure([])
    t.match(first.status(), [
      { path: '/a' },
      { path: '/b', conditions: [{ reason: 'DropPending', status: 'Unknown' }] },
    ])
    t.same([...pending], ['/a', '/b'])
    t.equal(told.filter((line) => line === 'event DropPending').length, 2)
    await first.close()
    clock.milliseconds += 9 * minute
    const second = start()
    await second.configure([configured('/b')])
    t.same([...pending], ['/a'])
    clock.milliseconds += 2 * minute - 1
    await second.configure([])
    t.same(removed, ['/a'], 'of /b, the time began again')
    t.match(told.join('\n'), /\/b is configured again: holdfast does not remove it/)
    t.ok(told.includes('event Dropped'))
    clock.milliseconds += 10 * minute - 1
    await second.configure([])
    t.same(removed, ['/a'])
    clock.milliseconds += 1
    await second.configure([])
    t.same(removed, ['/a', '/b'])
    t.same(second.status(), [])
    t.equal(readFileSync(join(state, 'drops.json'), 'utf8'), '{}')
  },
)

await t.test(
  'after a reboot the ten minutes begin again; a due removal stays due, and comes again until it succeeds',
  async (t) => {
    const { told, clock, removed, refusals, start, configured } = scene(t)
    const first = start()
    await first.configure([configured('/a')])
    await first.configure([])
    Object.assign(clock, { boot: 'second', milliseconds: 60 * minute })
    const second = start()
    await second.configure([])
    t.same(removed, [])
    clock.milliseconds += 10 * minute
    const details = { code: 'EBUSY', syscall: 'none', path: '/a', reason: 'InUse' as const }
    refusals.push(new DurableWriteError('/a is in use: process 7', details))
    await second.configure([])
    t.match(second.status(), [{ conditions: [{ message: /cannot be removed yet: \/a is in use: process 7/ }] }])
    t.same(removed, [])
    Object.assign(clock, { boot: 'third', milliseconds: 0 })
    const third = start()
    await third.configure([])
    t.same(removed, ['/a'])
    t.equal(told.filter((line) => line === 'event Dropped').length, 1)
  },
)

await t.test('without such a directory nothing is written; what cannot be read removes nothing', async (t) => {
  const { state, told, clock, removed, start, configured } = scene(t)
  const drops = start()
  await drops.configure([configured('/a', 'keep')])
  await drops.configure([])
  t.same(readdirSync(state), [])
  for (const text of ['not JSON', '[]', '{"/a":{"since":1}}']) {
    writeFileSync(join(state, 'drops.json'), text)
    clock.milliseconds += 60 * minute
    await start().configure([])
    t.match(told.at(-1), /drops\.json is not a file of the agent: remove it/)
  }
  t.same(removed, [])
})

await t.test('coming back while the removal is under way aborts it', async (t) => {
  const { clock, start, configured } = scene(t)
  let signal: AbortSignal | undefined
  const drops = start({
    remove: (_, given) => {
      signal = given
      return new Promise((_, reject) => given.addEventListener('abort', () => reject(new Error('aborted'))))
    },
  })
  await drops.configure([configured('/a')])
  await drops.configure([])
  clock.milliseconds += 10 * minute
  const removing = drops.configure([])
  await until('it is under way', () => signal !== undefined)
  const back = drops.configure([configured('/a')])
  await Promise.all([removing, back])
  t.same(drops.status(), [])
})

await t.test('only what the agent has published with onDrop: remove goes', async (t) => {
  const { root, told, clock, start, configured } = scene(t)
  const target = join(root, 'certs')
  const options: PublicationOptions = { publisher: 'agent', onDrop: 'keep' }
  await replaceDirectory(target, { files: { a: '' }, ...options })
  const drops = start({ identity: () => 'this one' }, true)
  const gone = join(root, 'gone')
  const [others, unnamed] = [join(root, 'others'), join(root, 'unnamed')]
  const remove: PublicationOptions = { publisher: 'agent', onDrop: 'remove' }
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
  t.match(told.join('\n'), /certs is not configured any more, and stays: its record does not say onDrop: remove/)
  t.match(told.join('\n'), /unnamed is not .* stays: its record does not say which agent .*; run "holdfast remove /)
  for (const path of [target, others, unnamed]) t.ok(await readPublication(path))
  t.same(drops.status(), [], 'where nothing is left, nothing is pending')
})

await t.test('a directory that is configured by another name stays, and so does its record', async (t) => {
  const { root, state, told, clock, start, configured } = scene(t)
  mkdirSync(join(root, 'run'))
  symlinkSync('run', join(root, 'var'))
  const [dropped, other] = [join(root, 'var/certs'), join(root, 'run/certs')]
  await replaceDirectory(dropped, { files: { a: '' }, publisher: 'agent', onDrop: 'remove' })
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
  t.same(JSON.parse(readFileSync(join(state, 'drops.json'), 'utf8')), { [other]: null })
})

await t.test('what comes back by another name while it is removed aborts that', async (t) => {
  const { clock, start, configured } = scene(t)
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
})

await t.test('the agent does not report the removal of a missing directory', async (t) => {
  const { root, told, clock, pending, start, configured } = scene(t)
  const disk = join(root, 'disk')
  const target = join(disk, 'certs')
  await replaceDirectory(target, { files: { a: '' }, publisher: 'agent', onDrop: 'remove' })
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
  t.same([...pending], [target])
  t.notOk(told.includes('event Dropped'))
  // A directory with an unreadable record stays.
  writeFileSync(join(disk, 'other'), '')
  await drops.configure([])
  t.match(told.at(-1), /certs is not configured any more, and stays: no record beside it can be read/)
  t.same(drops.status(), [])
  t.notOk(told.includes('event Dropped'))
})
