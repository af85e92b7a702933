import type { Field } from './kubeconfig-field.js'
import { materialPair, type Material } from './material.js'
import { certificateFault } from './pem.js'
import { unsupportedProxy } from './proxy.js'

export interface ClusterSettings {
  /** https or http, with the path under which the API is served, if any. */
  readonly server: URL
  /** The name that the server's certificate must bear, where it is not the host of `server`. */
  readonly serverName: string | undefined
  readonly insecure: boolean
  readonly authority: Material | undefined
  /** From proxy-url; the environment's proxies count only where it is absent. */
  readonly proxy: URL | undefined
  /** What the cluster's `client.authentication.k8s.io/exec` extension gives to an exec plugin. */
  readonly execConfig: unknown
}

/** Throws KubeconfigError with the field's place. `disable-compression` is accepted: none is ever asked for. */
export function readCluster(entry: Field): ClusterSettings {
  const insecureField = entry.get('insecure-skip-tls-verify')
  const insecure = insecureField.flag()
  const authority = materialPair(entry, 'certificate-authority', (text, field) => {
    const fault = certificateFault(text)
    if (fault !== undefined) throw field.fault(fault)
  })
  if (insecure && authority) {
    throw insecureField.fault('contradicts certificate-authority; keep one of the two')
  }
  entry.get('disable-compression').flag()
  return {
    server: serverUrl(entry.get('server')),
    serverName: entry.get('tls-server-name').text(),
    insecure,
    authority,
    proxy: proxyUrl(entry.get('proxy-url')),
    execConfig: execConfig(entry.get('extensions')),
  }
}

function serverUrl(field: Field): URL {
  const url = parseUrl(field, field.requiredText())
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw field.fault('must begin with https:// or http://')
  }
  if (url.username !== '' || url.password !== '') throw field.fault('must not hold a user name or password')
  if (url.search !== '' || url.hash !== '') throw field.fault('must not hold a query or a fragment')
  return url
}

function proxyUrl(field: Field): URL | undefined {
  const text = field.text()
  if (text === undefined) return undefined
  const url = parseUrl(field, text)
  const fault = unsupportedProxy(url)
  if (fault !== undefined) throw field.fault(fault)
  return url
}

function parseUrl(field: Field, text: string): URL {
  // The parser's message would quote the text, and a proxy's URL may hold a password.
  if (!URL.canParse(text)) throw field.fault('not a URL')
  return new URL(text)
}

function execConfig(extensions: Field): unknown {
  const found = extensions.list().find((item) => item.get('name').value === 'client.authentication.k8s.io/exec')
  return found?.get('extension').value
}
