import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'

/*
 * A throw-away certificate for the demo: self-signed, for one host name, ECDSA on P-256. Node can read certificates, but not make
 * them; this is the little DER (ITU-T X.690) that RFC 5280 asks for. Do not trust one.
 */

export interface KeyPair {
  /** PEM. */
  readonly certificate: string
  readonly key: string
}

const tags = { integer: 0x02, bits: 0x03, octets: 0x04, text: 0x0c, sequence: 0x30, set: 0x31, utcTime: 0x17 }
const explicit = (number: number) => 0xa0 + number
const dnsName = 0x82

const oids = {
  ecdsaWithSha256: Buffer.from('06082a8648ce3d040302', 'hex'),
  commonName: Buffer.from('0603550403', 'hex'),
  subjectAlternativeName: Buffer.from('0603551d11', 'hex'),
}

/** Makes a key and a certificate for it that is valid from now for so many days. */
export function selfSigned(hostName: string, days: number, now: Date = new Date()): KeyPair {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const algorithm = encode(tags.sequence, oids.ecdsaWithSha256)
  const name = encode(
    tags.sequence,
    encode(tags.set, encode(tags.sequence, oids.commonName, encode(tags.text, Buffer.from(hostName)))),
  )
  const end = new Date(now.getTime() + days * 86_400_000)
  const alternative = encode(tags.sequence, encode(dnsName, Buffer.from(hostName)))
  const extension = encode(tags.sequence, oids.subjectAlternativeName, encode(tags.octets, alternative))
  const toBeSigned = encode(
    tags.sequence,
    encode(explicit(0), encode(tags.integer, Buffer.of(2))),
    encode(tags.integer, serialNumber()),
    algorithm,
    name,
    encode(tags.sequence, utcTime(now), utcTime(end)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    encode(explicit(3), encode(tags.sequence, extension)),
  )
  const signature = sign('sha256', toBeSigned, privateKey)
  const whole = encode(tags.sequence, toBeSigned, algorithm, encode(tags.bits, Buffer.of(0), signature))
  return {
    certificate: pem('CERTIFICATE', whole),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

/** Tag, length, value. */
function encode(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  const head = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.of(tag, ...head), content])
}

/** Positive, and without leading zeros: the first byte is between 0x40 and 0x7f. */
function serialNumber(): Buffer {
  const bytes = randomBytes(8)
  bytes.writeUInt8((bytes.readUInt8(0) & 0x3f) | 0x40, 0)
  return bytes
}

/** YYMMDDHHMMSSZ, which RFC 5280 asks for until 2049. */
function utcTime(date: Date): Buffer {
  const digits = date.toISOString().replaceAll(/[-:T]|\.\d+/g, '')
  return encode(tags.utcTime, Buffer.from(digits.slice(2)))
}

function pem(label: string, der: Buffer): string {
  const lines = der.toString('base64').replaceAll(/.{64}(?=.)/g, '$&\n')
  return `-----BEGIN ${label}-----\n${lines}\n-----END ${label}-----\n`
}
