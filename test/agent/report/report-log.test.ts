import t from 'tap'
import { meaningOf, type Outcome } from '../../../src/agent/outcome.js'
import { reportLog } from '../../../src/agent/report/report-log.js'
import { silent, type Log } from '../../../src/log.js'
import { context } from '../outcome-scene.js'

const report = (log: Log, outcome: Outcome) => reportLog(log, meaningOf(outcome, context), context)

await t.test('log lines say durably only on a proven file system', async (t) => {
  const lines: string[] = []
  const log = { ...silent, info: (_: object, message: string) => void lines.push(message) }
  const published = {
    ...({ kind: 'published', digest: 'sha256:0', sequence: 1, objects: [], warnings: [], certificates: [] } as const),
    hooks: [],
  }
  for (const unproven of [false, true]) {
    for (const change of ['created', 'unchanged'] as const) report(log, { ...published, change, unproven })
  }
  t.strictSame(lines, [
    '/srv/a is created, and durable',
    '/srv/a already holds this content, durably',
    '/srv/a is created, but durability is not proven here',
    '/srv/a already holds this content',
  ])
})

await t.test('every line names the operation, the directory, the causes and the time it took', async (t) => {
  const lines: object[] = []
  const log = { ...silent, warn: (fields: object) => void lines.push(fields) }
  const findings = [{ reason: 'ObjectMissing', message: 'x' } as const]
  reportLog(log, meaningOf({ kind: 'incomplete', findings }, context), { ...context, milliseconds: 12.3456 })
  t.strictSame(lines, [
    {
      reason: 'ObjectMissing',
      operation: 'publish /srv/a',
      directory: '/srv/a',
      causes: ['start'],
      milliseconds: 12.3,
    },
  ])
})
