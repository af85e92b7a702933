import { codeOf, messageOf } from '../../errors.js'
import { readFile } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { Deadline } from '../../deadline.js'
import { InvalidInput } from '../failure.js'
import {
  isCertificate,
  isUnknownAuthority,
  presentFiles,
  readAuthorities,
  UnfitProbeFile,
  type ProbeFiles,
} from './probe-files.js'
import type { Probe, ProbeResult } from './readiness.js'

/** Milliseconds. */
const patience = 5_000

/** The monitor may not ask: that says nothing of the pod. */
const refusals = new Set([401, 403])

const noCredential = 'allow this address without credentials, or ask with --kubelet-url or --kubeconfig in its place'

const noAuthority = "name with --ready-ca the authority that signed the server's certificate"

/**
 * GETs a URL; 200 to 299 is ready, 401 and 403 are unknown. `authority`: a PEM file, read at each try, since it may be renewed; undefined: the public
 * authorities that Node knows. The probe follows no redirect, and reads no body.
 */
export function urlProbe(url: URL, authority: string | undefined, files: ProbeFiles = presentFiles): Probe {
  return {
    name: `${url.origin}${url.pathname}`,
    async ask(_, signal): Promise<ProbeResult> {
      let ca: Buffer[] | undefined
      try {
        ca = await readAuthorities(files, authority ?? null)
      } catch (error) {
        return {
          state: 'unknown',
          message: messageOf(error),
          ...(error instanceof UnfitProbeFile && { refusal: error.refusal }),
        }
      }
      const deadline = new Deadline(patience, signal)
      try {
        const status = await statusOf(url, ca, deadline.signal)
        if (status >= 200 && status < 300) return { state: 'ready' }
        const message = `HTTP ${status}`
        return refusals.has(status)
          ? { state: 'unknown', message, refusal: noCredential }
          : { state: 'not-ready', message }
      } catch (error) {
        if (deadline.expired) {
          return { state: 'not-ready', message: `no answer within ${patience / 1000} s`, isDown: true }
        }
        const code = codeOf(error)
        // The pod's failure all the same: a rollout may have brought this very certificate.
        if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
          return { state: 'not-ready', message: `${code}: the server's certificate is not for ${url.hostname}` }
        }
        const message = code ?? messageOf(error)
        if (isUnknownAuthority(error)) return { state: 'not-ready', message, refusal: noAuthority }
        return { state: 'not-ready', message, isDown: true }
      } finally {
        deadline.dispose()
      }
    },
  }
}

/**
 * Checks a file of authorities before the watch begins: a mistaken flag must not count as a pod that is not ready.
 * @throws InvalidInput
 */
export async function checkAuthority(path: string, flag = '--ready-ca'): Promise<void> {
  const pem = await readFile(path).catch((error: unknown) => {
    throw new InvalidInput(`${flag}: could not read ${path}: ${codeOf(error) ?? messageOf(error)}`)
  })
  if (!isCertificate(pem)) throw new InvalidInput(`${flag}: ${path} holds no certificate in PEM`)
}

function statusOf(url: URL, ca: Buffer[] | undefined, signal: AbortSignal): Promise<number> {
  return new Promise((resolve, reject) => {
    const options = { method: 'GET', signal, agent: false, headers: { connection: 'close' } } as const
    const sent =
      url.protocol === 'https:' ? httpsRequest(url, { ...options, ...(ca && { ca }) }) : httpRequest(url, options)
    sent.on('error', reject)
    sent.on('response', (response) => {
      response.on('error', () => undefined)
      response.destroy()
      resolve(response.statusCode ?? 0)
    })
    sent.end()
  })
}
