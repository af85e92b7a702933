/** X.509 certificates and private keys as files hold them. Nothing here throws, and nothing answered holds content. */
import { derLength, looksLikeDer, type PemBlock, pemBlocks } from './pem.js'
import { type Certificate, readCertificate, type ReadCertificate } from './read-certificate.js'
import { type KeyEncoding, type PrivateKey, readPrivateKey } from './read-private-key.js'

/** A certificate that parsed, or the fault of its block. */
export type CertificateBlock = { readonly line: number } & ReadCertificate

/** Of one file. Public bundles hold 150; each costs OpenSSL its time. */
const mostBlocks = 1000

/** X509 CERTIFICATE and TRUSTED CERTIFICATE, too, which OpenSSL reads. */
const isCertificate = ({ label }: PemBlock): boolean => label.endsWith('CERTIFICATE')
const marker = Buffer.from('CERTIFICATE-----')

/** A cheap look before the parser starts: most files of a directory hold no certificate. */
function mayHoldCertificates(content: Uint8Array): boolean {
  return Buffer.from(content.buffer, content.byteOffset, content.byteLength).includes(marker)
}

/** All blocks of a file with certificates, in order. */
export function certificateBlocks(content: Uint8Array): CertificateBlock[] {
  if (!mayHoldCertificates(content)) return []
  return pemBlocks(content)
    .filter(isCertificate)
    .map((block, index) =>
      index < mostBlocks
        ? parseCertificate(block)
        : faultyCertificate(block.line, 'holdfast reads 1,000 certificates of a file'),
    )
}

function parseCertificate({ label, line, der, problem, encrypted }: PemBlock): CertificateBlock {
  if (label !== 'CERTIFICATE') return faultyCertificate(line, `its label is not CERTIFICATE alone: Go passes over it`)
  if (encrypted) return faultyCertificate(line, 'it is encrypted')
  if (der === undefined) return faultyCertificate(line, problem ?? 'it cannot be decoded')
  const length = derLength(der) ?? der.byteLength
  if (length > der.byteLength) return faultyCertificate(line, 'it is cut short')
  // OpenSSL does not look at what follows; Go's crypto/x509 refuses it.
  if (length < der.byteLength) return faultyCertificate(line, `it has ${der.byteLength - length} bytes too many`)
  return { line, ...readCertificate(der) }
}

function faultyCertificate(line: number, problem: string): CertificateBlock {
  return { line, problem, dates: undefined }
}

/** The first certificate, as a server presents it, or why there is none: a text that goes after the key's name. */
export function leafCertificate(content: Uint8Array): Certificate | string {
  const unreadable = notPem(content, 'openssl x509 -inform DER')
  if (unreadable !== undefined) return unreadable
  const blocks = pemBlocks(content)
  const first = blocks.find(({ label }) => label === 'CERTIFICATE')
  if (first === undefined) {
    return blocks.length === 0 ? 'holds no PEM block' : `holds no certificate, only ${labelsOf(blocks)}`
  }
  const { certificate, problem, line } = parseCertificate(first)
  return certificate ?? `does not parse: the certificate at line ${line}: ${problem}`
}

/** Why a file is no bundle of certificates: it has none, or one that does not parse; undefined: it is one. */
export function bundleProblem(content: Uint8Array): string | undefined {
  const first = leafCertificate(content)
  if (typeof first === 'string') return first
  const faulty = certificateBlocks(content).find(({ problem }) => problem !== undefined)
  return faulty && `does not parse: the certificate at line ${faulty.line}: ${faulty.problem ?? ''}`
}

/** The first private key, as Go's tls.X509KeyPair chooses it, or why there is none. */
export function privateKey(content: Uint8Array): PrivateKey | string {
  const problem = notPem(content, 'openssl pkey -inform DER')
  if (problem !== undefined) return problem
  const blocks = pemBlocks(content)
  const block = blocks.find(({ label }) => label === 'PRIVATE KEY' || label.endsWith(' PRIVATE KEY'))
  if (block === undefined) {
    return blocks.length === 0 ? 'holds no PEM block' : `holds no private key, only ${labelsOf(blocks)}`
  }
  return parseKey(block)
}

function parseKey({ label, line, der, problem, encrypted }: PemBlock): PrivateKey | string {
  if (encrypted || label === 'ENCRYPTED PRIVATE KEY') {
    return 'is encrypted with a passphrase: decrypt it with openssl pkey'
  }
  if (label === 'OPENSSH PRIVATE KEY') return "is in OpenSSH's own format: convert it with ssh-keygen -p -m PKCS8"
  if (der === undefined) return `does not parse: the ${label} at line ${line}: ${problem ?? 'it cannot be decoded'}`
  const type = keyTypes[label]
  if (type === undefined) return `does not parse: ${label} is not a kind of key that holdfast knows`
  const key = readPrivateKey(der, type)
  return typeof key === 'string' ? `does not parse: the ${label} at line ${line} ${key}` : key
}

