/* A target with its records: found, refused, and its record written again. The door of this room: other rooms import nothing else of it. */

export {
  lostFlags,
  refuseDecrypted,
  describeHold,
  describeOrders,
  describePin,
  holdOf,
  mountedFileError,
  nothingPublished,
  openOffMounts,
  openTarget,
  type OpenTarget,
  refuseEmptied,
  refuseForeign,
  refuseHeld,
  refuseKeptByAgent,
  refuseNewer,
  refuseOtherForm,
  refuseOtherPublisher,
  refuseOtherThanDirectory,
  refusePinned,
  lacks,
  lowerLayer,
  type Unfitness,
  otherForm,
  renameError,
  rolledBack,
} from './refusals.js'
export { refuseTargetBelow } from './nesting.js'
export { type LockedTarget, Parents, sameTarget, Site, withLockedTarget } from './site.js'
export { renamedMeanwhile, supersedeRecord, syncRecord, writeRecord } from './write-record.js'
