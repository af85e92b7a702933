/** The process dies before every call of the core, and each call fails with EIO. */
import t from 'tap'
import { sweep } from '../../durable/crash-sweep.js'

await sweep(t, { kills: true, codes: ['EIO'], oneOf: 1 })
