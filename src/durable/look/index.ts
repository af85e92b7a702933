/* Compare a target with its record; change nothing. The door of this room: other rooms import nothing else of it. */

export { damaged, generationsOf, noneEarlier, readEarlier, type EarlierContent } from './earlier-content.js'
export { isGone, publicationIn, readRecord, readPublication, readPublishedFiles } from './inspect.js'
export { readTarget, TargetSnapshot, speakingRecord, withSnapshot } from './snapshot.js'
export { usesOf } from './in-use.js'
export { listKept, type KeptBeside } from './list-kept.js'
export { pruneHistory, readHistory } from './read-history.js'
export {
  readPublishedContent,
  type PublishedContent,
  readContent,
  type ContentEntry,
  type TargetContent,
} from './target-content.js'
export type { FoundTarget } from './found-target.js'
export { exchangeProblem, immovableProblem, parentEntry, usageBy, usageOf, writerOf, type Writer } from './fitness.js'
