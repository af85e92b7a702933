import { connect, type Socket } from 'node:net'
import { toError } from '../errors.js'
import { decodeMessage, encodeCall, lengthOf, messageTypes, type DBusCall, type DBusMessage } from './dbus-message.js'

/** The bus itself. */
export const bus = {
  destination: 'org.freedesktop.DBus',
  path: '/org/freedesktop/DBus',
  interface: 'org.freedesktop.DBus',
}

/** Longest line of a bus that greets, in bytes. */
const longestLine = 16 * 1024

/** A call was refused: the bus or its receiver answered with an error. */
export class DBusError extends Error {
  /** `org.freedesktop.DBus.Error.AccessDenied`; the text that comes with it is not kept. */
  constructor(readonly error: string) {
    super(error)
  }
}

interface Waiting<T> {
  readonly resolve: (value: T) => void
  readonly reject: (error: Error) => void
}

/** A connection to a message bus, for calls whose arguments are texts. Everything rejects once it is closed, or `signal` aborts. */
export class DBusConnection {
  readonly #socket: Socket
  readonly #waiting = new Map<number, Waiting<DBusMessage>>()
  #serial = 0
  #rest = Buffer.alloc(0)
  /** Until the bus has greeted. */
  #greeted: Waiting<void> | undefined
  #failure: Error | undefined
  #over: (error: Error) => void = () => {}
  #received: (message: DBusMessage) => void = () => {}

  private constructor(
    socketPath: string,
    private readonly signal: AbortSignal,
  ) {
    this.#socket = connect({ path: socketPath })
    this.#socket.on('data', (chunk: Buffer) => this.#read(chunk))
    this.#socket.once('error', (error) => this.#fail(error))
    this.#socket.once('close', () => this.#fail(new Error('the bus closed the connection')))
    signal.addEventListener('abort', this.#abort, { once: true })
    // A connection may end while no call waits on it: then this rejection needs no handler.
    this.closed.catch(() => undefined)
  }

  /** Rejects once the connection is over. */
  readonly closed = new Promise<never>((_, reject) => (this.#over = reject))

  readonly #abort = (): void => this.#fail(toError(this.signal.reason))

  /** Connects, and says who it is: the kernel vouches for the user. */
  static async open(socketPath: string, signal: AbortSignal): Promise<DBusConnection> {
    signal.throwIfAborted()
    const connection = new DBusConnection(socketPath, signal)
    try {
      await connection.#authenticate()
      await connection.call({ ...bus, member: 'Hello' })
      return connection
    } catch (error) {
      connection.close()
      throw error
    }
  }

  async #authenticate(): Promise<void> {
    const user = Buffer.from(String(process.geteuid?.() ?? 0)).toString('hex')
    const greeted = new Promise<void>((resolve, reject) => (this.#greeted = { resolve, reject }))
    this.#socket.write(`\0AUTH EXTERNAL ${user}\r\n`)
    await greeted
    this.#socket.write('BEGIN\r\n')
  }

  /** Has the bus send the signals that a rule matches; `received` is called for each message that is no answer. */
  async follow(rule: string, received: (message: DBusMessage) => void): Promise<void> {
    this.#received = received
    await this.call({ ...bus, member: 'AddMatch', texts: [rule] })
  }

  /** Resolves with the answer. @throws DBusError where that is an error */
  async call(call: DBusCall): Promise<DBusMessage> {
    if (this.#failure) throw this.#failure
    const serial = ++this.#serial
    const answered = new Promise<DBusMessage>((resolve, reject) => this.#waiting.set(serial, { resolve, reject }))
    this.#socket.write(encodeCall(call, serial))
    return answered
  }

  close(): void {
    this.signal.removeEventListener('abort', this.#abort)
    this.#fail(new Error('the connection is closed'))
  }

  #fail(error: Error): void {
    this.#failure ??= error
    this.#over(this.#failure)
    const waiting = [...this.#waiting.values(), ...(this.#greeted ? [this.#greeted] : [])]
    this.#waiting.clear()
    this.#greeted = undefined
    for (const { reject } of waiting) reject(this.#failure)
    this.#socket.destroy()
  }

  #read(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk])
    try {
      if (this.#greeted && !this.#readGreeting(this.#greeted)) return
      for (let length = lengthOf(this.#rest); length !== undefined; length = lengthOf(this.#rest)) {
        if (this.#rest.length < length) return
        const message = decodeMessage(this.#rest.subarray(0, length))
        this.#rest = this.#rest.subarray(length)
        this.#take(message)
      }
    } catch (error) {
      this.#fail(toError(error))
    }
  }

  /** Reads `OK GUID`, or the refusal in its place. */
  #readGreeting(greeted: Waiting<void>): boolean {
    const end = this.#rest.indexOf('\r\n')
    if (end < 0 && this.#rest.length > longestLine) throw new Error('the bus does not greet')
    if (end < 0) return false
    const accepted = this.#rest.toString('latin1', 0, end).startsWith('OK ')
    this.#rest = this.#rest.subarray(end + 2)
    if (!accepted) throw new DBusError('org.freedesktop.DBus.Error.AuthFailed')
    this.#greeted = undefined
    greeted.resolve()
    return true
  }

  #take(message: DBusMessage): void {
    const waiting = message.answers === undefined ? undefined : this.#waiting.get(message.answers)
    if (waiting === undefined) {
      this.#received(message)
      return
    }
    this.#waiting.delete(message.answers ?? 0)
    if (message.type === messageTypes.error) waiting.reject(new DBusError(message.error ?? 'unknown'))
    else waiting.resolve(message)
  }
}
