/*
 * libc, as far as holdfast needs it: plain functions over file descriptors and paths, arguments checked before the call, failures thrown as
 * SystemError. Nothing here knows its callers.
 */
export { AioContext, AioRefused, maximumInFlight, type SyncOutcome } from './aio.js'
export { workingDirectory } from './arguments.js'
export { atOnce, isAtOnce } from './at-once.js'
export { disableCoreDumps } from './core-dumps.js'
export { sendDatagram } from './datagram.js'
export { errnoName, errnoOf, SystemError } from './errno.js'
export { tryLock } from './flock.js'
export { Lane, startInLane } from './lane.js'
export { returnFreedMemory } from './malloc.js'
export { identityAt, type FileIdentity } from './identity.js'
export { inodeFlag, isOfLowerLayer } from './immovable.js'
export { mountId } from './mount-id.js'
export { bindMount, enterOwnMountNamespace, mountMemory, startInOwnPidNamespace, unmount } from './namespaces.js'
export { directoryFlags, openNoSymlinks, openOnSameMount } from './open.js'
export { openProcess, signalProcess } from './pidfd.js'
export { rename, type RenameMode } from './rename.js'
export { Semaphore } from './semaphore.js'
export { startWriteOut } from './sync-file-range.js'
export { UrgentEvents } from './urgent.js'
export { getAttribute, getAttributeAt, listAttributes, removeAttribute, setAttribute } from './xattr.js'
