/** The states that a predecessor can leave a target in, each with its remedy. */
import { type Judgement } from '../../src/durable/record/judge.js'
import type { Identity } from '../../src/durable/path/place.js'
import { namesFor } from '../../src/durable/path/names.js'
import type { StoredRecord } from '../../src/durable/record/record.js'

export const names = namesFor('certs')
export const staged = names.staging('0123456789abcdef')
export const within = '/etc/certs'
export const parent = { inode: '1', birth: '10' }
export const target = { inode: '2', birth: '20' }

export function record(
  sequence: number,
  before: string | null,
  after: string,
  marks: Partial<StoredRecord> = {},
): StoredRecord {
  return {
    name: 'certs',
    kind: 'exchange',
    boot: 'b',
    owned: false,
    publishedAt: 0,
    objects: [],
    hooks: [],
    entries: [],
    pendingHooks: [],
    committed: false,
    trusted: false,
    otherBoot: false,
    unknown: {},
    place: { within, parent, target },
    attributes: null,
    sequence,
    before,
    after,
    ...marks,
  }
}

export const committed = { committed: true, trusted: true }
const laterBoot = { trusted: true }

export interface Row {
  readonly what: string
  /** Digest of the target; null: there is none; 'broken': there is one, in no form that can be read. */
  readonly target: string | null
  /** Newest first. */
  readonly valid?: readonly StoredRecord[]
  readonly torn?: readonly number[]
  readonly taken?: readonly number[]
  readonly staging?: boolean
  readonly shared?: boolean
  /** Of the target, where it differs from the one in the records. */
  readonly identity?: Identity
  /** The path in the file system, where it is another one. */
  readonly at?: string
  readonly lasting?: boolean
  /** Sequences of records; 0 is the staging. */
  readonly now: readonly number[]
  readonly later: readonly number[]
  readonly expected: Partial<Pick<Judgement, 'exists' | 'recorded' | 'nextSequence' | 'moved'>> & {
    readonly trusted?: boolean
    readonly current?: number
  }
}

export const rows: readonly Row[] = [
  {
    what: 'nothing at all',
    target: null,
    now: [],
    later: [],
    expected: { exists: false, recorded: false, nextSequence: 1 },
  },
  {
    what: 'no record: there was no exchange, staging is left over',
    target: null,
    staging: true,
    now: [0],
    later: [],
    expected: { recorded: false },
  },
  {
    what: "somebody else's directory",
    target: 'x',
    staging: true,
    now: [0],
    later: [],
    expected: { exists: true, recorded: false },
  },
  {
    what: 'published and committed: all else is left over',
    target: 'b',
    valid: [record(2, 'a', 'b', committed), record(1, null, 'a', committed)],
    staging: true,
    now: [0, 1],
    later: [],
    expected: { current: 2, recorded: true, nextSequence: 3 },
  },
  {
    what: 'published under another boot: durable without the mark',
    target: 'b',
    valid: [record(2, 'a', 'b', laterBoot), record(1, null, 'a', committed)],
    staging: true,
    now: [0, 1],
    later: [],
    expected: { current: 2 },
  },
  {
    what: 'visible, not known to be durable: nothing goes before the next commit',
    target: 'b',
    valid: [record(2, 'a', 'b'), record(1, null, 'a', committed)],
    staging: true,
    now: [],
    later: [0, 1],
    expected: { current: 2, recorded: true },
  },
  {
    what: 'aborted after a removal that was interrupted: what that has renamed may come back',
    target: null,
    valid: [record(2, null, 'b'), record(1, 'a', 'a', { ...committed, removing: { since: 0 } })],
    staging: true,
    now: [],
    later: [0, 1, 2],
    expected: { exists: false },
  },
  {
    what: 'drift: nothing goes',
    target: 'x',
    valid: [record(1, null, 'a', committed)],
    staging: true,
    now: [],
    later: [0, 1],
    expected: { recorded: true, nextSequence: 2 },
  },
  {
    what: 'the target is gone: nothing goes',
    target: null,
    valid: [record(1, 'x', 'a', committed)],
    staging: true,
    now: [],
    later: [0, 1],
    expected: { exists: false, recorded: true },
  },
  {
    what: 'a broken form is no missing target',
    target: 'broken',
    valid: [record(1, null, 'a')],
    staging: true,
    now: [],
    later: [0, 1],
    expected: { exists: true },
  },
  {
    what: 'torn records go with the rest, and count for the next sequence',
    target: 'a',
    valid: [record(1, null, 'a', committed)],
    torn: [7],
    now: [7],
    later: [],
    expected: { current: 1, nextSequence: 8 },
  },
  {
    what: "somebody else's file has a record's name: it is passed over, and the next one is above it",
    target: 'a',
    valid: [record(1, null, 'a', committed)],
    taken: [2, 99],
    now: [],
    later: [],
    expected: { nextSequence: 100 },
  },
  {
    what: 'staging that other targets share waits for the next commit',
    target: 'a',
    valid: [record(2, 'x', 'a', committed), record(1, null, 'x', committed)],
    staging: true,
    shared: true,
    now: [1],
    later: [0],
    expected: { current: 2 },
  },
  {
    what: 'the record of a copy: the content is intact, and not known to be durable',
    target: 'a',
    valid: [record(1, null, 'a', committed)],
    identity: { inode: '3', birth: '20' },
    staging: true,
    now: [],
    later: [0],
    expected: { current: 1, recorded: true, trusted: false, moved: false },
  },
  {
    what: 'the same number, given to an inode that was made later',
    target: 'a',
    valid: [record(1, null, 'a', committed)],
    identity: { inode: '2', birth: '21' },
    now: [],
    later: [],
    expected: { current: 1, trusted: false },
  },
  {
    what: 'a number without a time of birth proves nothing',
    target: 'a',
    valid: [record(1, null, 'a', committed)],
    identity: { inode: '2', birth: '0' },
    now: [],
    later: [],
    expected: { current: 1, trusted: false },
  },
  {
    what: 'a restored parent',
    target: 'a',
    valid: [record(1, null, 'a', { ...committed, place: { within, parent: { inode: '9', birth: '10' }, target } })],
    now: [],
    later: [],
    expected: { current: 1, trusted: false },
  },
  {
    what: 'a parent that was moved: known durable, at another place',
    target: 'a',
    valid: [record(1, null, 'a', committed)],
    at: '/mnt/certs',
    staging: true,
    now: [0],
    later: [],
    expected: { current: 1, trusted: true, moved: true },
  },
  {
    what: 'numbers that another boot may deal out again are not asked for',
    target: 'a',
    valid: [record(1, null, 'a', { ...laterBoot, otherBoot: true })],
    identity: { inode: '3', birth: '30' },
    lasting: false,
    now: [],
    later: [],
    expected: { current: 1, trusted: true },
  },
]
