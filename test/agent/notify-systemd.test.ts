/** What the agent tells systemd, by a socket as systemd gives it to a service. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { notifyTarget, SystemdNotifier } from '../../src/agent/notify-systemd.js'
import { silent } from '../../src/log.js'
import { sendDatagram } from '../../native/index.js'
import { type Agent, Node, scratch } from '../cli/holdfast.js'
import { FrozenDisks, frozenThreads, missingForFreezing } from '../disk/frozen-disks.js'
import { NotifySocket } from '../notify-socket.js'
import { until } from '../until.js'

const web = { path: 'disk/web', contents: [{ secret: 'web' }] }

let count = 0
function abstractSocket(t: Test): NotifySocket {
  return new NotifySocket(t, `@holdfast-test-${process.pid}-${(count += 1)}`)
}

function started(node: Node, socket: NotifySocket, env: Readonly<Record<string, string>> = {}): Agent {
  return node.agentProcess([], [], node.configuration, { NOTIFY_SOCKET: socket.address, ...env })
}

await t.test('READY=1 is sent once every required directory is whole; STATUS= names what is missing', async (t) => {
  const node = new Node(t, [web, { path: 'disk/other', contents: [{ secret: 'other' }] }])
  const socket = new NotifySocket(t, node.path('notify'))
  node.put('Secret', 'web', { key: '1' })
  const agent = started(node, socket)
  await agent.logged('Published')
  await until('the status names it', () => socket.last('STATUS')?.startsWith('1 of 2 directories are whole; missing: '))
  t.match(socket.last('STATUS'), /disk\/other ObjectMissing: Secret demo\/other /)
  t.equal(socket.last('READY'), undefined)
  node.put('Secret', 'other', { key: '1' })
  await until('it is ready', () => socket.last('READY'))
  t.equal(socket.last('STATUS'), '2 of 2 directories are whole')
  t.match(node.read('state/status.json'), new RegExp(`"pid": ${agent.pid}`), 'holdfast reload finds the agent')
  t.equal(await agent.end('SIGTERM'), 0)
  t.match(socket.messages.at(-1), /^STOPPING=1\n/)
  rmSync(node.path('objects'), { recursive: true })
  const again = new NotifySocket(t, node.path('again'))
  const next = started(node, again)
  await until('what is on the disk is enough, without a source', () => again.last('READY'))
  t.equal(await next.end('SIGTERM'), 0)
})

await t.test('a reload is told from its begin to its end, and after a refused one STATUS= says so', async (t) => {
  const node = new Node(t, [web])
  const socket = abstractSocket(t)
  node.put('Secret', 'web', { key: '1' })
  const agent = started(node, socket)
  await until('it is ready', () => socket.last('READY'))
  const before = process.hrtime.bigint() / 1000n
  t.equal((await node.run('reload')).code, 0)
  await until('it is ready again', () => socket.values('READY').length === 2)
  const at = BigInt(socket.last('MONOTONIC_USEC') ?? 0)
  t.ok(before <= at && at <= process.hrtime.bigint() / 1000n, 'the time is that of CLOCK_MONOTONIC, in microseconds')
  const told = socket.messages.findIndex((message) => message === `RELOADING=1\nMONOTONIC_USEC=${at}`)
  const end = socket.messages.findLastIndex((message) => message.startsWith('READY=1\n'))
  t.ok(told >= 0 && told < end, 'it begins before it ends')
  node.configure([{ ...web, fileMode: 'x' }])
  agent.signal('SIGHUP')
  await until('it is ready again', () => socket.values('READY').length === 3)
  t.match(socket.last('STATUS'), 'its configuration file is invalid, and the previous one is in force; 1 of 1 ')
  t.equal(await agent.end('SIGTERM'), 0)
})

await t.test('a reload before READY=1 is no end of the start', async (t) => {
  const node = new Node(t, [web])
  const socket = abstractSocket(t)
  const agent = started(node, socket)
  await until('the status names what is missing', () => socket.last('STATUS')?.includes('ObjectMissing'))
  agent.signal('SIGHUP')
  await until('the file was read again', () => agent.log().some(({ msg }) => msg.includes('is in force')))
  node.put('Secret', 'web', { key: '1' })
  await until('it is ready', () => socket.last('READY'))
  t.strictSame(socket.values('RELOADING'), [])
  t.strictSame(socket.values('READY'), ['1'])
  t.equal(await agent.end('SIGTERM'), 0)
})

await t.test('the agent gives a sign of life as often as systemd asks for one', async (t) => {
  const node = new Node(t, [web])
  const socket = abstractSocket(t)
  node.put('Secret', 'web', { key: '1' })
  const agent = started(node, socket, { WATCHDOG_USEC: '600000' })
  await until('signs of life', () => socket.values('WATCHDOG').length >= 3)
  t.notMatch(node.read('state/status.json'), '"turn"', 'people see none of it')
  t.equal(await agent.end('SIGTERM'), 0)
})

const missing = await missingForFreezing()

await t.test(
  'the signs of life go on beside a disk that hangs',
  { skip: missing.length > 0 && `needs ${missing.join(', ')}` },
  async (t) => {
    const node = new Node(t, [web])
    const disks = await FrozenDisks.create([node.path('disk')])
    t.teardown(() => disks.destroy())
    const socket = abstractSocket(t)
    node.put('Secret', 'web', { key: '1' })
    const env = { NOTIFY_SOCKET: socket.address, WATCHDOG_USEC: '600000' }
    const agent = node.agentProcess([], disks.entering, node.configuration, env)
    await until('it is ready', () => socket.last('READY'))
    await disks.freeze(node.path('disk'))
    node.put('Secret', 'web', { key: '2' })
    await until('the agent hangs', () => frozenThreads(agent.pid) > 0)
    const before = socket.values('WATCHDOG').length
    await until('it lives', () => socket.values('WATCHDOG').length >= before + 3)
    t.ok(frozenThreads(agent.pid) > 0)
    await disks.thaw(node.path('disk'))
    t.equal(await agent.end('SIGTERM'), 0)
  },
)

/** A notifier of its own, with readiness as the test says. */
function notifier(t: Test, socket: string, more: Partial<ConstructorParameters<typeof SystemdNotifier>[0]> = {}) {
  const warnings: string[] = []
  const made = new SystemdNotifier({
    to: { socket, watchdog: 60 },
    log: { ...silent, warn: (_, message) => void warnings.push(message) },
    readiness: () => ({ ready: false, lines: ['[+]/a ok', '[-]/b ObjectMissing: Secret demo/b\nis missing'] }),
    problem: () => undefined,
    isFound: () => true,
    turn: () => Promise.resolve(),
    ...more,
  })
  t.teardown(() => made.close())
  return { made, warnings }
}

