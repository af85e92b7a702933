/*
 * The records of publications, and what each proves about the content of its target. The door of this room: other rooms import nothing else
 * of it.
 */

export { hooksOf, isRepeated, isSettled, judge, resultOf, type Judgement, type Seen } from './judge.js'
export { agentOf, isOtherAgents, letGoSince, letGoText, type KeptRecord } from './keeper.js'
export {
  RecordFile,
  amend,
  append,
  completeHook,
  namedRecords,
  nextSequence,
  readAllRecords,
  readRecords,
  recordObjects,
  withRecord,
  type Records,
} from './record-files.js'
export {
  compare,
  describes,
  digestBy,
  encoded,
  isInForce,
  isPinned,
  recordBody,
  type Exchanged,
  type StoredRecord,
} from './record.js'
export {
  type KnownEntry,
  type RecordBody,
  type RecordKind,
  type RetiredTree,
  type StagedInodes,
} from './record-fields.js'
export { inForce, isRecorded, recordFor } from './speaking-record.js'
export { relationOf, takenOverAs, withTakenOver } from './taken-over.js'
