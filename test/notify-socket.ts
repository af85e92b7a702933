/** A socket for datagrams, as systemd gives to a service that tells of its state: by libc, since Node has none. */
import { closeSync } from 'node:fs'
import type { Test } from 'tap'
import { callNow, declare } from '../native/libc.js'

const socket = declare('socket', 'int', ['int', 'int', 'int'])
const bind = declare('bind', 'int', ['int', 'const void *', 'uint32_t'])
const recv = declare('recv', 'long', ['int', 'void *', 'size_t', 'int'])

/** AF_UNIX; SOCK_DGRAM | SOCK_CLOEXEC; MSG_DONTWAIT. */
const [unix, datagram, atOnce] = [1, 2 | 0x80000, 0x40]

export class NotifySocket {
  readonly #descriptor: number
  readonly #messages: string[] = []

  /** At a path, or at an abstract name that begins with `@`; until the test ends. */
  constructor(
    t: Test,
    readonly address: string,
  ) {
    this.#descriptor = callNow(socket, unix, datagram, 0).result
    const name = Buffer.from(address.startsWith('@') ? `\0${address.slice(1)}` : `${address}\0`)
    const to = Buffer.concat([Buffer.from([unix, 0]), name])
    const { result, errno } = callNow(bind, this.#descriptor, to, to.length)
    if (result !== 0) throw new Error(`bind ${address}: errno ${errno}`)
    t.teardown(() => closeSync(this.#descriptor))
  }

  /** All that has come until now. */
  get messages(): readonly string[] {
    const buffer = Buffer.alloc(65_536)
    for (;;) {
      const { result } = callNow(recv, this.#descriptor, buffer, buffer.length, atOnce)
      if (result < 0) return this.#messages
      this.#messages.push(buffer.toString('utf8', 0, result))
    }
  }

  /** The last value of a variable. */
  last(name: string): string | undefined {
    return this.values(name).at(-1)
  }

  /** Each value of a variable, in order. */
  values(name: string): string[] {
    const lines = this.messages.flatMap((message) => message.split('\n'))
    return lines.filter((line) => line.startsWith(`${name}=`)).map((line) => line.slice(name.length + 1))
  }
}
