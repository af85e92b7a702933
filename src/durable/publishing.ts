/*
 * The part of this room that publishes, and no more: what `holdfast replace` and `holdfast write` load. index.ts is the door to the whole
 * room, which is twice as large: a command reads and compiles only the modules that it loads.
 */

export { AtOnceFileSystem, modeAt, system } from './posix/index.js'
export {
  desiredEntries,
  planDirectory,
  planFile,
  replaceDirectories,
  replaceDirectory,
  replaceFile,
} from './publish/index.js'
export { checkTarget } from './path/index.js'
export { refuseKeptByAgent } from './target/index.js'
/** Keeps what this process holds in memory, private keys among it, out of core files. */
export { disableCoreDumps } from '../../native/index.js'
