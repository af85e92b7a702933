/** The process dies before calls of the core, and calls fail with EIO: the first of each name, and every third. */
import t from 'tap'
import { sweep } from './crash-sweep.js'

await sweep(t, { kills: true, codes: ['EIO'], oneOf: 3 })
