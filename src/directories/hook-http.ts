import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http'
import type { Hook } from '../config/hooks.js'
import { Deadline } from '../deadline.js'
import { describeCode } from '../errors.js'
import { trusting } from '../x509/authorities.js'
import { failureCode, HookError } from './hook-error.js'

/** Bytes of an answer's body that the hook drains before it cuts the connection. */
const mostBody = 64 * 1024

/**
 * Sends one request without a body and without a proxy. Any 2xx is success; a redirect is not followed, since it may lead
 * anywhere. The hook drains the answer's body, up to a limit, so that the server is not cut off in the middle of its work.
 */
export async function runHttp({ name, url, method, timeout }: Hook<'http'>, signal: AbortSignal): Promise<void> {
  const deadline = new Deadline(timeout, signal)
  let status
  try {
    const headers = { 'user-agent': 'holdfast' }
    status = await send(url, { method, signal: deadline.signal, agent: false, headers })
  } catch (error) {
    if (deadline.expired) throw new HookError(name, `no answer within ${timeout} ms`)
    // The rest of Node's error names the address and, for TLS, the certificate: its code says enough.
    throw new HookError(name, `no answer: ${describeCode(failureCode(error))}`)
  } finally {
    deadline.dispose()
  }
  if (status >= 200 && status < 300) return
  const redirect = status >= 300 && status < 400 ? ': redirects are not followed' : ''
  throw new HookError(name, `answered with status ${status}${redirect}`)
}

/** Resolves with the status once the answer has ended, or the limit is reached. */
async function send(url: string, options: RequestOptions): Promise<number> {
  if (!url.startsWith('https:')) return sendBy((await import('node:http')).request, url, options)
  const { request } = await import('node:https')
  return trusting(undefined, (trust) => sendBy(request, url, { ...options, ...trust }))
}

function sendBy(
  request: (url: string, options: RequestOptions, took: (answer: IncomingMessage) => void) => ClientRequest,
  url: string,
  options: RequestOptions,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, options, (answer: IncomingMessage) => {
      let read = 0
      const done = () => resolve(answer.statusCode ?? 0)
      answer.on('data', (chunk: Buffer) => {
        read += chunk.byteLength
        if (read <= mostBody) return
        done()
        answer.destroy()
      })
      answer.once('end', done)
      answer.once('error', reject)
    })
    outgoing.once('error', reject)
    outgoing.end()
  })
}
