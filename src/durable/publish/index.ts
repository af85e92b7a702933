/* From a request to a committed publication. The door of this room: other rooms import nothing else of it. */

export { claimed } from './claim.js'
export { goneFrom } from './new-record.js'
export { PlannedTree } from './planned-tree.js'
export { publish, resultsOf } from './publish.js'
export {
  desiredEntries,
  directoryPublication,
  filePublication,
  only,
  planDirectory,
  planFile,
  planOf,
  replaceDirectories,
  replaceDirectory,
  replaceFile,
  type DirectoryChange,
  type DirectoryPlanResult,
} from './replace.js'
export {
  planFor,
  requestAsRecorded,
  type Adoption,
  type DirectoryPublicationOptions,
  type PublicationRequest,
  type AdoptionScene,
  type DirectoryPlan,
} from './request.js'
export { isAt } from './visible-rename.js'
export type { FileBelow } from './content.js'
