/** Hooks that ask systemd over the bus: a real dbus-daemon, and a manager that answers in each way that systemd may. */
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Hook } from '../../src/config/hooks.js'
import { until } from '../until.js'
import { messageOf, outcome, policy } from './hook-outcome.js'
import { Bus, managerName, Peer, type Call } from './systemd-manager.js'

const job = '/org/freedesktop/systemd1/job/7'
const unit = 'nginx.service'

const hook = (socket: string, more: Partial<Hook<'systemd'>> = {}): Hook<'systemd'> => ({
  type: 'systemd',
  name: 'systemd x',
  unit,
  action: 'reload-or-restart',
  socket,
  ...policy,
  ...more,
})

/** A manager whose answer to the call that starts a job is the case's. */
async function site(t: Test, started: (manager: Peer, call: Call) => void) {
  const bus = await Bus.start(t)
  const manager = await Peer.connect(t, bus, managerName)
  manager.answer = (call) => {
    if (call.member === 'Subscribe') manager.reply(call)
    else started(manager, call)
  }
  return { bus, manager }
}

await t.test(
  'a systemd hook calls a method of the manager for each action, awaits the job, and judges its result',
  async (t) => {
    const results = ['done', 'skipped', 'failed', 'canceled', 'timeout', 'dependency']
    let turn = 0
    const { bus, manager } = await site(t, (manager, call) => {
      manager.reply(call, [['o', job]])
      // Another job's end is none of its business.
      manager.jobRemoved(`${job}1`, unit, 'failed')
      manager.jobRemoved(job, unit, results[turn++] ?? 'done')
    })
    for (const result of results) {
      const expected = ['done', 'skipped'].includes(result)
        ? undefined
        : `systemd x: the job of ${unit} ended with "${result}"`
      t.equal(await messageOf(hook(bus.socket)), expected, result)
    }
    const actions = {
      'reload-or-restart': 'ReloadOrRestartUnit',
      'try-reload-or-restart': 'ReloadOrTryRestartUnit',
      reload: 'ReloadUnit',
      restart: 'RestartUnit',
      'try-restart': 'TryRestartUnit',
      start: 'StartUnit',
    } as const
    for (const action of Object.keys(actions) as (keyof typeof actions)[]) {
      t.equal(await messageOf(hook(bus.socket, { action })), undefined)
      t.match(manager.calls.at(-1), { member: actions[action], body: [unit, 'replace'] })
    }
  },
)

await t.test('a systemd hook accepts the end of a job before the answer that names it', async (t) => {
  const { bus } = await site(t, (manager, call) => {
    manager.jobRemoved(job, unit, 'done')
    manager.reply(call, [['o', job]])
  })
  t.equal(await messageOf(hook(bus.socket)), undefined)
})

await t.test('a systemd hook ignores another client’s announcement', async (t) => {
  const { bus } = await site(t, (manager, call) => {
    manager.reply(call, [['o', job]])
    // The liar's comes first: through the same bus, whose order is that of arrival.
    liar.jobRemoved(job, unit, 'done', call.sender)
    liar.answered = () => manager.jobRemoved(job, unit, 'failed')
    liar.ping()
  })
  const peer = await Peer.connect(t, bus, 'org.example.Liar')
  const liar = Object.assign(peer, {
    answered: () => {},
    ping: () => {
      peer.answer = () => liar.answered()
      peer.callItself('org.example.Liar')
    },
  })
  t.equal(await messageOf(hook(bus.socket)), `systemd x: the job of ${unit} ended with "failed"`)
})

await t.test('a systemd hook reports refusals of the bus and the manager, without their texts', async (t) => {
  let error = ''
  const { bus, manager } = await site(t, (manager, call) => manager.refuse(call, error))
  const cases: [string, string][] = [
    [`${managerName}.NoSuchUnit`, 'no such unit'],
    [`${managerName}.JobTypeNotApplicable`, 'the unit cannot do this'],
    ['org.freedesktop.DBus.Error.AccessDenied', 'denied: run as root'],
    ['org.example.Strange', 'org.example.Strange'],
  ]
  for (const [name, said] of cases) {
    error = name
    t.equal(await messageOf(hook(bus.socket)), `systemd x: ${unit}: ${said}`)
  }
  manager.socket.destroy()
  await until('the manager has gone', async () =>
    (await messageOf(hook(bus.socket)))?.endsWith("systemd is not on this bus: mount the host's socket"),
  )
  const nowhere = join(bus.directory, 'nowhere')
  t.equal(
    await messageOf(hook(nowhere)),
    `systemd x: ${nowhere}: ENOENT: in a pod, mount the directory of the socket from the host`,
  )
  writeFileSync(nowhere, '')
  t.equal(await messageOf(hook(nowhere)), `systemd x: ${nowhere}: ECONNREFUSED`)
})

await t.test(
  'a systemd hook fails at a bus that refuses every user, that is none, or that ends in the middle',
  async (t) => {
    const closed = await Bus.start(t, '<deny user="*"/>')
    t.equal(await messageOf(hook(closed.socket)), `systemd x: ${closed.socket}: the bus ended the connection`)
    for (const [said, message] of [
      ['REJECTED EXTERNAL\r\n', /the bus does not take this user/],
      ['HTTP/1.1 400 Bad Request\r\n', /the bus does not take this user/],
      ['x'.repeat(20_000), /the bus ended the connection/],
      [`OK 0\r\nl\x02\x01\x01${'\xff'.repeat(12)}`, /the bus sent what is no message of D-Bus/],
    ] as const) {
      const socket = join(closed.directory, `s${said.length}`)
      const server = createServer((peer) => void peer.on('error', () => {}).end(said, 'latin1'))
      t.teardown(() => server.close())
      await new Promise<void>((resolve) => server.listen(socket, resolve))
      t.match(await messageOf(hook(socket)), message)
    }
    const silent = join(closed.directory, 'silent')
    const server = createServer((peer) => void peer.on('error', () => {}).resume())
    t.teardown(() => server.close())
    await new Promise<void>((resolve) => server.listen(silent, resolve))
    t.equal(
      await messageOf(hook(silent, { timeout: 200 })),
      `systemd x: ${silent}: the bus, or systemd on it, has not answered within 200 ms`,
    )
    const { bus } = await site(t, (_, call) => void (call.serial > 0 && bus.stop()))
    t.match(await messageOf(hook(bus.socket)), /the bus ended the connection$/)
  },
)

await t.test('a systemd hook leaves a slow job to systemd; an ending agent waits for none', async (t) => {
  const { bus, manager } = await site(t, (manager, call) => manager.reply(call, [['o', job]]))
  t.equal(
    await messageOf(hook(bus.socket, { timeout: 300 })),
    'systemd x: the job has not ended after 300 ms; it goes on without holdfast',
  )
  const abort = new AbortController()
  const ended = outcome(hook(bus.socket), { signal: abort.signal })
  await until('it has asked', () => manager.calls.filter(({ member }) => member === 'ReloadOrRestartUnit').length === 2)
  abort.abort(new Error('the end'))
  t.match(await ended, { message: 'the end' })
})
