import { closeSync } from 'node:fs'
import { checkText } from './arguments.js'
import { SystemError } from './errno.js'
import { callNow, declare } from './libc.js'

// Linux, include/linux/socket.h and include/linux/net.h.
const unix = 1
const datagram = 2
const closeSocketOnExec = 0x80000
/** MSG_DONTWAIT | MSG_NOSIGNAL. */
const atOnce = 0x40 | 0x4000

/** Bytes of sun_path (unix(7)). */
const longestPath = 108

/** Bound at the first call: one process in many sends any. */
function bind() {
  return {
    socket: declare('socket', 'int', ['int', 'int', 'int']),
    sendto: declare('sendto', 'long', ['int', 'const void *', 'size_t', 'int', 'const void *', 'uint32_t']),
  }
}
let bound: ReturnType<typeof bind> | undefined

/**
 * One datagram to a Unix socket, by its path, or by `@` and the name of an abstract socket. Never waits: EAGAIN where the receiver's queue is
 * full. Throws SystemError.
 */
export function sendDatagram(address: string, text: string): void {
  const { socket, sendto } = (bound ??= bind())
  const to = socketAddress(address)
  const opened = callNow(socket, unix, datagram | closeSocketOnExec, 0)
  if (opened.result < 0) throw new SystemError('socket', opened.errno, undefined)
  try {
    const bytes = Buffer.from(text)
    const { result, errno } = callNow(sendto, opened.result, bytes, bytes.length, atOnce, to, to.length)
    if (result < 0) throw new SystemError('sendto', errno, address)
  } finally {
    closeSync(opened.result)
  }
}

/** struct sockaddr_un: an abstract name begins with NUL, and ends with the address; a path ends with NUL. */
function socketAddress(address: string): Buffer {
  const text = checkText(address)
  const name = Buffer.from(text.startsWith('@') ? `\0${text.slice(1)}` : `${text}\0`)
  if (name.length > longestPath) throw new TypeError(`longer than a socket's address may be: ${address}`)
  const family = Buffer.alloc(2)
  family.writeUInt16LE(unix)
  return Buffer.concat([family, name])
}
