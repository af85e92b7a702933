/** The judgement of a target that holds content `a`, for tests of its consequences. */
import type { Judgement } from '../../src/durable/record/judge.js'
import type { StoredRecord } from '../../src/durable/record/record.js'
import type { Tree } from '../../src/durable/path/tree.js'
import { committed, record } from './judge-rows.js'

export const treeOf = (digest: string): Tree => ({ digest, entries: [] })

/** Its record says this. */
export function found(marks: Partial<StoredRecord> = {}, about: Partial<Judgement> = {}): Judgement {
  const current = record(1, null, 'a', { ...committed, ...marks })
  const state = { exists: true, newest: current, tree: treeOf('a'), current, record: current }
  return {
    ...state,
    known: true,
    moved: false,
    recorded: true,
    nextSequence: 2,
    removeNow: [],
    removeLater: [],
    ...about,
  }
}

/** The same, after another program's change. */
export const drifted = (marks: Partial<StoredRecord> = {}): Judgement =>
  found(marks, { current: undefined, tree: treeOf('edited') })

/** Its value, or that it fails. */
export function valueOf(give: () => unknown): unknown {
  try {
    return give()
  } catch {
    return 'fails'
  }
}
