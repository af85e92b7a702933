/*
 * Whom this program trusts as a server: whom Go trusts, in which all its neighbours are written. Any certificate of a bundle is an anchor
 * (crypto/x509, CertPool), those that cannot be read are passed over (AppendCertsFromPEM), and of several with one subject each is tried;
 * OpenSSL, left to itself, ends at the first, as it does after a rotation of `CN=kubernetes` where a key identifier is missing.
 */
import { X509Certificate } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { rootCertificates } from 'node:tls'
import { codeOf } from '../errors.js'
import { pemBlocks } from './pem.js'
import { readCertificate } from './read-certificate.js'

/** Options of a TLS connection of Node. */
export interface Trusting {
  readonly ca: string[]
  /** An intermediate authority is trusted without the root above it. Node before 22.9 does not know it, and 20.19 does. */
  readonly allowPartialTrustChain: true
}

/** OpenSSL's and Node's codes for a certificate that no trusted authority has signed. */
export const authorityCodes: ReadonlySet<string> = new Set([
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'CERT_SIGNATURE_FAILURE',
])

/** OpenSSL's codes where it may have tried the wrong one of several authorities of one name. */
const ofOneAuthority: ReadonlySet<string> = new Set([...authorityCodes, 'CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID'])

/** The most connections of one attempt: a bundle with many names twice has more choices. */
const mostTries = 16

/**
 * Connects to a server that one of these authorities has signed, with one connection for each choice among those of one subject.
 * `authority`: PEM; undefined: the system's.
 */
export async function trusting<T>(authority: string | undefined, connect: (trust: Trusting) => Promise<T>): Promise<T> {
  const choices = choicesOf(certificatesIn(authority ?? systemAuthorities()))
  for (const [index, certificates] of choices.entries()) {
    try {
      return await connect({
        ca: certificates.map((certificate) => certificate.toString()),
        allowPartialTrustChain: true,
      })
    } catch (error) {
      if (index + 1 === choices.length || !ofOneAuthority.has(codeOf(error) ?? '')) throw error
    }
  }
  throw new Error('no choice was tried')
}

/** Why a bundle has no authority to trust, in words that quote nothing; undefined: it has one. */
export function authorityProblem(pem: string): string | undefined {
  if (certificatesIn(pem).length > 0) return undefined
  return 'holds no certificate in PEM form (-----BEGIN CERTIFICATE-----) that can be read'
}

/** The certificates of a bundle that Go can read, each once. */
function certificatesIn(pem: string): X509Certificate[] {
  const found = new Map<string, X509Certificate>()
  for (const { label, der, encrypted } of pemBlocks(Buffer.from(pem))) {
    // What Go cannot read it passes over, and OpenSSL does not see.
    if (label !== 'CERTIFICATE' || der === undefined || encrypted || readCertificate(der).problem !== undefined)
      continue
    try {
      found.set(Buffer.from(der).toString('latin1'), new X509Certificate(der))
    } catch {
      // OpenSSL cannot read this certificate.
    }
  }
  return [...found.values()]
}

/** All certificates; and then, where a subject stands more than once, each choice of one certificate for each subject. */
function choicesOf(certificates: readonly X509Certificate[]): (readonly X509Certificate[])[] {
  const bySubject = new Map<string, X509Certificate[]>()
  for (const one of certificates) bySubject.set(one.subject, [...(bySubject.get(one.subject) ?? []), one])
  let choices: X509Certificate[][] = [[]]
  for (const rivals of bySubject.values()) {
    const more = choices.length * rivals.length <= mostTries ? rivals : rivals.slice(0, 1)
    choices = choices.flatMap((choice) => more.map((one) => [...choice, one]))
  }
  return choices.length === 1 ? [certificates] : [certificates, ...choices]
}

/** crypto/x509, root_linux.go: the first file that is there, and all directories. */
const files = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/pki/tls/cacert.pem',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/cert.pem',
]
const directories = ['/etc/ssl/certs', '/etc/pki/tls/certs']

/** The system's own trust store, as PEM; where it has none, as in a bare container, the authorities that Node brings. */
export function systemAuthorities(env: NodeJS.ProcessEnv = process.env): string {
  const { SSL_CERT_FILE: file, SSL_CERT_DIR: named, NODE_EXTRA_CA_CERTS: extra } = env
  const bundle = (file ? [file] : files).map(textOf).find((text) => text !== undefined)
  // A directory that nobody named holds the bundle's certificates once more, each in a file.
  const below = named || bundle === undefined ? (named?.split(':') ?? directories).flatMap(textsBelow) : []
  const found = [bundle ?? '', ...below].join('\n')
  const own = found.includes('-----BEGIN CERTIFICATE-----') ? found : rootCertificates.join('\n')
  // Node adds it to its own authorities, and to no others.
  return `${own}\n${extra === undefined ? '' : (textOf(extra) ?? '')}`
}

function textsBelow(directory: string): string[] {
  try {
    return readdirSync(directory).flatMap((name) => textOf(join(directory, name)) ?? [])
  } catch {
    return []
  }
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return undefined
  }
}
