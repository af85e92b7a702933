/* What a person says of a target: hold, release, rollback, let go. The door of this room: other rooms import nothing else of it. */

export { setHold } from './hold.js'
export { letGo } from './let-go.js'
export { bodyWithMoves, rewriteRecord } from './rewrite-record.js'
export { rollBack, type RollbackOptions, type RollbackResult } from './rollback.js'
