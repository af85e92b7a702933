/** States that a publication leaves that was aborted before its exchange, and states that only look like it. */
import { committed, parent, record, type Row, target, within } from './judge-rows.js'
import type { StoredRecord } from '../../src/durable/record/record.js'

const other = { inode: '5', birth: '50' }

/** A publication that was stopped before its exchange: the old content is there. */
function aborted(
  sequence: number,
  before: string | null,
  after: string,
  marks: Partial<StoredRecord> = {},
): StoredRecord {
  const place = { within, parent, target: other, ...(before !== null && { replaced: target }) }
  return record(sequence, before, after, { place, ...marks })
}

export const abortedRows: readonly Row[] = [
  {
    what: 'aborted before the exchange: its record and staging go',
    target: 'a',
    valid: [aborted(2, 'a', 'b'), record(1, null, 'a', committed)],
    staging: true,
    now: [0, 2],
    later: [],
    expected: { current: 1, recorded: true, nextSequence: 3 },
  },
  {
    what: 'aborted, and what is there is itself in doubt',
    target: 'a',
    valid: [aborted(2, 'a', 'b'), record(1, null, 'a')],
    staging: true,
    now: [],
    later: [0, 2],
    expected: { current: 1 },
  },
  {
    what: 'aborted where what was published before had been taken away: only the newest record goes',
    target: null,
    valid: [record(2, null, 'b'), record(1, null, 'a', committed)],
    staging: true,
    now: [0, 2],
    later: [1],
    expected: { exists: false },
  },
  {
    what: 'the first publication aborted: the record goes, and nothing was ever ours',
    target: null,
    valid: [record(1, null, 'a')],
    staging: true,
    now: [0, 1],
    later: [],
    expected: { exists: false, recorded: false, nextSequence: 2 },
  },
  {
    what: 'the content before came back after the commit: drift',
    target: 'a',
    valid: [record(2, 'a', 'b', committed)],
    identity: other,
    staging: true,
    now: [],
    later: [0, 2],
    expected: { recorded: true, nextSequence: 3 },
  },
  {
    what: 'the same beside the record of that content',
    target: 'a',
    valid: [
      record(2, 'a', 'b', committed),
      record(1, null, 'a', { ...committed, place: { within, parent, target: other } }),
    ],
    identity: other,
    staging: true,
    now: [],
    later: [0, 1, 2],
    expected: { recorded: true, nextSequence: 3 },
  },
  {
    what: 'the first publication was taken away after its commit',
    target: null,
    valid: [record(1, null, 'a', committed)],
    staging: true,
    now: [],
    later: [0, 1],
    expected: { exists: false, recorded: true, nextSequence: 2 },
  },
  {
    what: 'aborted twice: both records go',
    target: 'a',
    valid: [aborted(3, 'a', 'c'), aborted(2, 'a', 'b'), record(1, null, 'a', committed)],
    staging: true,
    now: [0, 2, 3],
    later: [],
    expected: { current: 1, trusted: true, nextSequence: 4 },
  },
  {
    what: "aborted over somebody else's directory: what that found is not ours by it",
    target: 'x',
    valid: [aborted(1, 'x', 'a')],
    staging: true,
    now: [0, 1],
    later: [],
    expected: { recorded: false },
  },
]
