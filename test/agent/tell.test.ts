import t from 'tap'
import type { Attempt } from '../../src/agent/attempt.js'
import { tell } from '../../src/agent/tell.js'
import { silent } from '../../src/log.js'

const circumstances = {
  operation: 'publish /srv/a',
  directory: '/srv/a',
  causes: ['start'],
  milliseconds: 1,
  drift: undefined,
  removed: [],
  changed: [],
}

await t.test('another process that publishes is no error', (t) => {
  const levels: string[] = []
  const log = { ...silent, info: () => levels.push('info'), error: () => levels.push('error') }
  const failed = { kind: 'failed', terminal: false, published: false, error: new Error('x') } as const
  const attempts: Attempt[] = [
    { ...failed, reason: 'Busy' },
    { ...failed, reason: 'NoSpace' },
  ]
  for (const attempt of attempts) tell(log, attempt, circumstances)
  t.strictSame(levels, ['info', 'error'])
  t.end()
})
