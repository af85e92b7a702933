/** The judgement of a target: each row is one state that a predecessor can leave, with its remedy. */
import { takeOver } from '../../../src/durable/adopt/adoption.js'
import t from 'tap'
import { hooksOf, isSettled, judge, type Judgement, resultOf, type Seen } from '../../../src/durable/record/judge.js'
import type { StoredRecord } from '../../../src/durable/record/record.js'
import { abortedRows } from '../aborted-rows.js'
import { names, staged, within, parent, target, rows } from '../judge-rows.js'
import { found, treeOf, valueOf } from '../judgements.js'

const here = { parent, target }

for (const row of [...rows, ...abortedRows]) {
  const { what, target, valid = [], torn = [], taken = [], staging, shared = false, now, later, expected } = row
  const { identity, at = within, lasting = true } = row
  void t.test(what, async (t) => {
    const seen: Seen = {
      names,
      exists: target !== null,
      tree:
        target === null || target === 'broken'
          ? undefined
          : { digest: target, entries: [], identity: identity ?? here.target },
      records: {
        valid,
        torn,
        taken: new Set(taken),
        staging: [],
        newer: [],
        quarantined: [],
        generations: [],
        loose: [],
        missed: false,
      },
      staging: staging ? ['0123456789abcdef'] : [],
      sharedStaging: shared,
      within: at,
      parent: here.parent,
      lasting,
    }
    const { removeNow, removeLater, current, ...state } = judge(seen)
    const nameOf = (sequence: number): string => (sequence === 0 ? staged : names.record(sequence))
    t.same([...removeNow].sort(), now.map(nameOf).sort(), 'at once')
    t.same([...removeLater].sort(), later.map(nameOf).sort(), 'after the next commit')
    const { current: sequence, trusted, ...rest } = expected
    if (trusted !== undefined) t.equal(current?.trusted, trusted, 'trusted')
    if (sequence !== undefined) t.equal(current?.sequence, sequence)
    t.match(state, rest)
    if (current !== undefined) t.equal(state.record, current, 'its own record speaks of it')
    t.equal(state.record === undefined, valid.length === 0, 'another one, where there is any')
    if (staging && !shared) t.equal(state.known, now.includes(0), 'staging goes beside what is known to be durable')
  })
}

void t.test('isSettled asks for another publication of equal content only where its record lacks a word', async (t) => {
  const isDone = (marks: Partial<StoredRecord>, options: Parameters<typeof isSettled>[2] = {}, desired = 'a') =>
    isSettled(found(marks), treeOf(desired), options)
  t.equal(isDone({}), true)
  t.equal(isDone({}, {}, 'b'), false, 'another content')
  t.equal(isDone({}, { attributes: 'keep' }, 'b'), false, "another content, whoever's its modes are")
  t.equal(isDone({ trusted: false }), false, 'it is not known to be durable')
  t.equal(isDone({}, { pin: { reason: '', until: 'released' } }), false, 'a pin stands in a record')
  t.equal(isDone({ removing: { since: 0 } }), false, 'its removal has begun')
  const movedTo = '/etc/other'
  t.equal(isDone({ movedTo }), true, 'nobody speaks of its move')
  t.equal(isDone({ movedTo }, { movedTo }), true, 'it moves on')
  t.equal(isDone({ movedTo }, { movedTo: null }), false, 'it is to move no more')
  t.equal(isDone({}, { movedTo: null }), true, 'it does not move anyway')
  const kept = { after: 'with other modes', keepsAttributes: true }
  t.equal(isDone(kept, { attributes: 'keep' }), true, "modes are the administrator's")
  t.equal(isDone(kept, { attributes: 'set' }), false, "modes are the administrator's no more")
})

void t.test('hooksOf runs hooks for content that consumers do not know', async (t) => {
  const asked = ['reload']
  const adopt = takeOver({ replace: false })
  const runs = (seen: Judgement | undefined, options: Parameters<typeof hooksOf>[2] = {}): unknown =>
    valueOf(() => hooksOf(seen, treeOf('a'), options, asked))
  const foreign = { current: undefined, newest: undefined, recorded: false }
  t.strictSame(runs(undefined), asked, 'a new target')
  t.strictSame(runs(found({}, { tree: treeOf('b') })), asked, 'other content')
  t.strictSame(runs(found({ pendingHooks: ['left'] })), ['left'], 'the same content: what has not run for it')
  t.strictSame(runs(found({}, foreign), { adopt }), [], 'equal content that is taken over')
  t.strictSame(runs(found({}, foreign)), asked, 'equal content that is replaced without being taken over')
  t.strictSame(runs(found({}, { ...foreign, recorded: true }), { adopt }), asked, 'what drifted is not taken over')
  t.strictSame(runs(found({}, { ...foreign, tree: undefined }), { adopt }), asked, 'nothing is there')
  t.strictSame(runs(undefined, { adopt }), asked, 'nothing was found')
})

void t.test(
  'resultOf answers the digest of the record, the remaining hooks, and an unproven file system',
  async (t) => {
    const about = { path: '/etc/certs' }
    const proven = { id: 1, type: 'ext4', device: '8:1', root: '/', mountPoint: '/', proven: true, lasting: true }
    const seen = found({ after: 'by record', pendingHooks: ['left'] })
    const sequence = seen.nextSequence
    const answer = (outcome: 'replaced' | 'unchanged', desired = 'a', mount = proven) =>
      resultOf(about.path, outcome, treeOf(desired), seen, mount, {})
    t.strictSame(answer('unchanged'), {
      ...about,
      outcome: 'unchanged',
      digest: 'by record',
      sequence: seen.current?.sequence,
    })
    t.strictSame(answer('replaced'), { ...about, outcome: 'replaced', digest: 'a', sequence, pendingHooks: ['left'] })
    t.strictSame(answer('replaced', 'b'), { ...about, outcome: 'replaced', digest: 'b', sequence })
    const unproven = answer('replaced', 'b', { ...proven, proven: false })
    t.strictSame(unproven, { ...about, outcome: 'replaced', digest: 'b', sequence, unproven: true })
  },
)
