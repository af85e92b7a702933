/** Reads a kubeconfig: a context's cluster, its user, and how to connect by the two. */
import { dirname, resolve } from 'node:path'
import {
  fileMaterial,
  KubeconfigError,
  materialPair,
  type KubeconfigField,
  type KubeconfigFile,
  type Material,
  type NamedEntry,
} from './kubeconfig-file.js'
import { authorityProblem } from '../../x509/authorities.js'
import { certificateProblem, privateKeyProblem } from '../../x509/certificates.js'
import { unsupportedProxy } from '../connection/proxy.js'

/** One context of a kubeconfig: the server's address, our identity, and the default namespace. */
export interface ContextSettings {
  readonly context: string
  readonly namespace: string | undefined
  readonly cluster: ClusterSettings
  readonly user: UserSettings
}

/**
 * Resolves a context over one or more files. The first file to name a current context, or to define a cluster, user
 * or context of a name, wins (kubectl: client-go/tools/clientcmd/loader.go). Throws KubeconfigError.
 */
export function resolveContext(files: readonly KubeconfigFile[], asked: string | undefined): ContextSettings {
  const from = files.map(({ file }) => file).join(':')
  const contexts = files.flatMap((file) => file.contexts)
  const current = files.map((file) => file.currentContext).find((field) => field.present)
  const name = asked ?? current?.text()
  if (name === undefined) {
    throw new KubeconfigError(from, 'current-context', `is not set; ${choice('context', contexts)}`)
  }
  const context = contexts.find((candidate) => candidate.name === name)
  if (!context) {
    const problem = `there is no context "${name}"; ${choice('context', contexts)}`
    throw asked === undefined && current ? current.error(problem) : new KubeconfigError(from, '', problem)
  }
  const clusters = files.flatMap((file) => file.clusters)
  const users = files.flatMap((file) => file.users)
  return {
    context: name,
    namespace: context.entry.get('namespace').text(),
    cluster: readCluster(referenced(context, 'cluster', clusters)),
    // client-go takes a context without a user for an anonymous one.
    user: context.entry.get('user').present ? readUser(referenced(context, 'user', users)) : anonymous,
  }
}

function referenced(context: NamedEntry, key: 'cluster' | 'user', entries: readonly NamedEntry[]) {
  const field = context.entry.get(key)
  const name = field.requiredText()
  const found = entries.find((candidate) => candidate.name === name)
  if (!found) throw field.error(`there is no ${key} "${name}"; ${choice(key, entries)}`)
  return found.entry
}

function choice(kind: string, entries: readonly NamedEntry[]): string {
  if (entries.length === 0) return `the file has no ${kind}s`
  return `${kind}s: ${[...new Set(entries.map(({ name }) => name))].join(', ')}`
}

export interface ClusterSettings {
  /** https or http, with the path under which the API is served, if any. */
  readonly server: URL
  /** The name that the server's certificate must bear, where it is not the host of `server`. */
  readonly serverName: string | undefined
  readonly insecure: boolean
  readonly authority: Material | undefined
  /** From proxy-url; the environment's proxies count only where it is absent. */
  readonly proxy: URL | undefined
  /** The cluster's `client.authentication.k8s.io/exec` extension, for an exec plugin. */
  readonly execConfig: unknown
}

