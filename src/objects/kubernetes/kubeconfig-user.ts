import { readExec, type ExecSettings } from './kubeconfig-exec.js'
import type { Field } from './kubeconfig-field.js'
import { fileMaterial, materialPair, type Material } from './material.js'
import { certificateFault, privateKeyFault } from './pem.js'

/** Who holdfast is to the API server. At most one of token, basic and exec; a client certificate may go with each. */
export interface UserSettings {
  readonly certificate: { readonly chain: Material; readonly key: Material } | undefined
  readonly token: Material | undefined
  /** The Authorization header's value. */
  readonly basic: string | undefined
  readonly exec: ExecSettings | undefined
  /** Impersonate-… headers. */
  readonly impersonation: Readonly<Record<string, string | readonly string[]>>
}

/** Throws KubeconfigError with the field's place (rules: client-go/tools/clientcmd/validation.go). */
export function readUser(entry: Field): UserSettings {
  const provider = entry.get('auth-provider')
  if (provider.present) {
    throw provider.fault(
      'auth-provider is not supported (Kubernetes removed it in 1.26); use exec with a credential plugin, or a token or client certificate',
    )
  }
  const token = readToken(entry)
  const basic = readBasic(entry)
  const exec = entry.get('exec').present ? readExec(entry.get('exec')) : undefined
  const methods = [token && 'token', basic && 'username', exec && 'exec'].filter(Boolean)
  if (methods.length > 1) throw entry.fault(`${methods.join(' and ')} are both set; keep one of them`)
  return { certificate: readCertificate(entry), token, basic, exec, impersonation: readImpersonation(entry) }
}

function readCertificate(entry: Field): UserSettings['certificate'] {
  const chain = materialPair(entry, 'client-certificate', checked(certificateFault))
  const key = materialPair(entry, 'client-key', checked(privateKeyFault))
  if (!chain && !key) return undefined
  if (!key) throw entry.fault('client-certificate is set without client-key')
  if (!chain) throw entry.fault('client-key is set without client-certificate')
  return { chain, key }
}

function checked(faultOf: (pem: string) => string | undefined): (text: string, field: Field) => void {
  return (text, field) => {
    const fault = faultOf(text)
    if (fault !== undefined) throw field.fault(fault)
  }
}

/** A token file goes before a token that stands beside it, as in kubectl. */
function readToken(entry: Field): Material | undefined {
  const field = entry.get('token')
  const text = field.text()
  const fault = text === undefined ? undefined : tokenFault(text)
  if (fault !== undefined) throw field.fault(fault)
  const file = fileMaterial(entry.get('tokenFile'))
  return file ?? (text === undefined ? undefined : { type: 'inline', text, field })
}

/** A token goes into a header: no spaces, line breaks or other characters that one cannot hold. */
export function tokenFault(token: string): string | undefined {
  if (token === '') return 'is empty'
  return /^[\x21-\x7e]+$/.test(token) ? undefined : 'holds characters that no token has (spaces, line breaks, …)'
}

function readBasic(entry: Field): string | undefined {
  const username = entry.get('username').text()
  const password = entry.get('password').text()
  if (username === undefined && password === undefined) return undefined
  if (username === undefined) throw entry.get('password').fault('is set without username')
  if (username.includes(':')) throw entry.get('username').fault('must not hold a colon')
  return `Basic ${Buffer.from(`${username}:${password ?? ''}`).toString('base64')}`
}

/** Left out, the agent would act with more rights than the file grants it. */
function readImpersonation(entry: Field): Record<string, string | readonly string[]> {
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
    throw entry.get('as').fault('is missing, and as-uid, as-groups or as-user-extra are set')
  }
  return headers
}

function requiredHeaderText(field: Field): string {
  const text = headerText(field)
  if (text === undefined) throw field.fault('is missing')
  return text
}

function headerText(field: Field): string | undefined {
  const text = field.text()
  if (text !== undefined && !/^[\x20-\x7e]+$/.test(text)) {
    throw field.fault('holds characters that an HTTP header cannot hold')
  }
  return text
}
