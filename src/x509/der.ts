/** DER as Go's golang.org/x/crypto/cryptobyte reads it: what that refuses throws here. Source: X.690. */

/** What is read is no DER, or not of the asked kind; with the reason, after the certificate or key, where there is a better one. */
export class Unreadable extends Error {}

export const tags = {
  boolean: 0x01,
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  oid: 0x06,
  utf8: 0x0c,
  numeric: 0x12,
  printable: 0x13,
  t61: 0x14,
  ia5: 0x16,
  utcTime: 0x17,
  generalizedTime: 0x18,
  bmp: 0x1e,
  sequence: 0x30,
  set: 0x31,
} as const

/** The tag of a field with this number: [0], [1], … */
export const fieldTag = (number: number): number => 0x80 | number
/** The same, around another element. */
export const around = (number: number): number => 0xa0 | number

/** Elements that stand one after the other. Each method reads the next one. @throws Unreadable */
export class Der {
  #at = 0

  constructor(private readonly bytes: Uint8Array) {}

  get isEmpty(): boolean {
    return this.#at === this.bytes.length
  }

  /** Go passes over what follows; OpenSSL refuses it. */
  end(): void {
    if (!this.isEmpty) throw new Unreadable()
  }

  isNext(tag: number): boolean {
    return this.bytes[this.#at] === tag
  }

  /** Whatever it is: its body, and all of it. */
  any(): { readonly tag: number; readonly body: Uint8Array; readonly whole: Uint8Array } {
    const from = this.#at
    const tag = this.bytes[from]
    const short = this.bytes[from + 1]
    if (tag === undefined || short === undefined || (tag & 0x1f) === 0x1f) throw new Unreadable()
    let start = from + 2
    let length = short
    if (short >= 0x80) {
      start += short & 0x7f
      if (short === 0x80 || short > 0x84 || start > this.bytes.length) throw new Unreadable()
      length = this.bytes.subarray(from + 2, start).reduce((sum, byte) => sum * 256 + byte, 0)
      // The shortest form is the only one.
      if (length < 0x80 || this.bytes[from + 2] === 0) throw new Unreadable()
    }
    this.#at = start + length
    if (this.#at > this.bytes.length) throw new Unreadable()
    return { tag, body: this.bytes.subarray(start, this.#at), whole: this.bytes.subarray(from, this.#at) }
  }

  body(tag: number): Uint8Array {
    if (!this.isNext(tag)) throw new Unreadable()
    return this.any().body
  }

  /** Its own elements. */
  enter(tag: number = tags.sequence): Der {
    return new Der(this.body(tag))
  }

  optional(tag: number): Der | undefined {
    return this.isNext(tag) ? this.enter(tag) : undefined
  }

  integer(tag: number = tags.integer): Uint8Array {
    const body = this.body(tag)
    const [first = 0, second = 0] = body
    const isPadded = body.length > 1 && ((first === 0 && second < 0x80) || (first === 0xff && second >= 0x80))
    if (body.length === 0 || isPadded) throw new Unreadable()
    return body
  }

  /** In hexadecimal digits. */
  oid(): string {
    const body = this.body(tags.oid)
    checkArcs(body, 0x7fffffff)
    return hex(body)
  }

  boolean(): boolean {
    const body = this.body(tags.boolean)
    if (body.length !== 1 || (body[0] !== 0 && body[0] !== 0xff)) throw new Unreadable()
    return body[0] === 0xff
  }

  bits(tag: number = tags.bits): Uint8Array {
    const body = this.body(tag)
    const [padding = 8] = body
    const last = body.length > 1 ? (body.at(-1) ?? 0) : 0
    if (padding > 7 || (body.length === 1 && padding > 0) || (last & ((1 << padding) - 1)) !== 0) throw new Unreadable()
    return body.subarray(1)
  }
}

/** The numbers of an OID: each in its shortest form, the last one whole. */
export function checkArcs(oid: Uint8Array, largest = Infinity): void {
  let arc = -1
  for (const byte of oid) {
    if (arc < 0 && byte === 0x80) throw new Unreadable()
    arc = Math.max(arc, 0) * 128 + (byte & 0x7f)
    if (arc > largest) throw new Unreadable()
    if (byte < 0x80) arc = -1
  }
  if (oid.length === 0 || arc >= 0) throw new Unreadable()
}

export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')
}

export function isNegative(integer: Uint8Array): boolean {
  return (integer[0] ?? 0) >= 0x80
}
