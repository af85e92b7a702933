/*
 * Every call of the FileSystem interface, in its order, for what the core does to a disk. `calls/calls.txt` holds them. A change of the
 * core that makes other calls, or makes them in another order, shows there as a difference: read it as a change of the algorithm.
 */
import t from 'tap'
import { compareWith } from './calls/compare.js'
import { callsOf } from './calls/play.js'
import { scenes } from './calls/scenes.js'

await t.test('every call, in its order', (t) => compareWith(t, 'calls.txt', scenes, callsOf))
