/**
 * A certificate as Go's crypto/x509 reads it, since kubelet, kube-apiserver, etcd and containerd do: what Go refuses is refused. Each author
 * of a ConfigMap chooses this content, and OpenSSL would take the time that a key asks for; nothing of it goes to OpenSSL here.
 * Source: crypto/x509/parser.go of Go 1.26.
 */
import { isAscii, isUtf8 } from 'node:buffer'
import { curveOf, isOnCurve } from './curves.js'
import { around, Der, fieldTag, hex, isNegative, tags, Unreadable } from './der.js'
import { checkExtensions } from './read-extensions.js'

interface ValidityPeriod {
  readonly notBefore: Date
  readonly notAfter: Date
}

export interface Certificate {
  readonly der: Uint8Array
  /** The same text as the private key's that belongs to it; undefined for a kind of which Go serves none: Ed448, X25519, X448, RSA-PSS. */
  readonly publicKey: string | undefined
}

/** Each number of an RSA key is bounded: 16,384 bits, with the zero before its sign bit. */
export const longestInteger = 16_384 / 8 + 1

export const algorithms = {
  rsa: '2a864886f70d010101',
  elliptic: '2a8648ce3d0201',
  ed25519: '2b6570',
  x25519: '2b656e',
} as const
/** RSA-PSS, X448, Ed448: Go reads none of their keys, and nothing else depends on them. */
const opaque = new Set(['2a864886f70d01010a', '2b656f', '2b6571'])

export const faults = {
  unknown: 'another algorithm than RSA, EC, Ed25519, Ed448, X25519 or X448',
  unnamed: 'an elliptic curve that is not named, or none that Go knows: P-224, P-256, P-384, P-521',
  large: 'an RSA key with a number of more than 16,384 bits',
}

/** A certificate, or why it is none to Go: words that quote nothing of it, after a colon; its dates, as far as it has any. */
export type ReadCertificate = { readonly dates: ValidityPeriod | undefined } & (
  | { readonly certificate: Certificate; readonly problem?: undefined }
  | { readonly problem: string; readonly certificate?: undefined }
)

export function readCertificate(der: Uint8Array): ReadCertificate {
  let dates: ValidityPeriod | undefined
  try {
    const publicKey = parse(der, (found) => (dates = found))
    return { certificate: { der, publicKey }, dates }
  } catch (error) {
    if (error instanceof Unreadable) return { problem: error.message || 'it is not a certificate', dates }
    throw error
  }
}

/** Runs what reads a part, and names the part where it can say nothing better. */
function part<Value>(name: string, read: () => Value): Value {
  try {
    return read()
  } catch (error) {
    throw error instanceof Unreadable && error.message === '' ? new Unreadable(`its ${name} is malformed`) : error
  }
}

/** Its public key. */
function parse(der: Uint8Array, valid: (dates: ValidityPeriod) => void): string | undefined {
  const input = new Der(der)
  const outer = input.enter()
  if (!input.isEmpty) throw new Unreadable('it has bytes too many')
  const signed = outer.enter()
  part('version', () => checkVersion(signed.optional(around(0))))
  const serial = part('serial number', () => signed.integer())
  const algorithm = part('signature algorithm', () => signed.body(tags.sequence))
  if (hex(algorithm) !== hex(part('signature algorithm', () => outer.body(tags.sequence))))
    throw new Unreadable('the signature algorithms inside and outside of what is signed differ: Go refuses it')
  part('signature algorithm', () => readAlgorithm(new Der(algorithm)))
  part('issuer', () => checkName(signed.enter()))
  const validity = part('validity', () => signed.enter())
  part('validity', () => valid({ notBefore: readTime(validity), notAfter: readTime(validity) }))
  if (isNegative(serial)) throw new Unreadable('its serial number is negative: Go refuses it')
  part('subject', () => checkName(signed.enter()))
  const publicKey = part('public key', () => publicKeyOf(signed.enter()))
  for (const tag of [fieldTag(1), fieldTag(2)])
    if (signed.isNext(tag)) part('unique identifier', () => signed.bits(tag))
  part('list of extensions', () => checkExtensions(signed.optional(around(3))))
  part('signature', () => outer.bits())
  for (const rest of [signed, validity, outer]) rest.end()
  return publicKey
}

/** 1 to 3, written as 0 to 2. */
function checkVersion(version: Der | undefined): void {
  if (version && !['00', '01', '02'].includes(hex(version.integer()))) throw new Unreadable()
  version?.end()
}

