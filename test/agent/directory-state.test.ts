import t from 'tap'
import { transition } from '../../src/agent/directory-state.js'

const early = new Date('2026-01-01T00:00:00Z')
const late = new Date('2026-01-02T00:00:00Z')

await t.test('the transition time changes with the status alone', (t) => {
  const first = transition('Published', undefined, { status: 'False', reason: 'NoSpace', message: 'a' }, early)
  const same = transition('Published', first, { status: 'False', reason: 'NoSpace', message: 'a' }, late)
  t.equal(same, first, 'nothing to write')
  const worded = transition('Published', first, { status: 'False', reason: 'Busy', message: 'b' }, late)
  t.match(worded, { reason: 'Busy', message: 'b', lastTransitionTime: early.toISOString() })
  const turned = transition('Published', worded, { status: 'True', reason: 'Published', message: '' }, late)
  t.equal(turned.lastTransitionTime, late.toISOString())
  t.end()
})

await t.test('a clock that goes back breaks nothing', (t) => {
  const first = transition('Fresh', undefined, { status: 'True', reason: 'Published', message: '' }, late)
  const second = transition('Fresh', first, { status: 'False', reason: 'AccessDenied', message: '' }, new Date(0))
  t.equal(second.lastTransitionTime, '1970-01-01T00:00:00.000Z')
  t.end()
})
