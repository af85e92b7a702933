import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Socket } from 'node:net'

/*
 * Lines of JSON over TCP, each with an HMAC. Both sides prove that they have the key over a nonce of the other, and the key of the
 * messages depends on both nonces: a message recorded from one connection means nothing on another. Only the key is secret.
 */

/** Characters of the longest line: more is an attack or a mistake. */
const longestLine = 4 * 2 ** 20
/** Until the other side has proved its key, it needs no more. */
const longestGreeting = 1024

const protocol = 'holdfast torture 1'

type Party = 'node' | 'witness'

/** The connection is over. */
export class Disconnected extends Error {
  override readonly name = 'Disconnected'
}

/** The other side does not have the key, or speaks something else. */
export class NotAuthenticated extends Error {
  override readonly name = 'NotAuthenticated'
}

/** The lines that arrive on a socket. */
class LineReader {
  #rest = ''
  readonly #lines: string[] = []
  #waiting: { resolve: (line: string) => void; reject: (error: Error) => void } | undefined
  #over: Error | undefined
  limit = longestGreeting
  /** The other side's process, or its kernel for it, has closed the connection: it did not just fall silent. */
  closed = false

  constructor(readonly socket: Socket) {
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => this.#take(text))
    socket.on('end', () => (this.closed = true))
    socket.on('error', (error) => this.#finish(new Disconnected(error.message)))
    socket.on('close', () => this.#finish(new Disconnected('the connection was closed')))
  }

  next(): Promise<string> {
    const line = this.#lines.shift()
    if (line !== undefined) return Promise.resolve(line)
    if (this.#over !== undefined) return Promise.reject(this.#over)
    return new Promise((resolve, reject) => (this.#waiting = { resolve, reject }))
  }

  #take(text: string): void {
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop() ?? ''
    if (this.#rest.length > this.limit || lines.some((line) => line.length > this.limit)) {
      this.#finish(new Disconnected('a line is too long'))
      this.socket.destroy()
      return
    }
    for (const line of lines) {
      const waiting = this.#waiting
      this.#waiting = undefined
      if (waiting) waiting.resolve(line)
      else this.#lines.push(line)
    }
  }

  #finish(error: Error): void {
    this.#over ??= error
    this.#waiting?.reject(this.#over)
    this.#waiting = undefined
  }
}

/** An authenticated connection. Messages are checked to be JSON and in their order, not to make sense. */
export class Channel {
  #sent = 0
  #received = 0

  private constructor(
    private readonly lines: LineReader,
    private readonly side: Party,
    private readonly key: Buffer,
  ) {}

  /**
   * Both sides' greeting.
   * @throws NotAuthenticated, Disconnected
   */
  static async open(socket: Socket, side: Party, key: Buffer): Promise<Channel> {
    const lines = new LineReader(socket)
    const other = side === 'node' ? 'witness' : 'node'
    const own = randomBytes(16).toString('hex')
    socket.write(`${protocol} ${side} ${own}\n`)
    const [, theirs] = new RegExp(`^${protocol} ${other} ([0-9a-f]{32})$`).exec(await lines.next()) ?? []
    if (theirs === undefined) throw new NotAuthenticated(`what answers is no ${other} of this version`)
    const nonces = side === 'node' ? `${own} ${theirs}` : `${theirs} ${own}`
    const proof = (of: Party) => mac(key, `${of} ${nonces}`)
    // The node first: a witness gives nothing to a client without the key.
    if (side === 'node') socket.write(`${proof(side)}\n`)
    let answer: string
    try {
      answer = await lines.next()
    } catch (error) {
      // A witness closes the connection of a node that it does not believe.
      throw side === 'node' && error instanceof Disconnected && lines.closed
        ? new NotAuthenticated('the witness has another key')
        : error
    }
    if (!equal(answer, proof(other))) throw new NotAuthenticated(`the ${other} has another key`)
    if (side === 'witness') socket.write(`${proof(side)}\n`)
    lines.limit = longestLine
    return new Channel(lines, side, createHmac('sha256', key).update(`messages ${nonces}`).digest())
  }

  /** Whether the other side has closed the connection, also by a crash of its program; not where it fell silent. */
  get closed(): boolean {
    return this.lines.closed
  }

  send(message: object): void {
    const body = Buffer.from(JSON.stringify(message)).toString('base64')
    this.lines.socket.write(`${this.#mac(this.side, this.#sent++, body)} ${body}\n`)
  }

  /** @throws Disconnected, NotAuthenticated */
  async receive(): Promise<unknown> {
    const [given = '', body = ''] = (await this.lines.next()).split(' ')
    const other = this.side === 'node' ? 'witness' : 'node'
    if (!equal(given, this.#mac(other, this.#received++, body))) {
      this.destroy()
      throw new NotAuthenticated('a message was changed on its way')
    }
    return JSON.parse(Buffer.from(body, 'base64').toString()) as unknown
  }

  destroy(): void {
    this.lines.socket.destroy()
  }

  #mac(side: Party, number: number, body: string): string {
    return mac(this.key, `${side} ${number} ${body}`)
  }
}

function mac(key: Buffer, text: string): string {
  return createHmac('sha256', key).update(text).digest('hex')
}

function equal(given: string, expected: string): boolean {
  return (
    given.length === expected.length && timingSafeEqual(Buffer.from(given, 'latin1'), Buffer.from(expected, 'latin1'))
  )
}
