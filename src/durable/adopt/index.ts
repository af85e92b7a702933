/* Take over what somebody else made. The door of this room: other rooms import nothing else of it. */

export { examineAdoption, takeOver } from './adoption.js'
