import { certificateFault, keyMatches, privateKeyFault } from './pem.js'
import { tokenFault } from './kubeconfig-user.js'

/** What a credential plugin answered (client.authentication.k8s.io ExecCredential, .status). */
export interface ExecCredential {
  readonly token: string | undefined
  readonly certificate: { readonly chain: string; readonly key: string } | undefined
  /** Milliseconds since the epoch; undefined: good until the API server says no. */
  readonly expires: number | undefined
}

/**
 * Reads a plugin's standard output. Throws an Error that says what is wrong and quotes nothing: the whole output is
 * a secret, and so are the messages of the parsers that quote it.
 */
export function readExecCredential(output: string, apiVersion: string): ExecCredential {
  const document = mapping(parseJson(output), 'its output')
  if (document['kind'] !== 'ExecCredential') throw new Error('the kind of its output is not ExecCredential')
  if (document['apiVersion'] !== apiVersion) throw new Error(`the apiVersion of its output is not ${apiVersion}`)
  if (document['status'] === undefined || document['status'] === null) throw new Error('its output has no status')
  const status = mapping(document['status'], 'status')
  const token = readToken(text(status, 'token'))
  const certificate = readCertificate(text(status, 'clientCertificateData'), text(status, 'clientKeyData'))
  if (token === undefined && !certificate) {
    throw new Error('its status has neither token nor clientCertificateData and clientKeyData')
  }
  return { token, certificate, expires: readExpiry(text(status, 'expirationTimestamp')) }
}

function parseJson(output: string): unknown {
  try {
    return JSON.parse(output) as unknown
  } catch {
    throw new Error('its output is not JSON')
  }
}

function mapping(value: unknown, name: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Error(`${name} is not a JSON object`)
  }
  return value as Record<string, unknown>
}

function text(status: Record<string, unknown>, key: string): string | undefined {
  const value = status[key] ?? ''
  if (typeof value !== 'string') throw new Error(`status.${key} is not a string`)
  return value === '' ? undefined : value
}

function readToken(token: string | undefined): string | undefined {
  const fault = token === undefined ? undefined : tokenFault(token)
  if (fault !== undefined) throw new Error(`status.token ${fault}`)
  return token
}

function readCertificate(chain: string | undefined, key: string | undefined): ExecCredential['certificate'] {
  if (chain === undefined && key === undefined) return undefined
  if (chain === undefined || key === undefined) {
    throw new Error('its status has one of clientCertificateData and clientKeyData without the other')
  }
  const chainFault = certificateFault(chain)
  if (chainFault !== undefined) throw new Error(`status.clientCertificateData: ${chainFault}`)
  const keyFault = privateKeyFault(key)
  if (keyFault !== undefined) throw new Error(`status.clientKeyData: ${keyFault}`)
  if (!keyMatches(chain, key)) throw new Error('status.clientKeyData does not match clientCertificateData')
  return { chain, key }
}

function readExpiry(timestamp: string | undefined): number | undefined {
  if (timestamp === undefined) return undefined
  const time = Date.parse(timestamp)
  if (Number.isNaN(time)) throw new Error('status.expirationTimestamp is not a time (RFC 3339)')
  return time
}
