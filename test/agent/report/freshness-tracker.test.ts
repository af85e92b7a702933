import t from 'tap'
import { DirectoryStates } from '../../../src/agent/directory-state.js'
import { FreshnessTracker } from '../../../src/agent/report/freshness-tracker.js'
import { noMetrics } from '../../../src/agent/report/report-metrics.js'
import type { ObservedState } from '../../../src/objects/types.js'
import { directoryOf, secret, whole } from '../../directories/objects.js'

const reference = secret('web')

function scene() {
  const states = new DirectoryStates()
  const state = states.add(directoryOf([whole(reference)], { path: '/srv/a' }))
  state.setPublished({ status: 'True', reason: 'Published', message: '' }, new Date())
  const seen = { changes: 0, confirmed: [] as string[], open: true }
  const absent: ObservedState = { state: 'absent' }
  const tracker = new FreshnessTracker({
    states,
    metrics: { ...noMetrics, confirmed: (directory) => void seen.confirmed.push(directory) },
    source: () => (seen.open ? { latest: () => absent } : undefined),
    changed: () => (seen.changes += 1),
  })
  return { states, state, tracker, seen }
}

await t.test('a confirmation makes a directory fresh, shows when, and is reported as a change once', async (t) => {
  const { state, tracker, seen } = scene()
  tracker.refresh(state)
  t.match(state.fresh, { status: 'False', reason: 'NotConfirmed' })
  t.strictSame(seen, { changes: 1, confirmed: [], open: true })
  tracker.confirmed(reference)
  tracker.refresh(state)
  tracker.refresh(state)
  t.match(state.fresh, { status: 'True' })
  t.type(state.confirmedAt, Date)
  t.strictSame(seen, { changes: 2, confirmed: ['/srv/a', '/srv/a'], open: true })
})

await t.test('another source starts from nothing; without one, the condition stays', async (t) => {
  const { state, tracker, seen } = scene()
  tracker.confirmed(reference)
  tracker.refresh(state)
  const fresh = state.fresh
  tracker.forgetSource()
  seen.open = false
  tracker.refresh(state)
  t.equal(state.fresh, fresh)
  seen.open = true
  tracker.refresh(state)
  t.match(state.fresh, { status: 'False' })
  tracker.confirmed(reference)
  tracker.keepOnly([reference])
  tracker.refresh(state)
  t.match(state.fresh, { status: 'True' })
  tracker.keepOnly([])
  tracker.refresh(state)
  t.match(state.fresh, { status: 'False' }, 'an object that nobody follows any more is forgotten, too')
})

await t.test('a watch that does not come back is reported by itself', async (t) => {
  const { state, tracker } = scene()
  tracker.confirmed(reference)
  tracker.refresh(state)
  t.match(state.fresh, { status: 'True' })
  const lost = new Promise<void>((resolve) => {
    const setFresh = state.setFresh.bind(state)
    state.setFresh = (condition, date) => {
      const changed = setFresh(condition, date)
      if (condition.status === 'False') resolve()
      return changed
    }
  })
  tracker.restarted(reference, 'connection')
  await lost
  t.match(state.fresh, { status: 'False', reason: 'SourceUnavailable', message: /has not recovered/ })
  tracker.close()
})

await t.test("a source's report of one directory refreshes that directory, and no other", async (t) => {
  const { states, state, tracker, seen } = scene()
  const other = states.add(directoryOf([whole(secret('other'))], { path: '/srv/b' }))
  const dropped = states.add(directoryOf([whole(reference)], { path: '/srv/c' }))
  const looks: string[] = []
  const looked = new Promise<void>((resolve) => {
    for (const one of [state, other, dropped]) {
      const setFresh = one.setFresh.bind(one)
      one.setFresh = (condition, date) => {
        looks.push(one.path)
        if (one === state) resolve()
        return setFresh(condition, date)
      }
    }
  })
  tracker.reported(dropped)
  tracker.reported(state)
  tracker.reported(state)
  states.remove(dropped.path)
  await looked
  t.strictSame(looks, ['/srv/a'])
  t.equal(state.reports, 2)
  t.equal(seen.changes, 1)
  tracker.close()
})
