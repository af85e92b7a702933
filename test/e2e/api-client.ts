/** The tests' own access to the API server: independent of the client that is under test, and quicker than kubectl. */
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { text } from 'node:stream/consumers'
import type { KeyPair } from './authority.js'

export interface ApiObject {
  readonly metadata: {
    readonly name: string
    readonly namespace: string
    readonly uid: string
    readonly resourceVersion: string
  }
}

export class ApiClient {
  private agent: Agent

  /** As the user of a client certificate, or with a token given to each call. */
  constructor(
    private readonly port: number,
    private readonly authority: string,
    private readonly pair?: KeyPair,
  ) {
    this.agent = this.connect()
  }

  private connect(): Agent {
    return new Agent({
      keepAlive: true,
      ca: readFileSync(this.authority),
      ...(this.pair && { cert: readFileSync(this.pair.certificate), key: readFileSync(this.pair.key) }),
    })
  }

  /** Drops all connections, so that none is used that a killed server has left behind. */
  disconnect(): void {
    this.agent.destroy()
    this.agent = this.connect()
  }

  /** Resolves for every HTTP status. `body` is JSON where it can be, else text. */
  async call(
    method: string,
    path: string,
    body?: object,
    headers: Record<string, string> = {},
  ): Promise<{ status: number; body: unknown }> {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const sent = request(
        {
          host: '127.0.0.1',
          port: this.port,
          method,
          path,
          agent: this.agent,
          headers: { 'content-type': 'application/json', ...headers },
        },
        resolve,
      )
      sent.on('error', reject).end(body && JSON.stringify(body))
    })
    const answer = await text(response)
    return { status: response.statusCode ?? 0, body: parse(answer) }
  }

  /**
   * As `call`, for what must succeed.
   * @throws Error with the server's message, for a status of 300 and above
   */
  async demand(method: string, path: string, body?: object, headers?: Record<string, string>): Promise<ApiObject> {
    const answer = await this.call(method, path, body, headers)
    if (answer.status >= 300) {
      const { message } = answer.body as { message?: string }
      throw new Error(`${method} ${path}: HTTP ${answer.status}: ${message ?? String(answer.body)}`)
    }
    return answer.body as ApiObject
  }
}

function parse(answer: string): unknown {
  try {
    return JSON.parse(answer)
  } catch {
    return answer
  }
}
