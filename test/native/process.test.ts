// Own process: it counts the descriptors of its process.
import { spawnSync } from 'node:child_process'
import t from 'tap'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sendDatagram, uptime } from '../../native/index.js'
import { NotifySocket } from '../notify-socket.js'

const library = new URL('../../native/', import.meta.url).href

/** Turns core dumps off in a separate process, without capabilities; its limit then, and whether it can be dumped. */
function run(hardLimit: number) {
  const script = `
    import { readFileSync } from 'node:fs'
    import { disableCoreDumps } from ${JSON.stringify(`${library}index.js`)}
    import { callNow, declareSystemCall } from ${JSON.stringify(`${library}libc.js`)}
    disableCoreDumps()
    const [, limit, hard] = /^Max core file size\\s+(\\S+)\\s+(\\S+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))
    const getDumpable = 3
    const prctl = declareSystemCall('prctl', ['int'])
    const { result } = callNow(prctl, getDumpable)
    process.stdout.write(limit + ' ' + hard + ' ' + result)`
  return spawnSync(
    'prlimit',
    [
      ...[`--core=0:${hardLimit}`, 'setpriv', '--inh-caps=-all', '--bounding-set=-all'],
      ...[process.execPath, '--input-type=module', '--eval', script],
    ],
    { encoding: 'utf8', env: { PATH: process.env.PATH } },
  )
}

const skip = process.getuid?.() === 0 ? false : 'needs root, to give up its capabilities'

void t.test('the limit is one byte, which stops pipe handlers too', { skip }, async (t) => {
  const { stdout, stderr } = run(1000)
  t.equal(stdout, '1 1 1', stderr)
})

// A container runtime may set it, and an agent without CAP_SYS_RESOURCE must start all the same.
void t.test('where the hard limit is zero, the process cannot be dumped', { skip }, async (t) => {
  const { stdout, stderr } = run(0)
  t.equal(stdout, '0 0 0', stderr)
})

void t.test('the kernel has run for as long as /proc/uptime says', (t) => {
  const before = uptime()
  const told = Number(readFileSync('/proc/uptime', 'latin1').split(' ', 1)[0]) * 1000
  // The table has hundredths of a second.
  t.ok(before - 10 <= told && told <= uptime(), `${before} ms, ${told} ms`)
  t.end()
})

/** Datagrams to Unix sockets, by path and by abstract name. */

const sockets = mkdtempSync(join(tmpdir(), 'holdfast-datagram-'))
t.teardown(() => rmSync(sockets, { recursive: true }))

await t.test('a datagram reaches a socket, whole, and leaves no descriptor open', async (t) => {
  for (const address of [join(sockets, 'notify'), `@holdfast-test-${process.pid}`]) {
    const socket = new NotifySocket(t, address)
    const before = readdirSync('/proc/self/fd').length
    sendDatagram(address, 'READY=1\nSTATUS=größer')
    sendDatagram(address, 'WATCHDOG=1')
    t.strictSame(socket.messages, ['READY=1\nSTATUS=größer', 'WATCHDOG=1'], address)
    t.equal(readdirSync('/proc/self/fd').length, before)
  }
})

await t.test('a datagram that nobody can get fails at once, with the errno', async (t) => {
  t.throws(() => sendDatagram(join(sockets, 'none'), 'x'), { syscall: 'sendto', code: 'ENOENT' })
  const full = new NotifySocket(t, join(sockets, 'full'))
  const fill = (): void => {
    for (;;) sendDatagram(full.address, 'x')
  }
  t.throws(fill, { code: 'EAGAIN' })
  t.throws(() => sendDatagram(`/${'x'.repeat(108)}`, 'x'), TypeError)
  t.throws(() => sendDatagram('', 'x'), TypeError)
})
