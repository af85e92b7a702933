import {
  decodeMessage,
  encodeCall,
  lengthOf,
  messageTypes,
  type DBusMessage,
} from '../../../src/directories/dbus-message.js'
import { demand, type Target } from '../target.js'

export const dbus: Target<DBusMessage> = {
  name: 'dbus',
  files: ['directories/dbus-message.js'],
  longest: 4096,
  words: [
    'l',
    'B',
    '\x01',
    '\x02',
    '\0\0\0\0',
    '\x01\0\0\0',
    '\x01\x01o\0',
    '\x02\x01s\0',
    '\x03\x01s\0',
    '\x04\x01s\0',
    '\x05\x01u\0',
    '\x07\x01s\0',
    '\x08\x01g\0',
    'su',
    'ss',
    'org.freedesktop.DBus',
    '/org/freedesktop/DBus',
  ],
  read(input) {
    let message: DBusMessage
    try {
      const length = lengthOf(input)
      if (length === undefined || length > input.length) return undefined
      demand(length >= 16, `a message of ${length} bytes`)
      message = decodeMessage(input.subarray(0, length))
    } catch (error) {
      if (error instanceof RangeError) return undefined
      throw error
    }
    const texts = message.body.filter((part) => typeof part === 'string')
    const { member, path } = message
    if (member !== undefined && path !== undefined) {
      const again = decodeMessage(
        encodeCall({ destination: 'a.b', path, interface: 'a.b', member, texts: texts.slice(0, 255) }, 1),
      )
      demand(
        again.type === messageTypes.call && again.path === path && again.member === member,
        'a call reads as it was written',
      )
      demand(String(again.body) === String(texts.slice(0, 255)), 'texts read as they were written')
    }
    return message
  },
  go: {
    as: 'dbus',
    contradiction: (input, ours, { error, value }) => {
      if (error !== undefined)
        return ours !== undefined && /EOF/.test(error) ? 'holdfast takes a message that ends too early' : undefined
      const theirs = value as Readonly<Record<string, unknown>> & { body: readonly unknown[] | null; signature: string }
      // Other types than texts and numbers stand in no answer that the hook reads, and half a message has not come yet.
      if (ours === undefined)
        return /^[sou]*$/.test(theirs.signature) && !hasOtherFields(input)
          ? 'Go takes it, and holdfast does not'
          : undefined
      if (input.includes(Buffer.from('\ufffd')) || !isText(input)) return undefined
      const fields = ['type', 'answers', 'path', 'member', 'error', 'sender'] as const
      const wrong = fields.find((field) => (ours[field] ?? null) !== theirs[field])
      if (wrong !== undefined)
        return `${wrong} ${JSON.stringify(ours[wrong])}, and to Go ${JSON.stringify(theirs[wrong])}`
      const body = (theirs.body ?? []).slice(0, ours.body.length)
      return JSON.stringify(ours.body) === JSON.stringify(body)
        ? undefined
        : `body ${JSON.stringify(ours.body)}, and to Go ${JSON.stringify(body)}`
    },
  },
}

/** Every byte is ASCII: JSON brings the texts of a message unchanged. */
function isText(input: Buffer): boolean {
  return input.every((byte) => byte < 0x80)
}

/** Header fields of types that no field of the specification has. */
function hasOtherFields(input: Buffer): boolean {
  return /\x01[^sogu]\0/.test(input.toString('latin1'))
}
