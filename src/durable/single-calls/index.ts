/* Durable single calls, for those that publish no target. The door of this room: other rooms import nothing else of it. */

export { DurableCalls, type DirectoryPublicationRequest, type FileRequest } from './durable-calls.js'
export * as nodeFiles from './node-files.js'
export { OwnFile } from './unrecorded-file.js'
export * as places from './swap-places.js'
export { exchange, syncParents, syncPath } from './sync-path.js'
