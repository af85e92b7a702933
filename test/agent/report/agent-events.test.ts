/** Which outcome makes which event: on the Node, on the object, and none. */
import t from 'tap'
import { meaningOf, type Context, type PassOutcome } from '../../../src/agent/outcome.js'
import { draftsOf, type Reporter } from '../../../src/agent/report/agent-events.js'
import type { EventDraft } from '../../../src/kubernetes/events/event-body.js'
import type { ObjectReference } from '../../../src/objects/types.js'
import { reasons } from '../../../src/reasons.js'
import { context, known, published, secret } from '../outcome-scene.js'

const reporter: Reporter = { node: 'n1', place: 'node n1', uid: () => 'uid-a' }
const nameless: Reporter = { ...reporter, node: '', place: 'host h' }

const failed = (reason: (typeof reasons)[number], message: string): PassOutcome => ({
  kind: 'failed',
  reason,
  terminal: false,
  published: false,
  error: new Error(message),
})

const eventsOf = (outcome: PassOutcome, context: Context, reporter: Reporter) =>
  draftsOf(meaningOf(outcome, context), reporter)

/** `Warning NoSpace Node n1: note` */
function lines(drafts: readonly EventDraft[]): string[] {
  return drafts.map(({ type, reason, subject, note }) => `${type} ${reason} ${subject.kind} ${subject.name}: ${note}`)
}

await t.test('a publication is reported on the Node, and on each object in another version', async (t) => {
  const drafts = eventsOf(published, { ...context, changedObjects: [known] }, reporter)
  t.strictSame(lines(drafts), [
    'Normal Published Node n1: /srv/a is replaced, and durable',
    'Normal Published Secret a: resourceVersion 7 is published to /srv/a on node n1',
  ])
  t.strictSame(drafts[0]?.subject, { kind: 'Node', namespace: '', name: 'n1', uid: 'n1' })
  t.strictSame(drafts[1]?.subject, { ...secret, uid: 'uid-a' })
  t.notOk(JSON.stringify(drafts).includes('sha256'), 'no digest of content')
})

await t.test('a failure is reported on the Node, in the same words at each try', async (t) => {
  const message = (random: string, sequence: number) =>
    `/srv/a: write /srv/.holdfast-0123456789abcdef-${random}/f: ENOSPC; see /srv/.holdfast-0123456789abcdef.${sequence} and ..${sequence}-${random}`
  const first = eventsOf(failed('NoSpace', message('0011223344556677', 7)), context, reporter)
  const second = eventsOf(failed('NoSpace', message('8899aabbccddeeff', 12)), context, reporter)
  t.strictSame(first, second)
  t.matchOnly(lines(first), ['Warning NoSpace Node n1: /srv/a: write /srv/.holdfast-0123456789abcdef-…/f: ENOSPC'])
})

await t.test('an object at fault is reported on itself, and on the Node once for the directory', async (t) => {
  const other: ObjectReference = { kind: 'ConfigMap', namespace: 'ns', name: 'b' }
  const outcome: PassOutcome = {
    kind: 'incomplete',
    findings: [
      { reason: 'CertificateInvalid', message: 'Secret ns/a: tls.key is wrong', reference: secret },
      { reason: 'ObjectMissing', message: 'ConfigMap ns/b does not exist', reference: other },
      { reason: 'CertificateInvalid', message: 'ca.crt (contents[1]): certificate 1 of 1' },
    ],
  }
  const absent = { ...reporter, uid: ({ name }: ObjectReference) => (name === 'a' ? 'uid-a' : undefined) }
  const drafts = eventsOf(outcome, context, absent)
  t.strictSame(lines(drafts), [
    'Warning CertificateInvalid Node n1: /srv/a: Secret ns/a: tls.key is wrong; ConfigMap ns/b does not exist; ca.crt (contents[1]): certificate 1 of 1',
    'Warning CertificateInvalid Secret a: Secret ns/a: tls.key is wrong (/srv/a on node n1)',
    'Warning ObjectMissing ConfigMap b: ConfigMap ns/b does not exist (/srv/a on node n1)',
  ])
  t.equal(drafts[2]?.subject.uid, undefined)
})

await t.test('a node without a name has no events', async (t) => {
  t.strictSame(eventsOf(failed('NoSpace', 'x'), context, nameless), [])
  t.matchOnly(lines(eventsOf(published, { ...context, changedObjects: [known] }, nameless)), [
    /^Normal Published Secret a: .* on host h$/,
  ])
})

await t.test('every reason of a failure has a type, and an action that the API takes', async (t) => {
  for (const reason of reasons) {
    const [draft] = eventsOf(failed(reason, 'x'), context, reporter)
    const never = reason === 'Unchanged' || reason === 'Busy'
    t.equal(draft === undefined, never, reason)
    if (draft === undefined) continue
    const normal = ['Published', 'Removed', 'DriftRepaired', 'Dropped', 'Relocating', 'Relocated'].includes(reason)
    t.equal(draft.type, normal ? 'Normal' : 'Warning', reason)
    t.match(draft.action, /^[A-Z][A-Za-z]+$/)
  }
})
