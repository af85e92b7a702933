import t from 'tap'
import type { Attempt } from '../../src/agent/attempt.js'
import { transition } from '../../src/agent/conditions.js'
import { readiness } from '../../src/agent/readiness.js'
import { publishedVerdict, queueVerdict } from '../../src/agent/verdicts.js'

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

const published: Attempt = {
  kind: 'published',
  outcome: 'replaced',
  digest: 'sha256:1',
  objects: [],
  warnings: [],
  certificates: [],
  hooks: [],
  unproven: false,
}
const incomplete = (...reasons: ('ObjectMissing' | 'SourceUnavailable' | 'AccessDenied')[]): Attempt => ({
  kind: 'incomplete',
  findings: reasons.map((reason) => ({ reason, message: `because of ${reason}` })),
})
const failed = (details: { terminal?: boolean; published?: boolean }): Attempt => ({
  kind: 'failed',
  reason: details.published ? 'DurabilityUnknown' : 'NoSpace',
  terminal: details.terminal ?? false,
  published: details.published ?? false,
  error: new Error('what failed'),
})

await t.test('what an attempt does to Published', (t) => {
  const cases: [string, Attempt, boolean, object | undefined][] = [
    ['published', published, true, { status: 'True', reason: 'Published' }],
    [
      'published with a warning',
      { ...published, warnings: [{ reason: 'CertificateExpired', message: 'old' }] },
      true,
      { status: 'True', reason: 'CertificateExpired', message: 'old' },
    ],
    ['missing', incomplete('ObjectMissing'), true, { status: 'False', reason: 'ObjectMissing' }],
    ['the source is away, whole', incomplete('SourceUnavailable'), true, { status: 'True', reason: 'Published' }],
    ['the source is away, not whole', incomplete('SourceUnavailable'), false, { status: 'False' }],
    [
      'denied and missing',
      incomplete('AccessDenied', 'ObjectMissing'),
      true,
      {
        status: 'False',
        reason: 'AccessDenied',
        message: 'because of AccessDenied; because of ObjectMissing',
      },
    ],
    ['failed', failed({}), true, { status: 'False', reason: 'NoSpace', message: 'what failed' }],
    ['unknown', failed({ published: true }), false, { status: 'Unknown', reason: 'DurabilityUnknown' }],
    ['waiting, not whole', { kind: 'waiting', message: 'm' }, false, { reason: 'SourceUnavailable', message: 'm' }],
    ['abandoned', { kind: 'abandoned' }, true, undefined],
  ]
  for (const [name, attempt, whole, expected] of cases) {
    const verdict = publishedVerdict(attempt, whole)
    if (expected === undefined) t.equal(verdict, undefined, name)
    else t.match(verdict, expected, name)
  }
  t.end()
})

await t.test('what is tried again by itself', (t) => {
  t.equal(queueVerdict(published), 'done')
  t.equal(queueVerdict(failed({})), 'retry')
  t.equal(queueVerdict(failed({ published: true })), 'retry')
  t.equal(queueVerdict(failed({ terminal: true })), 'wait', 'a terminal fault waits for a change')
  t.equal(queueVerdict(incomplete('ObjectMissing')), 'wait', 'the source tells when that changes')
  t.end()
})

await t.test('readiness lists what is not whole, and only counts what is required', (t) => {
  const whole = { path: '/a', required: true, whole: true, reason: 'Published', message: '' }
  const broken = {
    path: '/b',
    required: true,
    whole: false,
    reason: 'ObjectMissing',
    message: 'no Secret x/y',
  }
  const optional = { ...broken, path: '/c', required: false }
  t.strictSame(readiness([whole, optional]), { ready: true, lines: ['[+]/a ok'] })
  t.strictSame(readiness([whole, broken]), {
    ready: false,
    lines: ['[+]/a ok', '[-]/b ObjectMissing: no Secret x/y'],
  })
  t.equal(readiness([]).ready, true)
  t.end()
})
