/*
 * What the core answers when one call fails, with each errno that it tells apart, what it logs, and what it does then. `calls/failures.txt`
 * holds it; a difference there is a change of what a user is told, or of what is left on the disk.
 */
import t from 'tap'
import { compareWith } from './calls/compare.js'
import { failuresOf } from './calls/play.js'
import { scenes } from './calls/scenes.js'

const failing = scenes.filter(({ fails }) => fails)

await t.test('one call that fails', (t) => compareWith(t, 'failures.txt', failing, failuresOf))
