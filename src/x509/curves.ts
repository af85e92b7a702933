/** The elliptic curves that Go's crypto/x509 knows. Source: SEC 2; FIPS 186-4, D.1.2. */
import { Der } from './der.js'

interface Curve {
  /** For OpenSSL. */
  readonly name: string
  /** Of a coordinate, in bytes. */
  readonly size: number
  /** y² = x³ - 3x + b, modulo p. */
  readonly p: bigint
  readonly b: bigint
}

const curves: Readonly<Record<string, Curve>> = {
  '2b81040021': {
    name: 'secp224r1',
    size: 28,
    p: 2n ** 224n - 2n ** 96n + 1n,
    b: 0xb4050a850c04b3abf54132565044b0b7d7bfd8ba270b39432355ffb4n,
  },
  '2a8648ce3d030107': {
    name: 'prime256v1',
    size: 32,
    p: 2n ** 256n - 2n ** 224n + 2n ** 192n + 2n ** 96n - 1n,
    b: 0x5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604bn,
  },
  '2b81040022': {
    name: 'secp384r1',
    size: 48,
    p: 2n ** 384n - 2n ** 128n - 2n ** 96n + 2n ** 32n - 1n,
    b: 0xb3312fa7e23ee7e4988e056be3f82d19181d9c6efe8141120314088f5013875ac656398d8a2ed19d2a85c8edd3ec2aefn,
  },
  '2b81040023': {
    name: 'secp521r1',
    size: 66,
    p: 2n ** 521n - 1n,
    b: 0x51953eb9618e1c9a1f929a21a0b68540eea2da725b99b315f3b8b489918ef109e156193951ec7e937b1652c0bd3bb1bf073573df883d2c34f1ef451fd46b503f00n,
  },
}

/** undefined: the parameters name none of them. @throws Unreadable where they begin with no DER */
export function curveOf(parameters: Uint8Array): Curve | undefined {
  const read = new Der(parameters)
  return read.isNext(0x06) ? curves[read.oid()] : undefined
}

/** Is it an uncompressed point of the curve? */
export function isOnCurve({ size, p, b }: Curve, point: Uint8Array): boolean {
  if (point.length !== 1 + 2 * size || point[0] !== 4) return false
  const [x, y] = [numberOf(point.subarray(1, 1 + size)), numberOf(point.subarray(1 + size))]
  return x < p && y < p && (y * y - x * x * x + 3n * x - b) % p === 0n
}

export function numberOf(bytes: Uint8Array): bigint {
  return BigInt(`0x0${Buffer.from(bytes).toString('hex')}`)
}