await t.test('READY=1 comes after the longest start in any case, and the log says what is missing', async (t) => {
  const socket = abstractSocket(t)
  const begun = performance.now()
  const { made, warnings } = notifier(t, socket.address, { longestStart: 500 })
  made.changed()
  await until('the status', () => socket.last('STATUS'))
  t.equal(socket.last('READY'), undefined)
  await until('it is ready', () => socket.last('READY'))
  t.ok(performance.now() - begun >= 499)
  const status = '1 of 2 directories are whole; missing: /b ObjectMissing: Secret demo/b is missing'
  t.equal(socket.last('STATUS'), status)
  t.strictSame(warnings, [`systemd starts what waits for the agent, after 0.5 s: ${status}`])
})

await t.test('READY=1 waits until holdfast reload would find the agent', async (t) => {
  const socket = abstractSocket(t)
  let found = false
  const ready = { readiness: () => ({ ready: true, lines: [] }), isFound: () => found }
  const { made } = notifier(t, socket.address, ready)
  made.changed()
  await until('the status', () => socket.last('STATUS'))
  t.equal(socket.last('READY'), undefined)
  found = true
  made.changed()
  await until('it is ready', () => socket.last('READY'))
})

await t.test('a loop that does not turn gives no sign of life, though the timers do', async (t) => {
  const socket = abstractSocket(t)
  let turns = 0
  const { made } = notifier(t, socket.address, {
    turn: () => ((turns += 1) <= 2 ? Promise.resolve() : new Promise<void>(() => {})),
  })
  await until('it asked three times', () => turns === 3)
  made.changed()
  await until('the timers run', () => socket.last('STATUS'))
  t.equal(socket.values('WATCHDOG').length, 2)
})

await t.test('a message names no more than systemd reads', async (t) => {
  const socket = abstractSocket(t)
  const lines = Array.from({ length: 500 }, (_, index) => `[-]/${index} PublishFailed: ${'größer '.repeat(500)}`)
  notifier(t, socket.address, { readiness: () => ({ ready: false, lines }) }).made.changed()
  const status = await until('the status', () => socket.last('STATUS'))
  t.match(status, /^0 of 500 directories are whole; missing: \/0 PublishFailed: gr.*; \/1 .*; \/2 /)
  t.ok(Buffer.byteLength(socket.messages.join('\n')) < 4096)
})

await t.test('a full queue delays words, in order; without a socket there is one warning', async (t) => {
  const socket = abstractSocket(t)
  try {
    for (;;) sendDatagram(socket.address, 'x')
  } catch (error) {
    t.match(error, { code: 'EAGAIN' })
  }
  const { made, warnings } = notifier(t, socket.address, { longestStart: 1 })
  await until('the log tells of the end of the start', () => warnings.length === 1)
  made.reloading()
  made.reloaded()
  t.equal(socket.last('READY'), undefined, 'and now there is room')
  const words = () => socket.messages.filter((message) => message !== 'x' && message !== 'WATCHDOG=1')
  await until('all of it came', () => words().length === 3)
  t.matchOnly(words(), [/^READY=1/, /^RELOADING=1/, /^READY=1/])

  const nobody = notifier(t, join(scratch(t), 'nobody'))
  nobody.made.changed()
  await until('it warns', () => nobody.warnings.length > 0)
  nobody.made.stopping()
  t.matchOnly(nobody.warnings, [/^could not tell systemd of the agent's state: sendto .*nobody: ENOENT$/])
})

await t.test('notifyTarget reads what systemd has put into the environment', async (t) => {
  t.equal(notifyTarget({}, 7), undefined)
  t.equal(notifyTarget({ NOTIFY_SOCKET: '' }, 7), undefined)
  t.strictSame(notifyTarget({ NOTIFY_SOCKET: '/run/x' }, 7), { socket: '/run/x', watchdog: undefined })
  const env = { NOTIFY_SOCKET: '@x', WATCHDOG_USEC: '3000000' }
  t.strictSame(notifyTarget(env, 7), { socket: '@x', watchdog: 3000 })
  t.strictSame(notifyTarget({ ...env, WATCHDOG_PID: '7' }, 7), { socket: '@x', watchdog: 3000 })
  t.strictSame(notifyTarget({ ...env, WATCHDOG_PID: '8' }, 7), { socket: '@x', watchdog: undefined })
  t.strictSame(notifyTarget({ ...env, WATCHDOG_USEC: 'x' }, 7), { socket: '@x', watchdog: undefined })
})
