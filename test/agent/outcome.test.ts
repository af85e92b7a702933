/** The table from outcome to condition, log lines, events, metric and retry: every member of the union has its rows. */
import t from 'tap'
import { isSourceAway, meaningOf, type Context, type EventNote, type PassOutcome } from '../../src/agent/outcome.js'
import { context, known, published, secret } from './outcome-scene.js'

type OutcomeOf<Kind extends PassOutcome['kind']> = Extract<PassOutcome, { kind: Kind }>

const incomplete = (
  ...reasons: ('ObjectMissing' | 'SourceUnavailable' | 'AccessDenied')[]
): OutcomeOf<'incomplete'> => ({
  kind: 'incomplete',
  findings: reasons.map((reason) => ({ reason, message: `because of ${reason}`, reference: secret })),
})
const failed = (details: Partial<OutcomeOf<'failed'>>): OutcomeOf<'failed'> => ({
  kind: 'failed',
  reason: details.published ? 'DurabilityUnknown' : 'NoSpace',
  terminal: false,
  published: false,
  error: Object.assign(new Error('what failed'), { code: 'EIO', syscall: 'fsync', path: '/srv/x' }),
  ...details,
})

interface Row<Kind extends PassOutcome['kind']> {
  readonly name: string
  readonly outcome: OutcomeOf<Kind>
  readonly context?: Partial<Context>
  /** `True Published: message`; undefined: the condition stays. */
  readonly condition: string | undefined
  /** `info Published: message`, each line of the log. */
  readonly lines: readonly string[]
  /** `Node Published: message`, each event; none where the row has none. */
  readonly events?: readonly string[]
  /** Of the metric; undefined: it is not counted. */
  readonly result?: string
  readonly queue: string
}

const intact = 'True Published: the disk holds the content that was published last'

