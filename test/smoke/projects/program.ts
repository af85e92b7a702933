/** A program: `node program.js TARGET` */
import { publish } from './publication.js'

console.log(await publish(process.argv[2] ?? ''))
