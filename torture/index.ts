/*
 * Whether a disk keeps what it has acknowledged: the machine that publishes (torture), and the one that remembers what it heard of it
 * (witness). The door of this room: `holdfast torture` and `holdfast witness` load it when they run.
 */

export { readWitnessKey, readOrMakeKey } from './key.js'
export { torture, verifyDisk } from './torture.js'
export { lockLedger, readLedger } from './witness-file.js'
export { Witness } from './witness.js'
