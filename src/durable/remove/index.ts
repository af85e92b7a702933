/* Take a target away, once no process uses it. The door of this room: other rooms import nothing else of it. */

export { removePublished } from './removal.js'
