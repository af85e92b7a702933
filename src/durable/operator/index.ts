/* What a person says of a target: hold, release, rollback, let go. The door of this room: other rooms import nothing else of it. */

export { setHold, letGo } from './hold.js'
export { rewriteRecord } from './rewrite-record.js'
export { rollBack } from './rollback.js'
