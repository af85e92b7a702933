import { createHash } from 'node:crypto'

/** Everything that one request needs, at one moment. Later ones may differ: credentials rotate. */
export interface AccessSnapshot {
  readonly server: URL
  readonly serverName: string | undefined
  readonly insecure: boolean
  /** PEM; undefined: the system's certificate authorities. */
  readonly authority: string | undefined
  readonly certificate: { readonly chain: string; readonly key: string } | undefined
  readonly proxy: URL | undefined
  /** Authorization and Impersonate-… headers. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  /** A digest of everything that makes a connection: another digest needs a new connection. */
  readonly connectionId: string
}

/** Computes `connectionId`. */
export function accessSnapshot(parts: Omit<AccessSnapshot, 'connectionId'>): AccessSnapshot {
  const { server, serverName, insecure, authority, certificate, proxy } = parts
  const made = [server.href, serverName, insecure, authority, certificate?.chain, certificate?.key, proxy?.href]
  return { ...parts, connectionId: createHash('sha256').update(JSON.stringify(made)).digest('hex') }
}

/** No credential goes to the API server: it takes us for system:anonymous. Behind `http://` (kubectl proxy), the proxy sends its own. */
export function isAnonymous({ server, certificate, headers }: AccessSnapshot): boolean {
  return server.protocol === 'https:' && certificate === undefined && headers['authorization'] === undefined
}

/** Whether a request made with one could fare differently with the other. */
export function sameAccess(a: AccessSnapshot, b: AccessSnapshot): boolean {
  return a.connectionId === b.connectionId && JSON.stringify(a.headers) === JSON.stringify(b.headers)
}
