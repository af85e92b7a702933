/** Each call of the core fails as a full disk, or a full table of descriptors, has it fail. */
import t from 'tap'
import { sweep } from '../../durable/crash-sweep.js'

await sweep(t, { kills: false, codes: ['ENOSPC', 'EMFILE'], oneOf: 1 })
