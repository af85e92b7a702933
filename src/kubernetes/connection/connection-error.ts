import { authorityCodes } from '../../x509/authorities.js'
import { adviceOnShortage } from '../../errors.js'
import { ConnectionError } from './client.js'

/** The request never reached the server's handlers: the client may send it again, with any method. */
export class NotProcessed extends Error {}

/** Says in one sentence why no connection came about to the proxy, which it names by host and port: its URL may hold a password. */
export function proxyError(proxy: URL, error: unknown): ConnectionError {
  const { code = '', message } = error as NodeJS.ErrnoException
  const known = code === 'ECONNREFUSED' ? 'connection refused (ECONNREFUSED)' : explainCode(code, message)
  const advice = 'check proxy-url in the kubeconfig, or HTTPS_PROXY and NO_PROXY in the environment'
  const text = `${proxyName(proxy)}: ${known}; the API server was not asked: ${advice}`
  return new ConnectionError(text, code === 'ETIMEDOUT' ? 'timeout' : 'connection', { cause: error })
}

export function proxyName(proxy: URL): string {
  return `proxy ${proxy.protocol}//${proxy.host}`
}

/** Says in one sentence why no answer came from `server`. Messages name hosts and codes, never headers or bodies. */
export function wrapConnectionError(server: string, error: unknown): ConnectionError {
  if (error instanceof ConnectionError) return error
  const cause = error as NodeJS.ErrnoException
  const code = cause.code ?? ''
  // A server that waits for a TLS handshake resets a connection with HTTP.
  const hint = server.startsWith('http:') && code === 'ECONNRESET' ? `; ${wantsTls}` : ''
  const reason = code === 'ETIMEDOUT' ? 'timeout' : 'connection'
  return new ConnectionError(`${server}: ${explainCode(code, cause.message)}${hint}`, reason, { cause: error })
}

export const wantsTls = 'does the server want https://?'

const explanations: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused (ECONNREFUSED); is the API server running, and is this its port?',
  ECONNRESET: 'the connection was reset (ECONNRESET)',
  EPIPE: 'the connection was closed (EPIPE)',
  ETIMEDOUT: 'no answer on the network (ETIMEDOUT)',
  EHOSTUNREACH: 'no route to the host (EHOSTUNREACH)',
  ENETUNREACH: 'no route to the network (ENETUNREACH)',
  ENOTFOUND: 'could not resolve the host name (ENOTFOUND)',
  EAI_AGAIN: 'the name server does not answer (EAI_AGAIN)',
  ERR_STREAM_PREMATURE_CLOSE: 'the stream was cut off',
  ERR_HTTP2_STREAM_CANCEL: 'the stream was cut off',
  ERR_SSL_WRONG_VERSION_NUMBER: 'the server does not speak TLS on this port',
  EPROTO: 'the TLS handshake failed (EPROTO)',
}

const cuts = ['ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE', 'ERR_HTTP2_STREAM_CANCEL']

/** An open connection ended: this says nothing of why the next one may not come about. */
export function wasCut({ cause }: ConnectionError): boolean {
  const { code } = (cause ?? {}) as NodeJS.ErrnoException
  return code === undefined || cuts.includes(code)
}

function explainCode(code: string, message: string): string {
  const known = explanations[code]
  if (known !== undefined) return known
  if (authorityCodes.has(code)) {
    return `the server's certificate is not signed by the authority that the kubeconfig names, or, without one, by one that this system trusts (${code})`
  }
  if (/^ERR_SSL_.*_ALERT_.*(CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED)/.test(code)) {
    return `the server refuses the client certificate, or wants one that the kubeconfig does not have (${code})`
  }
  // OpenSSL's own messages hold addresses and line numbers.
  if (code.startsWith('ERR_SSL_')) return `TLS failed (${code})`
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID') {
    return `the server's certificate is not valid now, or this machine's clock is wrong (${code})`
  }
  const shortage = adviceOnShortage(code)
  const said = code === '' || message.includes(code) ? message : `${message} (${code})`
  return shortage === undefined ? said : `${said}; ${shortage}`
}
