/** Compares the certificates in a directory's files: the facts that people ask for, and whether their keys belong to them. */
import { X509Certificate } from 'node:crypto'
import { certificateBlocks, matches, privateKey } from '../x509/certificates.js'
import type { Certificate } from '../x509/read-certificate.js'
import type { PrivateKey } from '../x509/read-private-key.js'

interface CertificateFacts {
  readonly subject: string
  /** `DNS:web.example`, `IP Address:10.0.0.1`. */
  readonly alternativeNames: readonly string[]
  readonly issuer: string
  /** In hexadecimal digits. */
  readonly serial: string
  /** RFC 3339. */
  readonly notBefore: string
  readonly notAfter: string
  /** Of a file's first certificate: the file beside it with a private key, and whether that belongs to it; null: there is none. */
  readonly key: { readonly path: string; readonly matches: boolean } | null
}

/** null: there is no such certificate. */
export interface CertificateChange {
  readonly from: CertificateFacts | null
  readonly to: CertificateFacts | null
}

/** The changes of each file that has any. Takes the files of each side, by their paths. */
export function compareCertificates(
  from: ReadonlyMap<string, Uint8Array>,
  to: ReadonlyMap<string, Uint8Array>,
): Map<string, CertificateChange[]> {
  const [before, after] = [new Certificates(from), new Certificates(to)]
  const changes = new Map<string, CertificateChange[]>()
  for (const path of new Set([...from.keys(), ...to.keys()])) {
    const found = changesOf(before.of(path), after.of(path))
    if (found.length > 0) changes.set(path, found)
  }
  return changes
}

interface KnownCertificates {
  /** Equal for equal certificates with the same key beside them. */
  readonly identity: string
  readonly facts: CertificateFacts
}

function changesOf(before: readonly KnownCertificates[], after: readonly KnownCertificates[]): CertificateChange[] {
  const gone = without(before, after)
  const come = without(after, before)
  const pairs: CertificateChange[] = []
  // A server's own certificate comes first, and may get another name; of the others, those of one name follow one another.
  const isFirst = gone[0] !== undefined && gone[0] === before[0] && come[0] !== undefined && come[0] === after[0]
  for (const [index, { facts }] of gone.entries()) {
    const isSame = (other: KnownCertificates) =>
      other.facts.subject === facts.subject && !(isFirst && other === after[0])
    const next = isFirst && index === 0 ? 0 : come.findIndex(isSame)
    const [to] = next < 0 ? [] : come.splice(next, 1)
    pairs.push({ from: facts, to: to?.facts ?? null })
  }
  return [...pairs, ...come.map(({ facts }) => ({ from: null, to: facts }))]
}

/** Those that the others lack: a certificate that stands twice needs two counterparts. */
function without(list: readonly KnownCertificates[], others: readonly KnownCertificates[]): KnownCertificates[] {
  const left = others.map(({ identity }) => identity)
  return list.filter(({ identity }) => {
    const found = left.indexOf(identity)
    if (found >= 0) left.splice(found, 1)
    return found < 0
  })
}

/** The certificates of one side. */
class Certificates {
  readonly #keys = new Map<string, PrivateKey | undefined>()

  constructor(private readonly files: ReadonlyMap<string, Uint8Array>) {}

  of(path: string): KnownCertificates[] {
    const content = this.files.get(path)
    if (content === undefined) return []
    const certificates = certificateBlocks(content).flatMap(({ certificate }) => (certificate ? [certificate] : []))
    return certificates.map((certificate, index) => {
      const key = index === 0 ? this.#keyFor(path, certificate) : null
      const shown = new X509Certificate(certificate.der)
      const identity = `${shown.fingerprint512} ${key === null ? '' : `${key.matches} ${key.path}`}`
      return { identity, facts: certificateFacts(shown, key) }
    })
  }

  /** In the file itself, as in HAProxy's; in one of the same name, as tls.key is beside tls.crt; or any that belongs to it. */
  #keyFor(path: string, certificate: Certificate): CertificateFacts['key'] {
    const stem = stemOf(path)
    const near = [path, ...[...this.files.keys()].filter((other) => other !== path && stemOf(other) === stem)]
    const own = near.find((other) => this.#keyIn(other) !== undefined)
    if (own !== undefined) return { path: own, matches: this.#belongs(own, certificate) }
    const other = [...this.files.keys()].find((one) => this.#belongs(one, certificate))
    return other === undefined ? null : { path: other, matches: true }
  }

  #belongs(path: string, certificate: Certificate): boolean {
    const key = this.#keyIn(path)
    return key !== undefined && matches(certificate, key)
  }

  #keyIn(path: string): PrivateKey | undefined {
    if (!this.#keys.has(path)) {
      const content = this.files.get(path)
      const key = content && privateKey(content)
      this.#keys.set(path, typeof key === 'object' ? key : undefined)
    }
    return this.#keys.get(path)
  }
}

function stemOf(path: string): string {
  return path.replace(/\.[^./]*$/, '')
}

function certificateFacts(certificate: X509Certificate, key: CertificateFacts['key']): CertificateFacts {
  const { subject, subjectAltName = '', issuer, serialNumber, validFrom, validTo } = certificate
  return {
    subject: oneLine(subject),
    // Node quotes a name that has a comma in it.
    alternativeNames: (subjectAltName.match(/(?:[^,"]|"(?:[^"\\]|\\.)*")+/g) ?? []).map((name) => name.trim()),
    issuer: oneLine(issuer),
    serial: serialNumber,
    notBefore: new Date(validFrom).toISOString(),
    notAfter: new Date(validTo).toISOString(),
    key,
  }
}

/** Node has a line for each part of a name; undefined, against its types, where a name has no part. */
function oneLine(name: string | undefined): string {
  return (name ?? '').split('\n').join(', ')
}
