/** What a program of another version has written is read as the least that it proves. */
import t from 'tap'
import { reportFor } from '../../src/fleet/read-report.js'

const read = (directory: object) =>
  reportFor({ metadata: { name: 'n1' }, status: { directories: [{ path: '/a', ...directory }] } }, undefined)
    ?.directories[0]

await t.test('a state that this version does not know is no proof', async (t) => {
  t.equal(read({ state: 'Held' })?.state, 'Held')
  t.equal(read({ state: 'Better' })?.state, 'Failed')
  t.equal(read({})?.state, 'Failed')
})
