import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { endsWithin } from '../src/deadline.js'
import { codeOf, messageOf } from '../src/errors.js'
import type { Log } from '../src/log.js'
import { Channel, Disconnected, NotAuthenticated } from './channel.js'
import { Ledger, Refused, type LedgerState } from './ledger.js'
import type { Answer, Examination, Request } from './types.js'
import { WitnessFile } from './witness-file.js'

/** Milliseconds within which a connection proves that it has the key. */
const greetingTime = 5000
/** Connections without a proof at a time: clients without the key keep the node out for no longer than the greeting takes. */
const mostStrangers = 64
/** Milliseconds of silence that are worth a line in the log: the node says something each second. */
const silence = 5000

export interface WitnessOptions {
  readonly listen: { readonly host: string; readonly port: number }
  readonly key: Buffer
  readonly stateFile: string
  readonly state: LedgerState
  readonly log: Log
}

interface NodeConnection {
  readonly channel: Channel
  boot: string
  /** When the last message came, by the monotonic clock. */
  heard: number
}

/** Remembers, on a machine that keeps its power, which generations a node has announced and acknowledged; judges the disk afterwards. */
export class Witness {
  readonly #ledger: Ledger
  readonly #file: WitnessFile
  readonly #log: Log
  readonly #server: Server
  readonly #strangers = new Set<Socket>()
  /** The node's connection; a newer one takes its place, since a machine without power closes none. */
  #current: NodeConnection | undefined

  private constructor(private readonly options: WitnessOptions) {
    this.#log = options.log
    this.#ledger = new Ledger(options.state)
    const failed = (error: unknown): void => this.#log.error({}, unwritten(error))
    this.#file = new WitnessFile(options.stateFile, options.state, failed, options.log)
    this.#server = createServer((socket) => void this.#serve(socket))
  }

  /** @throws DurableWriteError where its state file cannot be written; Error where it cannot listen: nothing is written then */
  static async start(options: WitnessOptions): Promise<Witness> {
    const witness = new Witness(options)
    // Before it writes: the port may be that of another witness with the same file, which knows more by now.
    await witness.#listen()
    try {
      await witness.#file.now()
    } catch (error) {
      witness.#server.close()
      throw error
    }
    return witness
  }

