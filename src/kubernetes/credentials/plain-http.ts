/** Servers without TLS, or without a look at their certificate: a listener on the way could read a credential, and become its user. */
import type { ContextSettings } from './kubeconfig.js'

export interface Shown {
  /** With the credentials that the server may see. */
  readonly settings: ContextSettings
  /** Of the credentials held back, or of a server that anyone may be; undefined: neither. */
  readonly warning: string | undefined
}

/**
 * Over `http://` a server sees no credential, and holdfast reads and obtains none for it. So does client-go, which also sends
 * impersonation there (tools/clientcmd/client_config.go, ClientConfig: "only try to read the auth information if we are secure").
 */
export function shownTo(settings: ContextSettings): Shown {
  const { cluster, user } = settings
  if (cluster.server.protocol === 'https:') {
    return { settings, warning: cluster.insecure ? unverified(cluster.server.origin) : undefined }
  }
  const held = [
    user.token && 'token',
    user.basic && 'user name and password',
    user.exec && 'credential plugin',
    user.certificate && 'client certificate',
  ].filter((name) => typeof name === 'string')
  if (held.length === 0) return { settings, warning: undefined }
  const anonymous = { ...user, token: undefined, basic: undefined, exec: undefined, certificate: undefined }
  return {
    settings: { ...settings, user: anonymous },
    warning:
      `${cluster.server.origin} has no TLS: holdfast does not use the ${held.join(' and ')} of this user there; ` +
      'let server start with https://, or name a user without credentials where this is kubectl proxy',
  }
}

/** Of a kubeconfig with `insecure-skip-tls-verify`. */
export function unverified(origin: string): string {
  return (
    `insecure-skip-tls-verify is set: any program on the way can answer as ${origin}, see the credentials of this user, and choose what is published; ` +
    "remove it, and name the server's authority with certificate-authority"
  )
}
