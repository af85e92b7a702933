import { createHash } from 'node:crypto'
import { systemAuthorities } from '../../x509/authorities.js'

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

/** A way to an API server, and our identity there. */
export interface ClusterAccess {
  /** For people: `kubeconfig /etc/x, context y`. */
  readonly origin: string
  /** The namespace that the context or the service account names. */
  readonly namespace: string | undefined
  /**
   * The access in force now; looks for changed files on the way. Rejects only where there are no credentials at all, such as when there is
   * no kubeconfig yet, or a credential plugin fails: the next call tries again.
   */
  current(): Promise<AccessSnapshot>
  /** The server answered 401 to this snapshot: reads every file again, and runs a credential plugin again. */
  renew(rejected: AccessSnapshot): Promise<AccessSnapshot>
  /** Whether other credentials may be had by now than the rejected ones: looks at files, reads none, and runs nothing. */
  differs(rejected: AccessSnapshot): Promise<boolean>
  /** The files that `differs` looks at now. */
  files(): readonly string[]
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

/** The same credentials, at a server whose certificate an authority of the others may have signed, too, as far as these can be had. */
export function alsoTrusting(access: ClusterAccess, others: readonly ClusterAccess[]): ClusterAccess {
  const own = new WeakMap<AccessSnapshot, AccessSnapshot>()
  const join = async (snapshot: AccessSnapshot): Promise<AccessSnapshot> => {
    const found = await Promise.all(others.map((other) => other.current().catch(() => undefined)))
    const trusted = [snapshot, ...found].flatMap((one) =>
      one && isVerified(one) ? [one.authority ?? systemAuthorities()] : [],
    )
    const joined = isVerified(snapshot)
      ? accessSnapshot({ ...snapshot, authority: [...new Set(trusted)].join('\n') })
      : snapshot
    own.set(joined, snapshot)
    return joined
  }
  const ownOf = (joined: AccessSnapshot): AccessSnapshot => own.get(joined) ?? joined
  return {
    get origin() {
      return access.origin
    },
    get namespace() {
      return access.namespace
    },
    current: async () => join(await access.current()),
    renew: async (rejected) => join(await access.renew(ownOf(rejected))),
    differs: (rejected) => access.differs(ownOf(rejected)),
    files: () => access.files(),
  }
}

function isVerified({ server, insecure }: AccessSnapshot): boolean {
  return server.protocol === 'https:' && !insecure
}