export function readAlgorithm(algorithm: Der): { readonly id: string; readonly parameters: Uint8Array } {
  const id = algorithm.oid()
  const parameters = algorithm.isEmpty ? new Uint8Array() : algorithm.any().whole
  algorithm.end()
  return { id, parameters }
}

/** What a string of a type may hold. */
const strings: Readonly<Record<number, (text: Buffer) => boolean>> = {
  [tags.t61]: () => true,
  [tags.printable]: (text) => /^[A-Za-z0-9'()+,\-./ :=?*&]*$/.test(text.toString('latin1')),
  [tags.utf8]: isUtf8,
  [tags.bmp]: (text) => text.length % 2 === 0 && !hasNoncharacter(text),
  [tags.ia5]: isAscii,
  [tags.numeric]: (text) => /^[0-9 ]*$/.test(text.toString('latin1')),
}

function hasNoncharacter(utf16: Buffer): boolean {
  const points = Array.from({ length: utf16.length / 2 }, (_, index) => utf16.readUInt16BE(index * 2))
  return points.some((point) => point >= 0xfffe || (point >= 0xfdd0 && point <= 0xfdef) || (point & 0xf800) === 0xd800)
}

function checkName(name: Der): void {
  while (!name.isEmpty) {
    const set = name.enter(tags.set)
    while (!set.isEmpty) {
      const attribute = set.enter()
      attribute.oid()
      const { tag, body } = attribute.any()
      attribute.end()
      if (strings[tag]?.(Buffer.from(body.buffer, body.byteOffset, body.byteLength)) !== true) throw new Unreadable()
    }
  }
}

/** In UTC, as RFC 5280 asks; Go takes other zones. */
function readTime(validity: Der): Date {
  const { tag, body } = validity.any()
  const text = Buffer.from(body).toString('latin1')
  const isShort = tag === tags.utcTime
  if (!isShort && tag !== tags.generalizedTime) throw new Unreadable()
  // Years of two digits are those from 1950 to 2049.
  const long = isShort ? `${text < '5' ? '20' : '19'}${text}` : text
  const [, year, month, day, hour, minute, second = '00'] = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)?Z$/.exec(long) ?? []
  const iso = `${year}-${month}-${day}T${hour}:${minute}:${second}.000Z`
  const time = new Date(iso)
  if ((!isShort && text.length !== 15) || Number.isNaN(time.valueOf()) || time.toISOString() !== iso)
    throw new Unreadable()
  return time
}

function publicKeyOf(info: Der): string | undefined {
  const { id, parameters } = readAlgorithm(info.enter())
  const key = info.bits()
  info.end()
  switch (id) {
    case algorithms.rsa:
      if (hex(parameters) !== '0500') throw new Unreadable('its RSA key has no NULL parameters: Go refuses it')
      return rsaKey(new Der(key).enter())
    case algorithms.elliptic:
      return pointOf(parameters, key)
    case algorithms.ed25519:
    case algorithms.x25519:
      if (parameters.length > 0 || key.length !== 32) throw new Unreadable()
      return id === algorithms.ed25519 ? edKey(key) : undefined
    default:
      if (!opaque.has(id)) throw new Unreadable(`its key has ${faults.unknown}`)
      return undefined
  }
}

function rsaKey(numbers: Der): string {
  const [modulus, exponent] = [numbers.integer(), numbers.integer()]
  if (Math.max(modulus.length, exponent.length) > longestInteger) throw new Unreadable(`its key has ${faults.large}`)
  if (exponent.length > 8 || [modulus, exponent].some((one) => isNegative(one) || hex(one) === '00'))
    throw new Unreadable()
  return rsaName(modulus, exponent)
}

export const rsaName = (modulus: Uint8Array, exponent: Uint8Array): string => `RSA ${hex(modulus)} ${hex(exponent)}`
export const edKey = (key: Uint8Array): string => `Ed25519 ${hex(key)}`

function pointOf(parameters: Uint8Array, key: Uint8Array): string {
  const curve = curveOf(parameters)
  if (curve === undefined) throw new Unreadable(`its key has ${faults.unnamed}`)
  if (key[0] === 2 || key[0] === 3)
    throw new Unreadable('its key is a compressed point of an elliptic curve: Go refuses it')
  if (!isOnCurve(curve, key)) throw new Unreadable('its key is no point of its elliptic curve')
  return `${curve.name} ${hex(key)}`
}
