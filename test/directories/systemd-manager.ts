/** A real bus, and a manager on it that answers as systemd does: the bus checks each message, too, not only our reader. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { decodeMessage, lengthOf } from '../../src/directories/dbus-message.js'
import { until } from '../until.js'

export const managerName = 'org.freedesktop.systemd1'
const managerPath = '/org/freedesktop/systemd1'

/** dbus-daemon with a separate socket, on which every user may do everything. */
export class Bus {
  readonly directory = mkdtempSync(join(tmpdir(), 'holdfast-bus-'))
  readonly socket = join(this.directory, 'socket')
  readonly #child: ChildProcess

  private constructor(policy: string) {
    const file = join(this.directory, 'bus.conf')
    writeFileSync(
      file,
      `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <listen>unix:path=${this.socket}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">${policy}</policy>
</busconfig>
`,
    )
    this.#child = spawn('dbus-daemon', ['--config-file', file, '--nofork', '--nopidfile', '--print-address'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
  }

  static async start(
    t: Test,
    policy = '<allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/><allow user="*"/>',
  ) {
    const bus = new Bus(policy)
    t.teardown(() => bus.stop())
    // Its address, once it listens.
    if (bus.#child.stdout) await once(bus.#child.stdout, 'data')
    return bus
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const ended = once(this.#child, 'exit')
      this.#child.kill('SIGKILL')
      await ended
    }
    rmSync(this.directory, { recursive: true, force: true })
  }
}

/** A call that has come in. */
export interface Call {
  readonly serial: number
  readonly sender: string
  readonly member: string
  readonly body: readonly (string | number)[]
}

type Value = readonly ['s' | 'o' | 'g', string] | readonly ['u', number]

/** Bytes of values, as the specification's chapter "Marshaling" has them; big-endian, as another machine may send them. */
function marshal(values: readonly Value[], start = 0): Buffer {
  let bytes = Buffer.alloc(0)
  const align = (to: number) => {
    bytes = Buffer.concat([bytes, Buffer.alloc((to - ((start + bytes.length) % to)) % to)])
  }
  const number = (value: number) => {
    align(4)
    const piece = Buffer.alloc(4)
    piece.writeUInt32BE(value)
    bytes = Buffer.concat([bytes, piece])
  }
  for (const [type, value] of values) {
    if (type === 'u') number(value)
    else if (type === 'g') bytes = Buffer.concat([bytes, Buffer.from([value.length]), Buffer.from(`${value}\0`)])
    else {
      number(Buffer.byteLength(value))
      bytes = Buffer.concat([bytes, Buffer.from(`${value}\0`)])
    }
  }
  return bytes
}

/** A program on the bus. */
export class Peer {
  readonly calls: Call[] = []
  #serial = 0
  #rest = Buffer.alloc(0)
  #greeted = false
  answer: (call: Call) => void = () => {}

  private constructor(readonly socket: Socket) {
    socket.on('data', (chunk: Buffer) => this.#read(chunk))
  }

  static async connect(t: Test, bus: Bus, name?: string): Promise<Peer> {
    const socket = connect({ path: bus.socket })
    t.teardown(() => socket.destroy())
    const peer = new Peer(socket)
    socket.write(`\0AUTH EXTERNAL ${Buffer.from(String(process.getuid?.() ?? 0)).toString('hex')}\r\n`)
    await until('the bus has greeted', () => peer.#greeted)
    socket.write('BEGIN\r\n')
    peer.#toBus('Hello', [])
    if (name !== undefined) {
      peer.#toBus('RequestName', [
        ['s', name],
        ['u', 4],
      ])
      await until('the name is ours', () => peer.#owned)
    }
    return peer
  }

  #owned = false

  #toBus(member: string, body: readonly Value[]): void {
    const fields: [number, Value][] = [
      [1, ['o', '/org/freedesktop/DBus']],
      [2, ['s', 'org.freedesktop.DBus']],
      [3, ['s', member]],
      [6, ['s', 'org.freedesktop.DBus']],
    ]
    this.send(1, fields, body)
  }

  /** One message. */
  send(type: number, fields: readonly [number, Value][], values: readonly Value[]): void {
    const body = marshal(values)
    const signature = values.map(([of]) => of).join('')
    const all: [number, Value][] = signature === '' ? [...fields] : [...fields, [8, ['g', signature]]]
    let header = Buffer.alloc(0)
    for (const [code, value] of all) {
      const padding = Buffer.alloc((8 - (header.length % 8)) % 8)
      const head = Buffer.concat([header, padding, Buffer.from([code, 1]), Buffer.from(`${value[0]}\0`)])
      header = Buffer.concat([head, marshal([value], head.length)])
    }
    const start = Buffer.alloc(16)
    start.write('B', 0, 'latin1')
    start.writeUInt8(type, 1)
    start.writeUInt8(type === 1 ? 0 : 1, 2)
    start.writeUInt8(1, 3)
    start.writeUInt32BE(body.length, 4)
    start.writeUInt32BE(++this.#serial, 8)
    start.writeUInt32BE(header.length, 12)
    this.socket.write(Buffer.concat([start, header, Buffer.alloc((8 - (header.length % 8)) % 8), body]))
  }

  /** A call to our own name: it comes back once the bus has taken all that we sent before. */
  callItself(name: string): void {
    const fields: [number, Value][] = [
      [1, ['o', '/']],
      [3, ['s', 'Ping']],
      [6, ['s', name]],
    ]
    this.send(1, fields, [])
  }

  reply({ serial, sender }: Call, values: readonly Value[] = []): void {
    const fields: [number, Value][] = [
      [5, ['u', serial]],
      [6, ['s', sender]],
    ]
    this.send(2, fields, values)
  }

  refuse({ serial, sender }: Call, error: string): void {
    const fields: [number, Value][] = [
      [4, ['s', error]],
      [5, ['u', serial]],
      [6, ['s', sender]],
    ]
    this.send(3, fields, [['s', 'a text that may name anything: canary-9d2c']])
  }

  /** Announces the end of a job, to all or to one. */
  jobRemoved(job: string, unit: string, result: string, to?: string): void {
    const fields: [number, Value][] = [
      [1, ['o', managerPath]],
      [2, ['s', `${managerName}.Manager`]],
      [3, ['s', 'JobRemoved']],
      ...(to === undefined ? [] : [[6, ['s', to]] as [number, Value]]),
    ]
    this.send(4, fields, [
      ['u', 7],
      ['o', job],
      ['s', unit],
      ['s', result],
    ])
  }

  #read(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk])
    if (!this.#greeted) {
      const end = this.#rest.indexOf('\r\n')
      if (end < 0) return
      this.#greeted = this.#rest.toString('latin1', 0, 3) === 'OK '
      this.#rest = this.#rest.subarray(end + 2)
    }
    for (let length = lengthOf(this.#rest); length !== undefined && this.#rest.length >= length;) {
      const bytes = this.#rest.subarray(0, length)
      const { type, sender = '', member = '', body } = decodeMessage(bytes)
      const serial = bytes[0] === 0x6c ? bytes.readUInt32LE(8) : bytes.readUInt32BE(8)
      this.#rest = this.#rest.subarray(length)
      length = lengthOf(this.#rest)
      if (type === 2 && sender === 'org.freedesktop.DBus' && body[0] === 1) this.#owned = true
      if (type !== 1) continue
      const call = { serial, sender, member, body }
      this.calls.push(call)
      this.answer(call)
    }
  }
}
