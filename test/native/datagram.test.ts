/** Datagrams to Unix sockets, by path and by abstract name. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { sendDatagram } from '../../native/index.js'
import { NotifySocket } from '../notify-socket.js'

const directory = mkdtempSync(join(tmpdir(), 'holdfast-datagram-'))
t.teardown(() => rmSync(directory, { recursive: true }))

await t.test('a datagram reaches a socket, whole, and leaves no descriptor open', async (t) => {
  for (const address of [join(directory, 'notify'), `@holdfast-test-${process.pid}`]) {
    const socket = new NotifySocket(t, address)
    const before = readdirSync('/proc/self/fd').length
    sendDatagram(address, 'READY=1\nSTATUS=größer')
    sendDatagram(address, 'WATCHDOG=1')
    t.strictSame(socket.messages, ['READY=1\nSTATUS=größer', 'WATCHDOG=1'], address)
    t.equal(readdirSync('/proc/self/fd').length, before)
  }
})

await t.test('a datagram that nobody can get fails at once, with the errno', async (t) => {
  t.throws(() => sendDatagram(join(directory, 'none'), 'x'), { syscall: 'sendto', code: 'ENOENT' })
  const full = new NotifySocket(t, join(directory, 'full'))
  const fill = (): void => {
    for (;;) sendDatagram(full.address, 'x')
  }
  t.throws(fill, { code: 'EAGAIN' })
  t.throws(() => sendDatagram(`/${'x'.repeat(108)}`, 'x'), TypeError)
  t.throws(() => sendDatagram('', 'x'), TypeError)
})