const keyTypes: Readonly<Record<string, KeyEncoding>> = {
  'PRIVATE KEY': 'pkcs8',
  'RSA PRIVATE KEY': 'pkcs1',
  'EC PRIVATE KEY': 'sec1',
}

/**
 * The fault of a PEM file: any block that is damaged, any certificate or private key that does not parse; undefined where
 * it has none. An encrypted key passes as it is.
 */
export function pemProblem(content: Uint8Array): string | undefined {
  const problem = notPem(content, 'openssl x509 -inform DER')
  if (problem !== undefined) return problem
  const blocks = pemBlocks(content)
  if (blocks.length === 0) return 'holds no PEM block'
  const costly = blocks.filter((block) => isCertificate(block) || Object.hasOwn(keyTypes, block.label))
  if (costly.length > mostBlocks) return 'holds more than 1,000 certificates and private keys'
  return blocks.map(blockProblem).find((found) => found !== undefined)
}

function blockProblem(block: PemBlock): string | undefined {
  const { label, line, der, problem, encrypted } = block
  const broken = der === undefined ? (problem ?? 'it cannot be decoded') : undefined
  const invalid = broken ?? (isCertificate(block) ? parseCertificate(block).problem : undefined)
  if (invalid !== undefined) return `does not parse: the ${labelsOf([block])} at line ${line}: ${invalid}`
  if (encrypted || !Object.hasOwn(keyTypes, label)) return undefined
  const key = parseKey(block)
  return typeof key === 'string' ? key : undefined
}

/** Why a file is no certificate with its private key, as servers read it from one file; undefined: it is one. */
export function keyPairProblem(content: Uint8Array): string | undefined {
  const certificate = leafCertificate(content)
  if (typeof certificate === 'string') return certificate
  const key = privateKey(content)
  if (typeof key === 'string') return key
  if (!matches(certificate, key)) return 'holds a private key that does not belong to the first certificate'
  return pemProblem(content)
}

/** Does the key belong to the certificate? */
export function matches(certificate: Certificate, key: PrivateKey): boolean {
  return certificate.publicKey === key.publicKey
}

function notPem(content: Uint8Array, conversion: string): string | undefined {
  if (content.byteLength === 0) return 'is empty'
  if (looksLikeDer(content)) return `is DER, not PEM: convert it with ${conversion}`
  // A byte order mark, or spaces from a template, make readers miss the first block.
  const text = Buffer.from(content.buffer, content.byteOffset, content.byteLength)
  if (text[0] === 0xef && text[1] === 0xbb && text[2] === 0xbf) return 'starts with a byte order mark: remove it'
  if (text.includes('-----BEGIN ') && pemBlocks(content).length === 0) {
    return 'has a PEM block that does not start at the start of a line'
  }
  return undefined
}

const harmlessLabels = /^(?:[A-Z0-9]+ )*(?:CERTIFICATE|CERTIFICATE REQUEST|PRIVATE KEY|PUBLIC KEY|PARAMETERS|CRL)$/

function labelsOf(blocks: readonly PemBlock[]): string {
  const labels = blocks.map(({ label }) => (harmlessLabels.test(label) ? label : 'something else'))
  return [...new Set(labels)].join(', ')
}

/** Why text cannot go to TLS as certificates, where the same error would be an OpenSSL code without a place; undefined: it can. */
export function certificateProblem(pem: string): string | undefined {
  const blocks = certificateBlocks(Buffer.from(pem))
  if (blocks.length === 0) return 'holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)'
  const broken = blocks.findIndex(({ problem }) => problem !== undefined)
  if (broken === -1) return undefined
  return `certificate ${broken + 1} of ${blocks.length} cannot be parsed: ${blocks[broken]?.problem}`
}

/** The same of a private key. */
export function privateKeyProblem(pem: string): string | undefined {
  const key = privateKey(Buffer.from(pem))
  return typeof key === 'string' ? key : undefined
}

/** Both must have passed the checks above. */
export function keyMatches(certificatePem: string, keyPem: string): boolean {
  const [leaf, key] = [leafCertificate(Buffer.from(certificatePem)), privateKey(Buffer.from(keyPem))]
  return typeof leaf !== 'string' && typeof key !== 'string' && matches(leaf, key)
}

/** Not-after of the first certificate, which is the leaf that the client presents. */
export function notAfter(certificatePem: string): Date | undefined {
  return certificateBlocks(Buffer.from(certificatePem))[0]?.dates?.notAfter
}
