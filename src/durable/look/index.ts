/* Compare a target with its record; change nothing. The door of this room: other rooms import nothing else of it. */

export { damaged, generationsOf, noneEarlier, readEarlier, type EarlierContent } from './earlier-content.js'
export { isGone } from './gone.js'
export { usesOf } from './in-use.js'
export {
  lookUntilQuiet,
  publicationIn,
  readRecord,
  type RecordSaid,
  readPublication,
  readPublishedFiles,
  readTarget,
  refuseMissed,
} from './inspect.js'
export { listKept, type KeptBeside } from './list-kept.js'
export { pruneHistory, readHistory } from './read-history.js'
export { readPublishedContent, type PublishedContent } from './published-content.js'
export type { Standing } from './standing.js'
export { exchangeProblem, immovableProblem, parentEntry, usageBy, usageOf, writerOf, type Writer } from './fitness.js'
export { readContent, type ContentEntry, type TargetContent } from './target-content.js'
