/**
 * A private key as Go's crypto/tls reads that of a server: RSA, ECDSA or Ed25519. Of its content nothing goes to OpenSSL but a number of
 * the curve's length. Sources: RFC 8017, RFC 5915, RFC 5958; pkcs1.go, pkcs8.go, sec1.go in crypto/x509 of Go 1.26.
 */
import { createECDH, createPrivateKey, createPublicKey } from 'node:crypto'
import { curveOf, numberOf } from './curves.js'
import { around, Der, fieldTag, hex, isNegative, tags, Unreadable } from './der.js'
import { algorithms, edKey, faults, longestInteger, readAlgorithm, rsaName } from './read-certificate.js'

/** A way that a private key is encoded. */
export type KeyEncoding = 'pkcs1' | 'pkcs8' | 'sec1'

export interface PrivateKey {
  /** The same text as that of the certificate that it belongs to. */
  readonly publicKey: string
}

/** The key, or why it is none, after its name; never any of its content. */
export function readPrivateKey(der: Uint8Array, encoding: KeyEncoding): PrivateKey | string {
  try {
    return { publicKey: readers[encoding](der) }
  } catch (error) {
    if (error instanceof Unreadable) return error.message || 'is damaged or of an unknown algorithm'
    throw error
  }
}

const readers: Readonly<Record<KeyEncoding, (der: Uint8Array) => string>> = {
  pkcs1: publicOfRsa,
  sec1: (der) => publicOfScalar(der),
  pkcs8(der) {
    const key = onlyElement(der)
    if (!['00', '01'].includes(hex(key.integer()))) throw new Unreadable()
    const { id, parameters } = readAlgorithm(key.enter())
    const inner = key.body(tags.octets)
    // Attributes, and the public key once more.
    for (const tag of [around(0), fieldTag(1)]) if (key.isNext(tag)) key.any()
    key.end()
    if (id === algorithms.rsa && hex(parameters) === '0500') return publicOfRsa(inner)
    if (id === algorithms.elliptic) return publicOfScalar(inner, parameters)
    if (id === algorithms.ed25519 && parameters.length === 0) return publicOfSeed(new Der(inner).body(tags.octets))
    throw new Unreadable('has another algorithm than RSA, ECDSA or Ed25519: a server in Go cannot use it')
  },
}

/** The elements of the one sequence. */
function onlyElement(der: Uint8Array): Der {
  const input = new Der(der)
  const elements = input.enter()
  input.end()
  return elements
}

/** Two primes. A key of which one number is damaged is none: OpenSSL takes it, and signs what nobody can verify. */
function publicOfRsa(der: Uint8Array): string {
  const key = onlyElement(der)
  const numbers: Uint8Array[] = []
  while (!key.isEmpty && numbers.length < 10) numbers.push(key.integer())
  if (numbers.length !== 9) throw new Unreadable()
  const [, modulus = der, exponent = der] = numbers
  if (numbers.some(({ length }) => length > longestInteger)) throw new Unreadable(`has ${faults.large}`)
  if (numbers.some(isNegative) || exponent.length > 8) throw new Unreadable()
  const [version = 1n, n = 0n, e = 0n, d = 0n, p = 0n, q = 0n, dp = 0n, dq = 0n, inverse = 0n] = numbers.map(numberOf)
  const isSound =
    version === 0n &&
    [p, q].every((prime) => prime > 2n && prime % 2n === 1n) &&
    p * q === n &&
    e > 1n &&
    e < 2n ** 31n &&
    d < n &&
    [dp === d % (p - 1n), dq === d % (q - 1n), (e * dp) % (p - 1n) === 1n, (e * dq) % (q - 1n) === 1n].every(Boolean) &&
    inverse < p &&
    (inverse * q) % p === 1n
  if (!isSound) throw new Unreadable()
  return rsaName(modulus, exponent)
}

/** PKCS #8 names the curve outside, where Go reads it; OpenSSL obeys what is inside: both must say the same. */
function publicOfScalar(der: Uint8Array, named?: Uint8Array): string {
  const key = onlyElement(der)
  if (hex(key.integer()) !== '01') throw new Unreadable()
  const scalar = key.body(tags.octets)
  const inside = key.isNext(around(0)) ? key.body(around(0)) : undefined
  const point = key.optional(around(1))?.bits()
  key.end()
  const parameters = named ?? inside
  const curve = parameters && curveOf(parameters)
  if (curve === undefined || (inside && curveOf(inside) !== curve)) throw new Unreadable(`has ${faults.unnamed}`)
  const digits = hex(scalar).replace(/^(?:00)+/, '')
  if (digits.length > curve.size * 2) throw new Unreadable()
  try {
    const pair = createECDH(curve.name)
    pair.setPrivateKey(digits.padStart(curve.size * 2, '0'), 'hex')
    const forms = [pair.getPublicKey('hex'), pair.getPublicKey('hex', 'compressed')]
    // OpenSSL reads the public key where it stands, and Go makes it of the number.
    if (point && !forms.includes(hex(point))) throw new Unreadable()
    return `${curve.name} ${forms[0]}`
  } catch {
    throw new Unreadable()
  }
}

/** PKCS #8 of Ed25519, without the key. */
const edHead = Buffer.from('302e020100300506032b657004220420', 'hex')

function publicOfSeed(seed: Uint8Array): string {
  if (seed.length !== 32) throw new Unreadable()
  const key = createPrivateKey({ key: Buffer.concat([edHead, seed]), format: 'der', type: 'pkcs8' })
  return edKey(createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32))
}
