/* One question of a probe over HTTP or HTTPS, on a connection that closes behind it: no pooled one tells whether a server takes new ones. */
import * as http from 'node:http'
import * as https from 'node:https'
import { Deadline } from '../../deadline.js'
import type { ProbeResult } from './readiness.js'

/** Milliseconds for one question. */
export const patience = 5_000

export const tooLate = `no answer within ${patience / 1000} s`

/** A server that answers so says nothing of the pod. */
export const refused = new Set([401, 403])

/** `failed`: what the failure of the question means. */
export async function askInTime(
  caller: AbortSignal,
  ask: (signal: AbortSignal) => Promise<ProbeResult>,
  failed: (error: unknown, isLate: boolean) => ProbeResult,
): Promise<ProbeResult> {
  const deadline = new Deadline(patience, caller)
  try {
    return await ask(deadline.signal)
  } catch (error) {
    return failed(error, deadline.expired)
  } finally {
    deadline.dispose()
  }
}

export function get<T>(
  url: URL,
  {
    headers,
    ...options
  }: Omit<https.RequestOptions, 'headers'> & { readonly headers?: Readonly<Record<string, string>> },
  take: (response: http.IncomingMessage) => T | Promise<T>,
): Promise<T> {
  const { request } = url.protocol === 'https:' ? https : http
  return new Promise((resolve, reject) => {
    const sent = request(url, { ...options, agent: false, headers: { ...headers, connection: 'close' } })
    sent.on('error', reject)
    sent.on('response', (response) => void Promise.resolve(response).then(take).then(resolve, reject))
    sent.end()
  })
}
