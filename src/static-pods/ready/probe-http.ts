/* One question of a probe over HTTP or HTTPS, on a connection that closes behind it: no pooled one tells whether a server takes new ones. */
import * as http from 'node:http'
import * as https from 'node:https'
import { trusting, type Trusting } from '../../x509/authorities.js'
import { Deadline } from '../../deadline.js'

/** Milliseconds for one question. */
export const patience = 5_000

export const tooLate = `no answer within ${patience / 1000} s`

/** A server that answers so says nothing of the pod. */
export const refused = new Set([401, 403])

/** `failed`: what the failure of the question means. */
export async function askInTime<T>(
  caller: AbortSignal,
  ask: (signal: AbortSignal) => Promise<T>,
  failed: (error: unknown, isLate: boolean) => T,
): Promise<T> {
  const deadline = new Deadline(patience, caller)
  try {
    return await ask(deadline.signal)
  } catch (error) {
    return failed(error, deadline.expired)
  } finally {
    deadline.dispose()
  }
}

/** `authority`: as `trusting` takes it; a plain http: URL needs none. */
export function get<T>(
  url: URL,
  authority: string | undefined,
  {
    headers,
    ...options
  }: Omit<https.RequestOptions, 'headers'> & { readonly headers?: Readonly<Record<string, string>> },
  take: (response: http.IncomingMessage) => T | Promise<T>,
): Promise<T> {
  const ask = (request: typeof https.request | typeof http.request, trust?: Trusting): Promise<T> =>
    new Promise((resolve, reject) => {
      const sent = request(url, {
        ...options,
        ...trust,
        agent: false,
        headers: { ...headers, connection: 'close' },
      } as https.RequestOptions)
      sent.on('error', reject)
      sent.on('response', (response) => void Promise.resolve(response).then(take).then(resolve, reject))
      sent.end()
    })
  return url.protocol === 'https:' ? trusting(authority, (trust) => ask(https.request, trust)) : ask(http.request)
}
