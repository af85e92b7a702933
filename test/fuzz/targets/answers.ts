import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { silent } from '../../../src/log.js'
import type { ApiClient } from '../../../src/kubernetes/connection/client.js'
import { connect } from '../../../src/kubernetes/connection/connection.js'
import { Credentials } from '../../../src/kubernetes/credentials/credentials.js'
import { kubeconfig } from '../../kubernetes/credentials/kubeconfig-text.js'
import { ApiError } from '../../../src/kubernetes/reads/api-error.js'
import { ApiReader } from '../../../src/kubernetes/reads/api-reader.js'
import { observeObject } from '../../../src/kubernetes/reads/observed-version.js'
import { objectTarget } from '../../../src/kubernetes/reads/requests.js'
import { demand, type Target } from '../target.js'

const reference = { kind: 'Secret', namespace: 'n', name: 'a' } as const

let answer: Buffer = Buffer.alloc(0)
let opened: Promise<{ server: Server; client: ApiClient }> | undefined

/** The input is all that a server sends over a plain connection before it closes it. */
export const answers: Target<string> = {
  name: 'answers',
  files: [
    'kubernetes/connection/connection.js',
    'kubernetes/connection/http1-transport.js',
    'kubernetes/connection/response-body.js',
    'kubernetes/reads/api-reader.js',
    'kubernetes/reads/api-error.js',
    'kubernetes/reads/decode.js',
  ],
  longest: 32_768,
  words: [
    'HTTP/1.1 ',
    'HTTP/1.0 ',
    '200 OK\r\n',
    '404 Not Found\r\n',
    '410 Gone\r\n',
    '429 a\r\n',
    '500 a\r\n',
    '100 Continue\r\n\r\n',
    '101 a\r\n',
    '301 a\r\n',
    'Content-Length: ',
    'Transfer-Encoding: chunked\r\n',
    'Content-Type: application/json\r\n',
    'Content-Type: text/html\r\n',
    'Content-Encoding: gzip\r\n',
    'Retry-After: 1\r\n',
    'Retry-After: Thu, 01 Jan 2037 00:00:00 GMT\r\n',
    'Date: ',
    'Connection: close\r\n',
    '\r\n',
    '\r\n\r\n',
    '5\r\n',
    '0\r\n\r\n',
    '<!doctype html>',
    '{"kind":"Status","reason":"NotFound","details":{"name":"a"}}',
    '{"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"1"},"data":{"k":"dg=="}}',
  ],
  async read(input) {
    opened ??= open()
    const { client } = await opened
    answer = input
    const reader = new ApiReader(client, { log: silent, timing: { request: 5_000, firstDelay: 0, longestDelay: 0 } })
    try {
      // One try: its failure comes as it is.
      const found = await reader.get(objectTarget(reference), new AbortController().signal, 1)
      return found === undefined ? 'absent' : observeObject(reference, found).observation.state
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      demand(error.message.length < 2000, 'an error is a short sentence')
      demand(error.details.retryAfter === undefined || error.details.retryAfter >= 0, 'no wait is negative')
      return undefined
    }
  },
  async close() {
    const { server, client } = (await opened) ?? {}
    // Another test of the process may ask it anew.
    opened = undefined
    await client?.close()
    server?.close()
  },
}

async function open(): Promise<{ server: Server; client: ApiClient }> {
  const server = createServer((socket: Socket) => {
    socket.on('error', () => undefined)
    // The request has come: what comes before it would be no answer.
    socket.once('data', () => socket.end(answer))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  server.unref()
  const { port } = server.address() as AddressInfo
  const text = kubeconfig({ server: `http://127.0.0.1:${port}` }, {}, 'n')
  const credentials = new Credentials({
    kubeconfig: '/of/the/fuzzer',
    environment: {},
    read: () => Promise.resolve(Buffer.from(text)),
  })
  return { server, client: connect(credentials, { version: '0', limits: { body: 64 * 1024 } }) }
}
