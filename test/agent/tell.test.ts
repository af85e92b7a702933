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

await t.test('durable is said only of what is proven', (t) => {
  const lines: string[] = []
  const log = { ...silent, info: (_: object, message: string) => void lines.push(message) }
  const published = {
    ...({ kind: 'published', digest: 'sha256:0', objects: [], warnings: [], certificates: [] } as const),
    hooks: [],
  }
  for (const unproven of [false, true]) {
    for (const outcome of ['created', 'unchanged'] as const)
      tell(log, { ...published, outcome, unproven }, circumstances)
  }
  t.strictSame(lines, [
    '/srv/a is created, whole and durable',
    '/srv/a holds this already, durably',
    '/srv/a is created, whole for its readers (durability is not proven here)',
    '/srv/a holds this already',
  ])
  t.end()
})
