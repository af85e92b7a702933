import t from 'tap'
import { factsOf } from '../../../src/agent/directory-state.js'
import { noMetrics, reportMetrics, type Metrics } from '../../../src/agent/report/report-metrics.js'
import { directoryOf } from '../../directories/objects.js'

await t.test('a pass counts by its result, and shows how the directory stands', async (t) => {
  const counted: unknown[][] = []
  const count =
    (name: keyof Metrics) =>
    (...values: unknown[]) =>
      void counted.push([name, ...values])
  const metrics = {
    ...noMetrics,
    publish: count('publish'),
    ready: count('ready'),
    publishedAt: count('publishedAt'),
    certificates: count('certificates'),
  }
  const context = { directory: '/srv/a', milliseconds: 1500, intact: true }
  const date = new Date(5000)
  const never = factsOf(directoryOf([]))
  const record = { digest: 'sha256:1', sequence: 1, publishedAt: date, pendingHooks: [], objects: [] }
  reportMetrics(metrics, { result: 'replaced' }, context, { ...never, record })
  t.strictSame(counted.splice(0), [
    ['ready', '/srv/a', true],
    ['publishedAt', '/srv/a', date],
    ['certificates', '/srv/a', []],
    ['publish', '/srv/a', 'replaced', 1.5],
  ])
  reportMetrics(metrics, { result: 'refused' }, { ...context, intact: false }, never)
  t.strictSame(counted.splice(0), [
    ['ready', '/srv/a', false],
    ['certificates', '/srv/a', []],
    ['publish', '/srv/a', 'refused', undefined],
  ])
  reportMetrics(metrics, { result: undefined }, context, never)
  t.strictSame(
    counted.map(([name]) => name),
    ['ready', 'certificates'],
    'what only waits does not count',
  )
})
