/*
 * libc, as far as holdfast needs it: plain functions over file descriptors and paths, arguments checked before the call, failures thrown as
 * SystemError. Nothing here knows its callers.
 */
export { AioContext, AioRefused, maximumInFlight, type SyncOutcome } from './aio.js'
export { errnoName, errnoOf, SystemError } from './errno.js'
export { ready, workingDirectory } from './libc.js'
export { atOnce, type Done, isAtOnce, Lane, Semaphore, startInLane } from './loop.js'
export {
  chattrOf,
  type FileIdentity,
  identityAt,
  inodeFlag,
  isOfLowerLayer,
  mountId,
  mountStatus,
  statusOf,
  directoryFlags,
  getAttribute,
  getAttributeAt,
  listAttributes,
  openNoSymlinks,
  openOnSameMount,
  removeAttribute,
  rename,
  setAttribute,
  startWriteOut,
  tryLock,
} from './files.js'
export {
  disableCoreDumps,
  openProcess,
  reap,
  returnFreedMemory,
  sendDatagram,
  signalProcess,
  uptime,
} from './process.js'
export {
  bindMount,
  enterOwnMountNamespace,
  mountMemory,
  startInOwnPidNamespace,
  unmount,
  UrgentEvents,
} from './mounts.js'
