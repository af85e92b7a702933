import t from 'tap'
import { DirectoryState } from '../../src/agent/directory-state.js'
import { directoryOf } from '../directories/objects.js'

const early = new Date('2026-01-01T00:00:00Z')
const late = new Date('2026-01-02T00:00:00Z')

await t.test('the transition time changes with the status alone', (t) => {
  const state = new DirectoryState(directoryOf([]))
  t.equal(state.setPublished({ status: 'False', reason: 'NoSpace', message: 'a' }, early), true)
  const first = state.published
  t.match(first, { type: 'Published', lastTransitionTime: early.toISOString() })
  t.equal(state.setPublished({ status: 'False', reason: 'NoSpace', message: 'a' }, late), false)
  t.equal(state.published, first, 'nothing to write')
  t.equal(state.setPublished({ status: 'False', reason: 'Busy', message: 'b' }, late), true)
  t.match(state.published, { reason: 'Busy', message: 'b', lastTransitionTime: early.toISOString() })
  t.equal(state.setPublished({ status: 'True', reason: 'Published', message: '' }, late), true)
  t.equal(state.published?.lastTransitionTime, late.toISOString())
  t.end()
})

await t.test('a clock that goes back breaks nothing', (t) => {
  const state = new DirectoryState(directoryOf([]))
  state.setFresh({ status: 'True', reason: 'Published', message: '' }, late)
  state.setFresh({ status: 'False', reason: 'AccessDenied', message: '' }, new Date(0))
  t.equal(state.fresh?.lastTransitionTime, '1970-01-01T00:00:00.000Z')
  t.end()
})

await t.test('what an earlier run has left goes on: its transition times, and when it was confirmed', (t) => {
  const state = new DirectoryState(directoryOf([]))
  const published = { type: 'Published', status: 'True', reason: 'Published', message: '' } as const
  const conditions = [{ ...published, lastTransitionTime: early.toISOString() }]
  state.restore({ conditions, confirmedAt: early.toISOString() })
  state.setPublished({ status: 'True', reason: 'Published', message: 'again' }, late)
  t.equal(state.published?.lastTransitionTime, early.toISOString())
  t.equal(state.fresh, undefined)
  t.strictSame(state.confirmedAt, early)
  state.restore({ conditions: [], confirmedAt: 'no date' })
  t.equal(state.confirmedAt, undefined)
  t.end()
})
