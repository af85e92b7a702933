/** Messages of D-Bus, as far as calls with texts and their answers need them. Source: D-Bus Specification 0.43, "Message Protocol". */

/** The types of messages that the hook needs. */
export const messageTypes = { call: 1, answer: 2, error: 3, signal: 4 } as const

export interface DBusCall {
  readonly destination: string
  readonly path: string
  readonly interface: string
  readonly member: string
  readonly texts?: readonly string[]
}

export interface DBusMessage {
  readonly type: number
  /** The serial of the call that it answers. */
  readonly answers: number | undefined
  readonly path: string | undefined
  readonly member: string | undefined
  readonly error: string | undefined
  /** The unique name of its sender: the bus vouches for it. */
  readonly sender: string | undefined
  /** Texts and numbers of the body, in order, up to the first value of another type. */
  readonly body: readonly (string | number)[]
}

/** Bytes of the longest message that the reader takes; the specification allows 128 MiB, which systemd's answers do not need. */
const longest = 1024 * 1024
const fixedHeader = 16
const fieldCodes = { path: 1, interface: 2, member: 3, error: 4, answers: 5, destination: 6, sender: 7, signature: 8 }

class MessageWriter {
  readonly #pieces: Buffer[] = []
  length = 0

  align(to: number): this {
    return this.bytes(Buffer.alloc((to - (this.length % to)) % to))
  }

  bytes(piece: Buffer): this {
    this.#pieces.push(piece)
    this.length += piece.length
    return this
  }

  number(value: number): this {
    const piece = Buffer.alloc(4)
    piece.writeUInt32LE(value)
    return this.align(4).bytes(piece)
  }

  text(value: string): this {
    const bytes = Buffer.from(value, 'utf8')
    return this.number(bytes.length).bytes(bytes).bytes(Buffer.alloc(1))
  }

  signature(value: string): this {
    return this.bytes(Buffer.from([value.length, ...Buffer.from(value, 'latin1'), 0]))
  }

  field(code: number, type: 'o' | 's' | 'g', value: string): this {
    this.align(8)
      .bytes(Buffer.from([code]))
      .signature(type)
    return type === 'g' ? this.signature(value) : this.text(value)
  }

  join(): Buffer {
    return Buffer.concat(this.#pieces)
  }
}

/** A call, little-endian. `serial`: from 1, another for each call. */
export function encodeCall(call: DBusCall, serial: number): Buffer {
  const { destination, path, interface: of, member, texts = [] } = call
  const body = new MessageWriter()
  for (const text of texts) body.text(text)
  const fields = new MessageWriter()
    .field(fieldCodes.path, 'o', path)
    .field(fieldCodes.interface, 's', of)
    .field(fieldCodes.member, 's', member)
    .field(fieldCodes.destination, 's', destination)
  if (texts.length > 0) fields.field(fieldCodes.signature, 'g', 's'.repeat(texts.length))
  return new MessageWriter()
    .bytes(Buffer.from(['l'.charCodeAt(0), messageTypes.call, 0, 1]))
    .number(body.length)
    .number(serial)
    .number(fields.length)
    .bytes(fields.join())
    .align(8)
    .bytes(body.join())
    .join()
}

class MessageReader {
  at = 0

  constructor(
    readonly bytes: Buffer,
    readonly little: boolean,
  ) {}

  align(to: number): void {
    this.at += (to - (this.at % to)) % to
  }

  byte(): number {
    return this.bytes.readUInt8(this.at++)
  }

  number(): number {
    this.align(4)
    const value = this.little ? this.bytes.readUInt32LE(this.at) : this.bytes.readUInt32BE(this.at)
    this.at += 4
    return value
  }

  text(length: number): string {
    const value = this.bytes.toString('utf8', this.at, this.at + length)
    this.at += length + 1
    return value
  }

  /** undefined for a type that is not read. */
  value(type: string): string | number | undefined {
    if (type === 's' || type === 'o') return this.text(this.number())
    if (type === 'g') return this.text(this.byte())
    return type === 'u' ? this.number() : undefined
  }
}

/** The length of the message that these bytes begin with; undefined where too few bytes have come to say. Throws for too long a message. */
export function lengthOf(bytes: Buffer): number | undefined {
  if (bytes.length < fixedHeader) return undefined
  const read = (at: number) => (bytes[0] === 'l'.charCodeAt(0) ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at))
  const length = Math.ceil((fixedHeader + read(12)) / 8) * 8 + read(4)
  if (length > longest) throw new RangeError('a message is too long')
  return length
}

/** Throws RangeError for a message that ends too early. */
export function decodeMessage(bytes: Buffer): DBusMessage {
  const reader = new MessageReader(bytes, bytes[0] === 'l'.charCodeAt(0))
  const fields = new Map<number, string | number>()
  reader.at = 12
  const end = fixedHeader + reader.number()
  while (reader.at < end) {
    reader.align(8)
    const code = reader.byte()
    const value = reader.value(reader.text(reader.byte()))
    if (value === undefined) throw new RangeError('a header field has an unknown type')
    fields.set(code, value)
  }
  reader.align(8)
  const body: (string | number)[] = []
  for (const type of stringOrNone(fields.get(fieldCodes.signature)) ?? '') {
    const value = reader.value(type)
    if (value === undefined) break
    body.push(value)
  }
  const answers = fields.get(fieldCodes.answers)
  return {
    type: bytes.readUInt8(1),
    answers: typeof answers === 'number' ? answers : undefined,
    path: stringOrNone(fields.get(fieldCodes.path)),
    member: stringOrNone(fields.get(fieldCodes.member)),
    error: stringOrNone(fields.get(fieldCodes.error)),
    sender: stringOrNone(fields.get(fieldCodes.sender)),
    body,
  }
}

function stringOrNone(value: string | number | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined
}