  async #listen(): Promise<void> {
    const { host, port } = this.options.listen
    try {
      await new Promise<void>((resolve, reject) => {
        this.#server.once('error', reject).listen(port, host, () => resolve())
      })
    } catch (error) {
      const problem = codeOf(error) ?? messageOf(error)
      throw new Error(`cannot listen on port ${port} of ${host}: ${problem}; choose another --listen`, { cause: error })
    }
  }

  get address(): { host: string; port: number } {
    const { address, port } = this.#server.address() as AddressInfo
    return { host: address, port }
  }

  async close(): Promise<void> {
    for (const socket of this.#strangers) socket.destroy()
    // A node that spoke just now ends when its witness does. A silent one had its power cut.
    if (this.#current && performance.now() - this.#current.heard < silence) this.#ledger.ended(this.#current.boot)
    this.#current?.channel.destroy()
    this.#current = undefined
    await new Promise<void>((resolve) => this.#server.close(() => resolve()))
    await this.#file.now()
  }

  async #serve(socket: Socket): Promise<void> {
    const address = socket.remoteAddress ?? 'somebody'
    const [oldest] = this.#strangers
    if (oldest && this.#strangers.size >= mostStrangers) oldest.destroy()
    this.#strangers.add(socket)
    try {
      socket.setNoDelay(true)
      const opening = Channel.open(socket, 'witness', this.options.key)
      if (!(await endsWithin(opening, greetingTime))) socket.destroy()
      const channel = await opening
      this.#strangers.delete(socket)
      await this.#converse(channel, address)
    } catch (error) {
      if (error instanceof NotAuthenticated) this.#log.warn({ address }, `refused ${address}: ${error.message}`)
      else if (!(error instanceof Disconnected)) this.#log.error({ address }, messageOf(error))
      socket.destroy()
    } finally {
      this.#strangers.delete(socket)
    }
  }

  async #converse(channel: Channel, address: string): Promise<void> {
    const connection: NodeConnection = { channel, boot: '', heard: performance.now() }
    const before = this.#current
    this.#current = connection
    if (before?.channel.closed) this.#ledger.ended(before.boot)
    before?.channel.destroy()
    let timer: NodeJS.Timeout | undefined
    const say = () => this.#log.info({ address }, 'the node is silent: if its power was cut, start it and run --verify')
    try {
      for (;;) {
        timer = setTimeout(say, silence)
        const request = (await channel.receive()) as Request
        clearTimeout(timer)
        // A newer connection of the node has taken this one's place meanwhile.
        if (this.#current !== connection) return
        connection.heard = performance.now()
        channel.send(await this.#answer(request, connection))
      }
    } finally {
      clearTimeout(timer)
      if (this.#current === connection) await this.#left(connection)
      channel.destroy()
    }
  }

  /** A machine that loses its power closes nothing: a connection that was closed means that the program has ended before. */
  async #left({ channel, boot }: NodeConnection): Promise<void> {
    this.#current = undefined
    if (!channel.closed) return
    this.#ledger.ended(boot)
    await this.#file.now().catch((error: unknown) => this.#log.error({}, unwritten(error)))
  }

  /** Keeps a change on which the node relies: in the file, or it never happened. @throws Refused where it cannot be written */
  async #keep<T>(connection: NodeConnection, change: () => T): Promise<T> {
    const { state } = this.#ledger
    const before = structuredClone(state)
    const result = change()
    try {
      await this.#file.now()
    } catch (error) {
      // Unless a newer connection has gone on from here.
      if (this.#current === connection) {
        delete state.run
        delete state.session
        Object.assign(state, before)
      }
      this.#log.error({}, unwritten(error))
      throw new Refused(unwritten(error))
    }
    return result
  }

  async #answer(request: Request, connection: NodeConnection): Promise<Answer> {
    try {
      return await this.#obey(request, connection)
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      this.#log.warn({}, `refused the node: ${error.message}`)
      return { type: 'refused', problem: error.message }
    }
  }

  async #obey(request: Request, connection: NodeConnection): Promise<Answer> {
    const ledger = this.#ledger
    switch (request.type) {
      case 'open': {
        const standing = ledger.open(request.boot, request.machine)
        connection.boot = request.boot
        return { type: 'standing', ...(standing && { standing }) }
      }
      case 'begin':
        await this.#keep(connection, () => ledger.begin(request.run))
        this.#log.info({ run: request.run.id }, `a run begins in ${request.run.directory}`)
        break
      case 'announce':
        ledger.announce(request.generation, connection.boot)
        this.#file.soon()
        break
      case 'acknowledge':
        ledger.acknowledge(request.generation, request.unproven)
        this.#file.soon()
        break
      case 'examined': {
        const { found, outage, marks } = request
        const examination = await this.#keep(connection, () =>
          ledger.examined(found, outage, connection.boot, new Date(), marks),
        )
        this.#report(examination)
        return { type: 'examination', examination }
      }
      case 'end':
        await this.#keep(connection, () => ledger.ended(connection.boot))
        break
      case 'ping':
        break
      case 'verdict':
        return { type: 'verdict', verdict: ledger.verdict() }
    }
    return { type: 'done' }
  }

  #report({ outage, result, acknowledged, announced, lost }: Examination): void {
    const level = result === 'kept' ? 'info' : 'warn'
    const message = `after an outage (${outage}): ${result}`
    this.#log[level]({ acknowledged, announced, lost }, message)
  }
}

/** The message of a DurableWriteError names path and errno, and what to do. */
const unwritten = (error: unknown): string => `the state cannot be written: ${messageOf(error)}`
