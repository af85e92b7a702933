import { hash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import {
  compare,
  describes,
  digestBy,
  encodeRecord,
  isInForce,
  isOfOtherVersion,
  isPinned,
  parseRecord,
  recordBody,
  type StoredRecord,
} from '../../../src/durable/record/record.js'
import { isBody } from '../../../src/durable/record/record-fields.js'
import { readLines } from '../../../src/checked-lines.js'
import { within } from '../../../src/durable/keep/history.js'
import { demand, type Target } from '../target.js'

/** The input is the JSON of each line; a line that begins with `~` stays as it is, and each other gets its right checksum. */
export const records: Target<StoredRecord> = {
  name: 'records',
  files: ['checked-lines.js', 'durable/record/record.js', 'durable/record/record-fields.js'],
  longest: 32_768,
  words: [
    '{"settled":true}',
    '{"hook":"reload"}',
    '{"objects":[]}',
    '{"within":"/a"}',
    '{"attributes":null}',
    '"requires":["hold"],',
    '"hold":{"reason":"a","since":1,"until":null},',
    '"pin":',
    '"history":',
    '"removing":{"since":1},',
    '"movedTo":"/a",',
    '"letGo":',
    '"agent":{"id":"a","publishedAt":1},',
    '"__proto__":',
    '"constructor":',
    'null',
    '8640000000000001',
    '-1',
    '[]',
    '{}',
    '""',
    '\n',
    '~',
  ],
  read(input) {
    const text = input
      .toString()
      .split('\n')
      .map((line) => (line.startsWith('~') ? line.slice(1) : `${hash('sha256', line)} ${line}`))
      .join('\n')
    demand(
      readLines(text).lines.every((line) => line.text.endsWith('\n')),
      'a whole line has its end',
    )
    isOfOtherVersion(text)
    const record = parseRecord(text, 'certs', 5, 'this boot')
    if (record === undefined) return undefined
    demand(isBody(record), 'a record that was read has the form of one')
    demand(!isOfOtherVersion(text), 'a record that is understood is of no newer version')
    const now = 1_700_000_000_000
    isInForce(record.hold, now)
    isPinned(record.pin, now)
    describes(record, undefined)
    digestBy(record, undefined)
    compare(record, undefined)
    if (record.history) within(record.history, record.history.generations, now)
    demandSameAgain(record)
    return record
  },
}

/** The record that is written again in its place says the same. */
function demandSameAgain(record: StoredRecord): void {
  const again = parseRecord(Buffer.from(encodeRecord(recordBody(record, {}))).toString(), 'certs', 5, 'this boot')
  demand(again !== undefined, 'a record that is written again is a record')
  const said = (of: StoredRecord): object => ({ ...of, committed: 0, trusted: 0, otherBoot: 0, requires: 0 })
  const same = isDeepStrictEqual(said(again), { ...said(record), hooks: record.pendingHooks })
  demand(same, 'a record that is written again says the same')
}
