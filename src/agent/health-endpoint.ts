import type { ServerAddress } from '../config/types.js'
import { adviceOnShortage, codeOf, messageOf } from '../errors.js'
import type { Log } from '../log.js'
import { retryDelay } from '../backoff.js'
import { serveHealth, type Health, type HealthServer } from './report/http-server.js'

export interface HealthEndpointOptions {
  readonly log: Log
  readonly health: Health
  /** `problem` differs from before. */
  readonly changed: () => void
}

/**
 * The server of health and metrics. A port in use ends nothing: a killed agent keeps its port for as long as one of its threads waits for a
 * disk, and the directories on other disks need this agent meanwhile.
 */
export class HealthEndpoint {
  #server: HealthServer | undefined
  #problem: string | undefined
  #retry: NodeJS.Timeout | undefined
  #failures = 0
  /** Of the address that was asked for last: a try that is under way for another one counts no more. */
  #turn = 0

  constructor(private readonly options: HealthEndpointOptions) {}

  get address(): ServerAddress | undefined {
    return this.#server?.address
  }

  /** Why nothing is served, although an address is configured. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** Serves at an address now, or as soon as it is free. Rejects where waiting does not help. */
  async open(address: ServerAddress): Promise<void> {
    const turn = this.#turn
    try {
      const server = await this.bind(address)
      if (turn !== this.#turn) await server.close()
      else this.#server = server
    } catch (error) {
      if (!isPortTaken(error)) throw error
      if (turn === this.#turn) this.#tryLater(address, error)
    }
  }

  /** A server at another address, beside the one in use. Rejects where the address cannot be had now. */
  async bind(address: ServerAddress): Promise<HealthServer> {
    try {
      return await serveHealth(address, this.options.health)
    } catch (error) {
      throw new Error(`server.address ${address.host}:${address.port}: ${messageOf(error)}; ${endpointAdvice(error)}`, {
        cause: error,
      })
    }
  }

  /** Serves by this one from now on; undefined: no longer. */
  async use(next: HealthServer | undefined): Promise<void> {
    this.#turn += 1
    clearTimeout(this.#retry)
    this.#failures = 0
    this.#say(undefined)
    const before = this.#server
    this.#server = next
    await before?.close()
  }

  close(): Promise<void> {
    return this.use(undefined)
  }

  #tryLater(address: ServerAddress, error: Error): void {
    this.#failures += 1
    const delay = retryDelay(this.#failures)
    const message = `${error.message}; the agent works without /livez, /readyz and /metrics meanwhile, and tries again`
    // Once, however often it fails: what to do stays the same.
    this.options.log[this.#failures === 1 ? 'warn' : 'debug']({ retryAfterSeconds: delay / 1000 }, message)
    this.#say(error.message)
    this.#retry = setTimeout(() => void this.#again(address), delay)
  }

  async #again(address: ServerAddress): Promise<void> {
    const turn = this.#turn
    try {
      await this.open(address)
    } catch (error) {
      // Another error than the first time, such as a lack of descriptors: it passes, too.
      if (turn === this.#turn) this.#tryLater(address, error as Error)
    }
    if (turn !== this.#turn || this.#server === undefined) return
    this.#failures = 0
    this.#say(undefined)
    const { host, port } = this.#server.address
    this.options.log.info({ address: this.#server.address }, `health and metrics are served at ${host}:${port}`)
  }

  #say(problem: string | undefined): void {
    if (problem === this.#problem) return
    this.#problem = problem
    this.options.changed()
  }
}

function isPortTaken(error: unknown): error is Error {
  return error instanceof Error && codeOf(error.cause) === 'EADDRINUSE'
}

function endpointAdvice(error: unknown): string {
  const code = codeOf(error)
  if (code === 'EADDRINUSE')
    return 'another program, perhaps another agent, uses this address: stop it, or choose another port'
  if (code === 'EACCES') return 'ports below 1024 need CAP_NET_BIND_SERVICE: choose another port'
  if (code === 'EADDRNOTAVAIL') return 'no interface of this machine has this address'
  return adviceOnShortage(code) ?? 'choose another address'
}
