/* Move a target to another path. The door of this room: other rooms import nothing else of it. */

export { endRelocation, relocate, type RelocationProgress } from './relocation.js'
