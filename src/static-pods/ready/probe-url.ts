import { authorityProblem } from '../../x509/authorities.js'
import { codeOf, messageOf } from '../../errors.js'
import { readFile } from 'node:fs/promises'
import { InvalidInput } from '../failure.js'
import { serverFault, presentFiles, readAuthorities, UnfitProbeFile, type ProbeFiles } from './probe-files.js'
import { askInTime, get, refused, tooLate } from './probe-http.js'
import type { Probe, ProbeResult } from './readiness.js'

const noCredential = 'allow this address without credentials, or ask with --kubelet-url or --kubeconfig in its place'

/** By what of the server does not fit. */
const otherServer = {
  authority: "name with --ready-ca the authority that signed the server's certificate",
  name: 'name a host that stands in the certificate; where the rollout brings the right one, ask with --kubelet-url or --ready-exec',
  host: "name a host that the node's resolver knows",
} as const

const noPath = "name a path that the server knows; for one that only the new pod has: --ready-exec 'curl -fsS URL'"

/**
 * GETs a URL; 200 to 299 is ready; 401 and 403 say nothing. `authority`: a PEM file, read at each try, since it may be renewed; undefined: the
 * system's authorities. The probe follows no redirect, and reads no body.
 */
export function urlProbe(url: URL, authority: string | undefined, files: ProbeFiles = presentFiles): Probe {
  return {
    name: `${url.origin}${url.pathname}`,
    ask: (_, caller) =>
      askInTime<ProbeResult>(
        caller,
        async (signal) => {
          const trusted = await readAuthorities(files, authority ?? null)
          const status = await get(url, trusted, { signal }, (response) => {
            response.on('error', () => undefined)
            response.destroy()
            return response.statusCode ?? 0
          })
          if (status >= 200 && status < 300) return { state: 'ready' }
          const message = `HTTP ${status}`
          if (refused.has(status)) return { state: 'cannot-ask', message, advice: noCredential }
          if (status === 404) return { state: 'stranger', message, advice: noPath }
          return { state: 'not-ready', message }
        },
        (error, isLate) => urlFailure(error, isLate, url),
      ),
  }
}

function urlFailure(error: unknown, isLate: boolean, { hostname }: URL): ProbeResult {
  if (isLate) return { state: 'not-ready', message: tooLate }
  const message = codeOf(error) ?? messageOf(error)
  if (error instanceof UnfitProbeFile) return { state: 'cannot-ask', message, advice: error.advice }
  const fault = serverFault(error)
  if (fault === undefined) return { state: 'not-ready', message }
  // The pod's failure all the same: a rollout may have brought this very certificate.
  const where = fault === 'name' ? `: the server's certificate is not for ${hostname}` : ''
  return { state: 'stranger', message: `${message}${where}`, advice: otherServer[fault] }
}

/**
 * Checks a file of authorities before the watch begins: a mistaken flag must not count as a pod that is not ready.
 * @throws InvalidInput
 */
export async function checkAuthority(path: string, flag = '--ready-ca'): Promise<void> {
  const pem = await readFile(path).catch((error: unknown) => {
    throw new InvalidInput(`${flag}: could not read ${path}: ${codeOf(error) ?? messageOf(error)}`)
  })
  const problem = authorityProblem(String(pem))
  if (problem !== undefined) throw new InvalidInput(`${flag}: ${path} ${problem}`)
}
