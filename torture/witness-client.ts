import { connect, type Socket } from 'node:net'
import { Deadline, unlessAborted } from '../src/deadline.js'
import { messageOf } from '../src/errors.js'
import { Channel, NotAuthenticated } from './channel.js'
import type { Answer, Request } from './types.js'

/** Milliseconds for a connection, a greeting or an answer. */
const patience = 10_000
/** Milliseconds between two signs of life while a publication takes its time. */
const pingInterval = 1000

export interface WitnessAddress {
  readonly host: string
  readonly port: number
}

/** The witness cannot be asked: without it there is nothing to compare with. */
export class NoWitness extends Error {
  override readonly name = 'NoWitness'
}

/** The answer to each request, unless it is refused. */
interface AnswerTypes {
  open: 'standing'
  begin: 'done'
  examined: 'examination'
  announce: 'done'
  acknowledge: 'done'
  ping: 'done'
  verdict: 'verdict'
  end: 'done'
}

type AnswerTo<R extends Request['type']> = Extract<Answer, { type: AnswerTypes[R] }>

/** The node's side of the connection: one request at a time. */
export class WitnessClient {
  #turn: Promise<unknown> = Promise.resolve()
  readonly #pings: NodeJS.Timeout

  private constructor(
    private readonly channel: Channel,
    private readonly where: string,
  ) {
    this.#pings = setInterval(() => {
      // The next question reports the failure.
      this.ask({ type: 'ping' }).catch(() => undefined)
    }, pingInterval)
  }

  /** @throws NoWitness */
  static async connect({ host, port }: WitnessAddress, key: Buffer, signal: AbortSignal): Promise<WitnessClient> {
    const where = `${host.includes(':') ? `[${host}]` : host}:${port}`
    const deadline = new Deadline(patience, signal, () => new Error(`no answer within ${patience / 1000} s`))
    const socket = connect({ host, port, noDelay: true })
    try {
      await unlessAborted(connected(socket), deadline.signal)
      const channel = await unlessAborted(Channel.open(socket, 'node', key), deadline.signal)
      return new WitnessClient(channel, where)
    } catch (error) {
      socket.destroy()
      signal.throwIfAborted()
      const advice =
        error instanceof NotAuthenticated
          ? 'give both the same --key-file'
          : 'start "holdfast witness" there, and see that its port can be reached'
      throw new NoWitness(
        `no witness at ${where}: ${messageOf(error)}; ${advice}. Without a witness there is no verdict`,
        {
          cause: error,
        },
      )
    } finally {
      deadline.dispose()
    }
  }

  /** @throws NoWitness; Error where the witness refuses */
  ask<R extends Request>(request: R): Promise<AnswerTo<R['type']>> {
    const answer = this.#turn.then(() => this.#ask(request))
    this.#turn = answer.catch(() => undefined)
    return answer as Promise<AnswerTo<R['type']>>
  }

  close(): void {
    clearInterval(this.#pings)
    this.channel.destroy()
  }

  async #ask(request: Request): Promise<Answer> {
    const deadline = new Deadline(patience, undefined, () => new Error(`no answer within ${patience / 1000} s`))
    let answer: Answer
    try {
      this.channel.send(request)
      answer = (await unlessAborted(this.channel.receive(), deadline.signal)) as Answer
    } catch (error) {
      // A late answer would pass for the answer to another request.
      this.channel.destroy()
      throw new NoWitness(`the witness at ${this.where} does not answer: ${messageOf(error)}`, { cause: error })
    } finally {
      deadline.dispose()
    }
    if (answer.type === 'refused') throw new Error(`the witness at ${this.where} refuses: ${answer.problem}`)
    return answer
  }
}

function connected(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('connect', () => {
      socket.removeListener('error', reject)
      resolve()
    })
    socket.once('error', reject)
  })
}