/** Throws KubeconfigError with the field's place. `disable-compression` is accepted: none is ever asked for. */
function readCluster(entry: KubeconfigField): ClusterSettings {
  const insecureField = entry.get('insecure-skip-tls-verify')
  const insecure = insecureField.flag()
  const authority = materialPair(entry, 'certificate-authority', (text, field) => {
    const problem = authorityProblem(text)
    if (problem !== undefined) throw field.error(problem)
  })
  if (insecure && authority) {
    throw insecureField.error('contradicts certificate-authority; keep one of the two')
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

/**
 * Without a scheme it is `http://HOST:PORT`, whatever authority stands beside it, and a query is dropped: so do DefaultServerURL
 * (client-go/rest/url_utils.go), and kubectl. A fragment, which kubectl makes a part of the path, is refused.
 */
function serverUrl(field: KubeconfigField): URL {
  const text = field.requiredText()
  const hasScheme = /^[a-z][-a-z0-9+.]*:\/\//i.test(text)
  const url = parseUrl(field, hasScheme ? text : `http://${text}`)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw field.error('must start with https:// or http://')
  }
  if (url.username !== '' || url.password !== '') throw field.error('must not hold a user name or password')
  if (url.hash !== '') throw field.error('must not hold a fragment')
  if (!hasScheme && url.pathname !== '/') throw field.error('needs http:// or https:// before a path')
  url.search = ''
  return url
}

function proxyUrl(field: KubeconfigField): URL | undefined {
  const text = field.text()
  if (text === undefined) return undefined
  const url = parseUrl(field, text)
  const problem = unsupportedProxy(url)
  if (problem !== undefined) throw field.error(problem)
  return url
}

function parseUrl(field: KubeconfigField, text: string): URL {
  // The parser's message would quote the text, and a proxy's URL may hold a password.
  if (!URL.canParse(text)) throw field.error('not a URL')
  return new URL(text)
}

function execConfig(extensions: KubeconfigField): unknown {
  const found = extensions.list().find((item) => item.get('name').value === 'client.authentication.k8s.io/exec')
  return found?.get('extension').value
}

/** holdfast's identity for the API server. At most one of token, basic and exec; a client certificate may go with each. */
interface UserSettings {
  readonly certificate: { readonly chain: Material; readonly key: Material } | undefined
  readonly token: Material | undefined
  /** The Authorization header's value. */
  readonly basic: string | undefined
  readonly exec: ExecPluginSettings | undefined
  /** Impersonate-… headers. */
  readonly impersonation: Readonly<Record<string, string | readonly string[]>>
}

const anonymous: UserSettings = {
  certificate: undefined,
  token: undefined,
  basic: undefined,
  exec: undefined,
  impersonation: {},
}

/** Throws KubeconfigError with the field's place (rules: client-go/tools/clientcmd/validation.go). */
function readUser(entry: KubeconfigField): UserSettings {
  const provider = entry.get('auth-provider')
  if (provider.present) {
    throw provider.error(
      'auth-provider is not supported (Kubernetes removed it in 1.26); use exec with a credential plugin, or a token or client certificate',
    )
  }
  const token = readToken(entry)
  const basic = readBasic(entry)
  const exec = entry.get('exec').present ? readExecPlugin(entry.get('exec')) : undefined
  const methods = [token && 'token', basic && 'username', exec && 'exec'].filter(Boolean)
  if (methods.length > 1) throw entry.error(`${methods.join(' and ')} are both set; keep one of them`)
  return { certificate: readClientCertificate(entry), token, basic, exec, impersonation: readImpersonation(entry) }
}

function readClientCertificate(entry: KubeconfigField): UserSettings['certificate'] {
  const chain = materialPair(entry, 'client-certificate', refusing(certificateProblem))
  const key = materialPair(entry, 'client-key', refusing(privateKeyProblem))
  if (!chain && !key) return undefined
  if (!key) throw entry.error('client-certificate is set without client-key')
  if (!chain) throw entry.error('client-key is set without client-certificate')
  return { chain, key }
}

function refusing(problemOf: (pem: string) => string | undefined): (text: string, field: KubeconfigField) => void {
  return (text, field) => {
    const problem = problemOf(text)
    if (problem !== undefined) throw field.error(problem)
  }
}

/** A token file goes before a token that stands beside it, as in kubectl. */
function readToken(entry: KubeconfigField): Material | undefined {
  const field = entry.get('token')
  const text = field.text()
  const problem = text === undefined ? undefined : tokenProblem(text)
  if (problem !== undefined) throw field.error(problem)
  const file = fileMaterial(entry.get('tokenFile'))
  return file ?? (text === undefined ? undefined : { type: 'inline', text, field })
}

/** A token goes into a header: no spaces, line breaks or other characters that one cannot hold. */
export function tokenProblem(token: string): string | undefined {
  if (token === '') return 'is empty'
  return /^[\x21-\x7e]+$/.test(token) ? undefined : 'holds characters that no token has (spaces, line breaks, …)'
}

function readBasic(entry: KubeconfigField): string | undefined {
  const username = entry.get('username').text()
  const password = entry.get('password').text()
  if (username === undefined && password === undefined) return undefined
  if (username === undefined) throw entry.get('password').error('is set without username')
  if (username.includes(':')) throw entry.get('username').error('must not hold a colon')
  return `Basic ${Buffer.from(`${username}:${password ?? ''}`).toString('base64')}`
}

/** Left out, the agent would act with more rights than the file grants it. */
function readImpersonation(entry: KubeconfigField): Record<string, string | readonly string[]> {
  const headers: Record<string, string | readonly string[]> = {}
  const user = headerText(entry.get('as'))
  const uid = headerText(entry.get('as-uid'))
  const groups = entry.get('as-groups').list().map(requiredHeaderText)
  const extra = entry.get('as-user-extra')
  if (user !== undefined) headers['impersonate-user'] = user
  if (uid !== undefined) headers['impersonate-uid'] = uid
  if (groups.length > 0) headers['impersonate-group'] = groups
  for (const key of Object.keys(extra.mapping())) {
    const name = encodeURIComponent(key).toLowerCase()
    headers[`impersonate-extra-${name}`] = extra.get(key).list().map(requiredHeaderText)
  }
  if (user === undefined && Object.keys(headers).length > 0) {
    throw entry.get('as').error('is missing, and as-uid, as-groups or as-user-extra are set')
  }
  return headers
}

function requiredHeaderText(field: KubeconfigField): string {
  const text = headerText(field)
  if (text === undefined) throw field.error('is missing')
  return text
}

function headerText(field: KubeconfigField): string | undefined {
  const text = field.text()
  if (text !== undefined && !/^[\x20-\x7e]+$/.test(text)) {
    throw field.error('holds characters that an HTTP header cannot hold')
  }
  return text
}

/** A credential plugin, as a kubeconfig describes it. */
export interface ExecPluginSettings {
  readonly apiVersion: string
  /** PATH leads to a bare name; a command with a slash counts from the kubeconfig's directory. */
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly provideClusterInfo: boolean
  readonly installHint: string | undefined
  readonly field: KubeconfigField
}

const versions = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1']

/** Throws KubeconfigError with the field's place. */
function readExecPlugin(field: KubeconfigField): ExecPluginSettings {
  const version = field.get('apiVersion')
  const apiVersion = version.requiredText()
  if (!versions.includes(apiVersion)) throw version.error(`must be ${versions.join(' or ')}`)
  const command = field.get('command').requiredText()
  checkInteractiveMode(field.get('interactiveMode'), apiVersion)
  const env: [string, string][] = field
    .get('env')
    .list()
    .map((item) => [item.get('name').requiredText(), item.get('value').text() ?? ''])
  return {
    apiVersion,
    command: command.includes('/') ? resolve(dirname(field.file), command) : command,
    args: field
      .get('args')
      .list()
      .map((item) => item.text() ?? ''),
    env: Object.fromEntries(env),
    provideClusterInfo: field.get('provideClusterInfo').flag(),
    installHint: field.get('installHint').text(),
    field,
  }
}

function checkInteractiveMode(field: KubeconfigField, apiVersion: string): void {
  const mode = field.text()
  if (mode === 'Never' || mode === 'IfAvailable') return
  // Only v1beta1 has a default, IfAvailable (client-go/tools/clientcmd/api/v1/defaults.go).
  if (mode === undefined && apiVersion.endsWith('/v1beta1')) return
  if (mode === undefined) throw field.error('is missing; Never or IfAvailable')
  if (mode === 'Always') {
    throw field.error('is Always, and there is no terminal to ask on; only Never and IfAvailable are supported')
  }
  throw field.error('must be Never or IfAvailable')
}