/** The compiler asks for the rows of a new kind of outcome. */
const table: { readonly [Kind in PassOutcome['kind']]: readonly Row<Kind>[] } = {
  waiting: [
    {
      name: 'intact',
      outcome: { kind: 'waiting', message: 'not yet' },
      condition: intact,
      lines: ['debug : /srv/a: not yet'],
      queue: 'wait',
    },
    {
      name: 'not intact',
      outcome: { kind: 'waiting', message: 'm' },
      context: { intact: false },
      condition: 'False SourceUnavailable: m',
      lines: ['debug : /srv/a: m'],
      queue: 'wait',
    },
  ],
  incomplete: [
    {
      name: 'an object is missing',
      outcome: incomplete('ObjectMissing'),
      condition: 'False ObjectMissing: because of ObjectMissing',
      lines: ['warn ObjectMissing: /srv/a: because of ObjectMissing; nothing was changed'],
      events: [
        'Node ObjectMissing: /srv/a: because of ObjectMissing',
        'Secret a latest ObjectMissing: because of ObjectMissing (/srv/a on node n1)',
      ],
      result: 'refused',
      queue: 'wait',
    },
    {
      name: 'the source is away, intact',
      outcome: incomplete('SourceUnavailable'),
      condition: intact,
      lines: ['warn SourceUnavailable: /srv/a: because of SourceUnavailable; the published content stays as it is'],
      events: ['Node SourceUnavailable: /srv/a: because of SourceUnavailable'],
      result: 'refused',
      queue: 'wait',
    },
    {
      name: 'the source is away, not intact',
      outcome: incomplete('SourceUnavailable'),
      context: { intact: false },
      condition: 'False SourceUnavailable: because of SourceUnavailable',
      lines: ['warn SourceUnavailable: /srv/a: because of SourceUnavailable; the published content stays as it is'],
      events: ['Node SourceUnavailable: /srv/a: because of SourceUnavailable'],
      result: 'refused',
      queue: 'wait',
    },
    {
      name: 'denied and missing',
      outcome: incomplete('AccessDenied', 'ObjectMissing'),
      condition: 'False AccessDenied: because of AccessDenied; because of ObjectMissing',
      lines: [
        'warn AccessDenied: /srv/a: because of AccessDenied; nothing was changed',
        'warn ObjectMissing: /srv/a: because of ObjectMissing; nothing was changed',
      ],
      events: [
        'Node AccessDenied: /srv/a: because of AccessDenied; because of ObjectMissing',
        'Secret a latest AccessDenied: because of AccessDenied (/srv/a on node n1)',
        'Secret a latest ObjectMissing: because of ObjectMissing (/srv/a on node n1)',
      ],
      result: 'refused',
      queue: 'wait',
    },
  ],
  published: [
    {
      name: 'created',
      outcome: { ...published, change: 'created' },
      context: { changedObjects: [known] },
      condition: intact,
      lines: ['info Published: /srv/a is created, and durable'],
      events: [
        'Node Published: /srv/a is created, and durable',
        'Secret a uid-a Published: resourceVersion 7 is published to /srv/a on node n1',
      ],
      result: 'created',
      queue: 'done',
    },
    {
      name: 'replaced, an object removed',
      outcome: published,
      context: { removedObjects: [known] },
      condition: intact,
      lines: [
        'info Published: /srv/a is replaced, and durable',
        'info Removed: /srv/a: Secret ns/a is no longer published',
      ],
      events: [
        'Node Published: /srv/a is replaced, and durable',
        'Secret a uid-a Removed: it is no longer published in /srv/a on node n1',
        'Node Removed: /srv/a: Secret ns/a is no longer published',
      ],
      result: 'replaced',
      queue: 'done',
    },
    {
      name: 'repaired',
      outcome: published,
      context: { drift: 'tls.crt is missing' },
      condition: intact,
      lines: ['info DriftRepaired: /srv/a is repaired; on the disk these differed: tls.crt is missing'],
      events: ['Node DriftRepaired: /srv/a is repaired; on the disk these differed: tls.crt is missing'],
      result: 'replaced',
      queue: 'done',
    },
    {
      name: 'unchanged, not proven, with a warning',
      outcome: {
        ...published,
        change: 'unchanged',
        unproven: true,
        objects: [...published.objects, { ...known, name: 'b', paths: ['other'] }],
        warnings: [{ reason: 'CertificateExpired', message: 'old' }],
        certificates: [{ file: 'tls.crt', notBefore: new Date(0), notAfter: new Date(0) }],
      },
      condition: 'True CertificateExpired: old',
      lines: ['info Unchanged: /srv/a already holds this content', 'warn CertificateExpired: /srv/a: old'],
      events: [
        'Node CertificateExpired: /srv/a: old',
        'Secret a uid-a CertificateExpired: tls.crt: a certificate expired at 1970-01-01T00:00:00.000Z (/srv/a on node n1)',
      ],
      result: 'unchanged',
      queue: 'done',
    },
  ],
  failed: [
    {
      name: 'nothing is visible',
      outcome: failed({}),
      condition: 'False NoSpace: what failed',
      lines: ['error NoSpace: what failed'],
      events: ['Node NoSpace: what failed'],
      result: 'failed',
      queue: 'retry',
    },
    {
      name: 'visible, not known to be durable',
      outcome: failed({ published: true }),
      context: { intact: false },
      condition: 'Unknown DurabilityUnknown: what failed',
      lines: ['error DurabilityUnknown: what failed'],
      events: ['Node DurabilityUnknown: what failed'],
      result: 'unknown',
      queue: 'retry',
    },
    {
      name: 'terminal: it waits for a change',
      outcome: failed({ terminal: true, reason: 'TargetForeign' }),
      condition: 'False TargetForeign: what failed',
      lines: ['error TargetForeign: what failed'],
      events: ['Node TargetForeign: what failed'],
      result: 'failed',
      queue: 'wait',
    },
    {
      name: 'another process publishes: no error of ours',
      outcome: failed({ reason: 'Busy' }),
      condition: 'False Busy: what failed',
      lines: ['info Busy: what failed'],
      events: ['Node Busy: what failed'],
      result: 'failed',
      queue: 'retry',
    },
  ],
  // An old path of a directory that moves.
  moving: [
    {
      name: 'both paths are kept from now on',
      outcome: {
        kind: 'moving',
        to: '/srv/b',
        state: 'both',
        entered: 'both',
        result: { outcome: 'replaced', path: '/srv/a', digest: 'sha256:1', sequence: 2 },
        waits: 'it is in use',
      },
      condition: 'True Relocating: /srv/a moves to /srv/b (both): it is in use',
      lines: ['info Relocating: /srv/a moves, and is kept up to date until nobody uses it (to /srv/b); it is in use'],
      events: ['Node Relocating: /srv/a moves, and is kept up to date until nobody uses it (to /srv/b)'],
      result: 'replaced',
      queue: 'done',
    },
    {
      name: 'the old path has got what the new one holds',
      outcome: {
        kind: 'moving',
        to: '/srv/b',
        state: 'both',
        result: { outcome: 'replaced', path: '/srv/a', digest: 'sha256:1', sequence: 2 },
        waits: 'it is in use',
      },
      condition: 'True Relocating: /srv/a moves to /srv/b (both): it is in use',
      lines: ['info Published: /srv/a holds what /srv/b holds; it is in use'],
      result: 'replaced',
      queue: 'done',
    },
    {
      name: 'nothing is published at the new path yet',
      outcome: { kind: 'moving', to: '/srv/b', waits: 'not yet' },
      context: { intact: false },
      condition: 'False Relocating: /srv/a moves to /srv/b: not yet',
      lines: ['debug : /srv/a moves to /srv/b; not yet'],
      queue: 'done',
    },
    {
      name: 'it is gone',
      outcome: { kind: 'moving', to: '/srv/b', state: 'done', entered: 'done' },
      context: { intact: false },
      condition: 'True Relocated: /srv/a has moved to /srv/b, and is not there',
      lines: ['info Relocated: /srv/a has moved, and is not there (to /srv/b)'],
      events: ['Node Relocated: /srv/a has moved, and is not there (to /srv/b)'],
      queue: 'done',
    },
  ],
  aborted: [
    {
      name: 'nothing was visible',
      outcome: { kind: 'aborted' },
      condition: undefined,
      lines: ['info : publish /srv/a: the agent aborted it before anything was visible'],
      queue: 'wait',
    },
  ],
}

