/* The looks of unchanged-answers.ts stand around each call that changes a target, wherever its module is moved. */
// Own process: it asks whether its process is watched, which the runner draws for others.
import t from 'tap'
import { pruneHistory } from '../../src/durable/look/read-history.js'
import { setHold } from '../../src/durable/operator/hold.js'
import { publish } from '../../src/durable/publish/publish.js'
import { removePublished } from '../../src/durable/remove/removal.js'
import { isWatched } from './unchanged-answers.js'

await t.test('the tests watch each call of the core that changes a target', async (t) => {
  for (const call of [publish, setHold, removePublished, pruneHistory]) t.ok(isWatched(call), call.name)
})
