/* Find, open, lock, read and sync one path. The door of this room: other rooms import nothing else of it. */

export { namedIn, writersBy } from './access-list.js'
export {
  StagedEntries,
  alone,
  barrier,
  closeSynced,
  fsyncAll,
  merged,
  probeJournal,
  replaceEntry,
  settle,
  shared,
  sharedDirectory,
  syncBelow,
  type SharedDirectory,
} from './barrier.js'
export { ContentSource, type ContentReader, type FileReadingOptions, type ReadingOptions } from './content-source.js'
export {
  Digest,
  type EntryHead,
  readFileTree,
  readTree,
  readWhole,
  type Current,
  type Tree,
  type TreeEntry,
} from './tree.js'
export {
  currentDataDirectory,
  dataLink,
  dataDirectoryName,
  isDataDirectory,
  keyLinks,
  mostOthers,
  nextDataLink,
  readDataDirectory,
  topNames,
} from './data-directory.js'
export {
  KeptAttributes,
  accessAttribute,
  attributesAt,
  attributesDigest,
  defaultAttribute,
  disinherit,
  disinheritFile,
  isKept,
  listsDigest,
  metadataOf,
  modeOf,
  otherLists,
  nearest,
  withLists,
  withMode,
  type CopyOptions,
  type OwnAttributes,
} from './kept-attributes.js'
export { lock, lockFile, type HeldLock } from './lock.js'
export { notMapped, setMetadata, type Metadata } from './kept-attributes.js'
export {
  generationPattern,
  namesFor,
  ownPattern,
  recordPattern,
  stagingPattern,
  type TargetNames,
  checkPath,
  checkPublishedTarget,
  checkTarget,
  compareBytes,
  isUnicode,
  maximumName,
} from './names.js'
export { Bound, OpenDirectories, entriesBelow, inTree } from './open-directories.js'
export { ifThere, inScope, openOwn, Scope, withOpen } from './scope.js'
export {
  identityOf,
  isOfThis,
  isSame,
  isTrustedHere,
  pathWithin,
  placeKey,
  tellBirths,
  type FoundPlace,
  type Identity,
  type RecordedPlace,
} from './place.js'
export {
  isUnproven,
  unprovenAt,
  unprovenRefused,
  atPlace,
  atTarget,
  type AtTarget,
  followTrusted,
  namesOf,
  openAncestors,
  openParent,
  resolve,
  resolveLinks,
  type Parent,
  type Place,
} from './resolve.js'
export {
  attempt,
  atOnce,
  makeWritable,
  mostRemoved,
  refuseMounted,
  remove,
  removeInside,
  type RemovalLimits,
} from './remove.js'
