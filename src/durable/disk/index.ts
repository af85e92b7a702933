/* Durable single calls, for those that publish no target. The door of this room: other rooms import nothing else of it. */

export { Disk, type DirectoryPublicationRequest, type FileRequest } from './operations.js'
export { OwnFile } from './own-file.js'
export { identityAt, knownContent, removeTarget, swapPlaces, syncPlaces, userAt } from './swap-places.js'
export { exchange, syncParents, syncPath } from './sync-path.js'
