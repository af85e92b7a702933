import { Readable } from 'node:stream'
import { isDeepStrictEqual } from 'node:util'
import { JsonRefused, parseBounded } from '../../../src/kubernetes/connection/bounded-json.js'
import { ConnectionError, StreamLine } from '../../../src/kubernetes/connection/client.js'
import { mostMembers } from '../../../src/kubernetes-names.js'
import { LargeReads } from '../../../src/kubernetes/connection/large-reads.js'
import { ReadProgress } from '../../../src/kubernetes/connection/progress.js'
import { takeLines } from '../../../src/kubernetes/connection/watch-lines.js'
import { ApiError } from '../../../src/kubernetes/reads/api-error.js'
import { InvalidObjectError } from '../../../src/kubernetes/reads/decode.js'
import { observeAbsence } from '../../../src/kubernetes/reads/observed-version.js'
import { objectTarget } from '../../../src/kubernetes/reads/requests.js'
import { WatchSession } from '../../../src/objects/kubernetes/watch-session.js'
import { ObjectEvents } from '../../../src/objects/kubernetes/watch-subject.js'
import { StoredObject } from '../../../src/objects/stored-object.js'
import { demand, type Target } from '../target.js'

const reference = { kind: 'Secret', namespace: 'n', name: 'a' } as const
/** Bytes of the longest line. */
const limit = 48 * 1024

/** The first byte of the input says how the network cuts the rest into pieces. */
export const watch: Target<string> = {
  name: 'watch',
  files: [
    'kubernetes/connection/watch-lines.js',
    'kubernetes/connection/bounded-json.js',
    'kubernetes/reads/decode.js',
    'kubernetes/reads/observed-version.js',
    'objects/kubernetes/watch-session.js',
    'objects/kubernetes/watch-subject.js',
    'objects/stored-object.js',
  ],
  longest: 65_536,
  words: [
    '{"type":"ADDED","object":',
    '"type":"MODIFIED"',
    '"DELETED"',
    '"BOOKMARK"',
    '"ERROR"',
    '"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"5"}',
    '"resourceVersion":"9"',
    '"uid":',
    '"annotations":{"k8s.io/initial-events-end":"true"}',
    '"data":{"k":"dg=="}',
    '"code":410',
    '"details":{"retryAfterSeconds":1}',
    '"message":',
    '"deletionTimestamp":"x"',
    '"labels":{}',
    '"kind":"Secret"',
    '"__proto__":',
    'null',
    '{',
    '}',
    '[',
    ']',
    ',',
    '"',
    '\\',
    '\\"',
    '\\u0000',
    '\n',
    '1e400',
  ],
  async read(input) {
    const stored = new StoredObject(reference, { observed: () => undefined, confirmed: () => undefined })
    const events = new ObjectEvents(stored, () => Promise.resolve(observeAbsence('7')))
    const session = new WatchSession({ target: objectTarget(reference), objects: () => [stored] }, undefined, events)
    const body = Readable.from(pieces(input), { objectMode: false })
    const options = {
      limit,
      what: 'GET /x',
      signal: new AbortController().signal,
      largeReads: new LargeReads(1, 4096),
      progress: new ReadProgress(() => 0),
    }
    try {
      await takeLines({ body, broken: () => undefined }, options, async (line) => {
        const text = line.take()
        compareWithJson(text)
        await session.take(new StreamLine([Buffer.from(text)]))
      })
    } catch (error) {
      const isInOrder =
        error instanceof ConnectionError || error instanceof ApiError || error instanceof InvalidObjectError
      if (!isInOrder) throw error
      demand(error.message.length < 2000, 'an error is a short sentence')
      return undefined
    }
    return stored.latest?.state
  },
}

function pieces(input: Buffer): Buffer[] {
  const size = Math.max(1, (input[0] ?? 0) ** 2)
  const rest = input.subarray(1)
  const few = Math.max(size, Math.ceil(rest.length / 64))
  return Array.from({ length: Math.ceil(rest.length / few) }, (_, index) =>
    rest.subarray(index * few, (index + 1) * few),
  )
}

/** What the bounds let pass is what JSON.parse makes of it; they refuse nothing for another reason. */
function compareWithJson(text: string): void {
  let ours: unknown
  try {
    ours = parseBounded(text)
  } catch (error) {
    demand(error instanceof JsonRefused, `not JsonRefused but ${String(error)}`)
    if (error.message === 'is not JSON') demand(!isJson(text), 'JSON that is said to be none')
    return
  }
  // What is within a map of so many members has become their number, and need not be JSON.
  if (text.split(',').length <= mostMembers)
    demand(isDeepStrictEqual(ours, JSON.parse(text)), 'another value than to JSON.parse')
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
