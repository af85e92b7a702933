/*
 * What stays beside a target: earlier contents, old content in use, other programs' files. The door of this room: other rooms import
 * nothing else of it.
 */

export {
  clean,
  clearRefused,
  makeRoom,
  removeRest,
  removeSuperseded,
  survey,
  tidy,
  type Staying,
  type Survey,
} from './clean.js'
export {
  generationFor,
  historyAfter,
  limitsBeside,
  limitsOf,
  stageGeneration,
  within,
  type OldContent,
} from './history.js'
export { isAsRead, isPartOf, removeEntries } from './old-content.js'
export { claimOf, quarantineForeign, quarantineOld, type PresentEntry, type StagingArea } from './quarantine.js'
export { findRetired, isOver, retiredClaims } from './retired.js'
