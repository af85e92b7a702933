/* Take a target away, once nobody uses it. The door of this room: other rooms import nothing else of it. */

export type { RemovalOptions } from './removal-options.js'
export { removePublished } from './removal.js'
