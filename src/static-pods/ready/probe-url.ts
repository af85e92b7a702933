import { codeOf, messageOf } from '../../errors.js'
import { readFile } from 'node:fs/promises'
import { InvalidInput } from '../failure.js'
import {
  isCertificate,
  isUnknownAuthority,
  presentFiles,
  readAuthorities,
  UnfitProbeFile,
  type ProbeFiles,
} from './probe-files.js'
import { askInTime, get, refused, tooLate } from './probe-http.js'
import type { Probe, ProbeResult } from './readiness.js'

const noCredential = 'allow this address without credentials, or ask with --kubelet-url or --kubeconfig in its place'

const noAuthority = "name with --ready-ca the authority that signed the server's certificate"

/**
 * GETs a URL; 200 to 299 is ready, 401 and 403 are unknown. `authority`: a PEM file, read at each try, since it may be renewed; undefined: the public
 * authorities that Node knows. The probe follows no redirect, and reads no body.
 */
export function urlProbe(url: URL, authority: string | undefined, files: ProbeFiles = presentFiles): Probe {
  return {
    name: `${url.origin}${url.pathname}`,
    ask: (_, caller) =>
      askInTime(
        caller,
        async (signal) => {
          const ca = await readAuthorities(files, authority ?? null)
          const status = await get(url, { signal, ...(ca && { ca }) }, (response) => {
            response.on('error', () => undefined)
            response.destroy()
            return response.statusCode ?? 0
          })
          if (status >= 200 && status < 300) return { state: 'ready' }
          const message = `HTTP ${status}`
          if (refused.has(status)) return { state: 'unknown', message, refusal: noCredential }
          return { state: 'not-ready', message }
        },
        (error, isLate) => failure(error, isLate, url),
      ),
  }
}

function failure(error: unknown, isLate: boolean, { hostname }: URL): ProbeResult {
  if (isLate) return { state: 'not-ready', message: tooLate, isDown: true }
  const code = codeOf(error)
  const message = code ?? messageOf(error)
  if (error instanceof UnfitProbeFile) return { state: 'unknown', message, refusal: error.refusal }
  // The pod's failure all the same: a rollout may have brought this very certificate.
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return { state: 'not-ready', message: `${code}: the server's certificate is not for ${hostname}` }
  }
  if (isUnknownAuthority(error)) return { state: 'not-ready', message, refusal: noAuthority }
  return { state: 'not-ready', message, isDown: true }
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
