/* Move a target to another path. The door of this room: other rooms import nothing else of it. */

export type { RelocationOptions } from './relocation-source.js'
export { endRelocation, relocate, type RelocationProgress } from './relocation.js'
