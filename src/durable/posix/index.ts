/* The interface of system calls, on a real kernel. The door of this room: other rooms import nothing else of it. */

export { AtOnceFileSystem } from './at-once.js'
export { endTogether, showInPlace } from './show-in-place.js'
export { FileContentSource } from './file-source.js'
export { flockHolders } from './tree-users.js'
export { modeAt, system } from './file-system.js'
export {
  commandOf,
  holdingsOn,
  processText,
  type Holding,
  type HoldingKind,
  type Location,
  type Unseen,
} from './holdings.js'
export { StreamSource } from './stream-source.js'
