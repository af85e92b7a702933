/* Take over another program's directory. The door of this room: other rooms import nothing else of it. */

export { examineAdoption, takeOver } from './adoption.js'
