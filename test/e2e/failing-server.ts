/** The API server, but for some objects: each request about these gets HTTP 500, as from a server whose storage fails. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream'
import type { Test } from 'tap'
import type { ApiServer } from './api-server.js'

export class FailingServer {
  /** Names of objects. */
  failing: readonly string[] = []
  /** How often it has answered so. */
  failures = 0

  private constructor(readonly url: string) {}

  /** Ends with the test. It has the authority of the server that it stands before, and hands on who asks. */
  static async before(t: Test, api: ApiServer): Promise<FailingServer> {
    const pair = await api.authority.server('failing-server')
    const server = createServer({ key: readFileSync(pair.key), cert: readFileSync(pair.certificate) })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const failing = new FailingServer(`https://127.0.0.1:${(server.address() as AddressInfo).port}`)
    const ca = readFileSync(api.authority.certificate)
    server.on('request', (asked, answer) => {
      const { method, url = '/', headers } = asked
      if (failing.failing.some((name) => decodeURIComponent(url).includes(name))) {
        failing.failures++
        const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'InternalError', code: 500 }
        answer.writeHead(500, { 'content-type': 'application/json' }).end(JSON.stringify(status))
        return
      }
      const onward = request(new URL(url, api.url), { method, headers, ca }, (got) => {
        answer.writeHead(got.statusCode ?? 502, got.headers)
        pipeline(got, answer, () => undefined)
      })
      onward.on('error', () => answer.destroy())
      pipeline(asked, onward, () => undefined)
    })
    t.teardown(() => {
      server.close()
      server.closeAllConnections()
    })
    return failing
  }
}