function describe(note: EventNote): string {
  if (note.on === 'node') return `Node ${note.reason}: ${note.message}`
  return `${note.on.kind} ${note.on.name} ${note.uid ?? 'latest'} ${note.reason}: ${note.message('node n1')}`
}

for (const [kind, rows] of Object.entries(table)) {
  for (const row of rows) {
    await t.test(`${kind}: ${row.name}`, async (t) => {
      const meaning = meaningOf(row.outcome, { ...context, ...row.context })
      const { condition } = meaning
      t.equal(condition && `${condition.status} ${condition.reason}: ${condition.message}`, row.condition)
      t.strictSame(
        meaning.lines.map(({ level, reason = '', message }) => `${level} ${reason}: ${message}`),
        row.lines,
      )
      t.strictSame(meaning.events.map(describe), row.events ?? [])
      t.equal(meaning.result, row.result)
      t.equal(meaning.queue, row.queue)
    })
  }
}

await t.test('log lines have the published objects in fields, and the failed call with its path', async (t) => {
  t.strictSame(meaningOf(published, context).lines[0]?.fields, {
    outcome: 'replaced',
    sequence: 3,
    objects: [known],
  })
  t.strictSame(meaningOf(failed({}), context).lines[0]?.fields, {
    published: false,
    code: 'EIO',
    syscall: 'fsync',
    path: '/srv/x',
  })
})

await t.test('a source is away where nothing but its answers is missing', async (t) => {
  t.equal(isSourceAway({ kind: 'waiting', message: '' }), true)
  t.equal(isSourceAway(incomplete('SourceUnavailable', 'AccessDenied')), true)
  t.equal(isSourceAway(incomplete('SourceUnavailable', 'ObjectMissing')), false)
  t.equal(isSourceAway(failed({})), false)
  t.equal(isSourceAway(published), false)
})
