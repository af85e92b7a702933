import t, { type Test } from 'tap'
import { DirectoryStates, DirectoryState } from '../../../src/agent/directory-state.js'
import {
  FreshnessTracker,
  freshness,
  Heartbeats,
  lossGrace,
  type Moment,
} from '../../../src/agent/report/freshness-tracker.js'
import type { ObservedState, ObjectReference, Source } from '../../../src/objects/types.js'
import { directoryOf, secret, whole } from '../../directories/objects.js'
import { parseConfiguration } from '../../../src/config/parse.js'
import { signalOf } from '../../until.js'

const reference = secret('web')

function scene(t: Test) {
  const states = new DirectoryStates()
  const state = states.add(directoryOf([whole(reference)], { path: '/srv/a' }))
  state.happened(
    { kind: 'judged', type: 'Published', condition: { status: 'True', reason: 'Published', message: '' } },
    new Date(),
  )
  const seen = { changes: 0 }
  const absent: ObservedState = { state: 'absent' }
  const source: Pick<Source, 'latest'> = { latest: () => absent }
  const inForce: { source: typeof source | undefined } = { source }
  const tracker = new FreshnessTracker({
    states,
    inForce,
    changed: () => (seen.changes += 1),
    signal: signalOf(t),
  })
  return { states, state, tracker, seen, inForce }
}

await t.test('a confirmation makes a directory fresh, shows when, and is reported as a change once', async (t) => {
  const { state, tracker, seen } = scene(t)
  tracker.refresh(state)
  t.match(state.facts.fresh, { status: 'False', reason: 'NotConfirmed' })
  t.strictSame([seen.changes, state.facts.confirmedAt], [1, undefined])
  tracker.confirmed(reference)
  tracker.refresh(state)
  tracker.refresh(state)
  t.match(state.facts.fresh, { status: 'True' })
  t.type(state.facts.confirmedAt, Date)
  t.equal(seen.changes, 2)
})

await t.test('another source starts from nothing; without one, the condition stays', async (t) => {
  const { state, tracker, inForce } = scene(t)
  const { source } = inForce
  tracker.confirmed(reference)
  tracker.refresh(state)
  const fresh = state.facts.fresh
  tracker.forgetSource()
  inForce.source = undefined
  tracker.refresh(state)
  t.equal(state.facts.fresh, fresh)
  inForce.source = source
  tracker.refresh(state)
  t.match(state.facts.fresh, { status: 'False' })
  tracker.confirmed(reference)
  tracker.keepOnly([reference])
  tracker.refresh(state)
  t.match(state.facts.fresh, { status: 'True' })
  tracker.keepOnly([])
  tracker.refresh(state)
  t.match(state.facts.fresh, { status: 'False' }, 'an object that nobody follows any more is forgotten, too')
})

await t.test('a watch that does not come back is reported by itself', async (t) => {
  const { state, tracker } = scene(t)
  tracker.confirmed(reference)
  tracker.refresh(state)
  t.match(state.facts.fresh, { status: 'True' })
  const lost = new Promise<void>((resolve) => {
    const happened = state.happened.bind(state)
    state.happened = (event) => {
      happened(event)
      if (event.kind === 'judged' && event.condition.status === 'False') resolve()
    }
  })
  tracker.restarted(reference, 'connection')
  await lost
  t.match(state.facts.fresh, { status: 'False', reason: 'SourceUnavailable', message: /has not recovered/ })
})

await t.test("a source's report of one directory refreshes that directory, and no other", async (t) => {
  const { states, state, tracker, seen } = scene(t)
  const other = states.add(directoryOf([whole(secret('other'))], { path: '/srv/b' }))
  const dropped = states.add(directoryOf([whole(reference)], { path: '/srv/c' }))
  const looks: string[] = []
  const looked = new Promise<void>((resolve) => {
    for (const one of [state, other, dropped]) {
      const happened = one.happened.bind(one)
      one.happened = (event) => {
        happened(event)
        if (event.kind !== 'judged') return
        looks.push(one.path)
        if (one === state) resolve()
      }
    }
  })
  tracker.reported(dropped)
  tracker.reported(state)
  tracker.reported(state)
  states.remove(dropped.path)
  await looked
  t.strictSame(looks, ['/srv/a'])
  t.ok(state.facts.news)
  t.equal(seen.changes, 1)
})

const secretA: ObjectReference = { kind: 'Secret', namespace: 'n', name: 'a' }
const configMap: ObjectReference = { kind: 'ConfigMap', namespace: 'n', name: 'b' }
const absent: ObservedState = { state: 'absent' }
const at = (monotonic: number): Moment => ({ monotonic, wall: new Date(1_700_000_000_000 + monotonic) })

async function stateOf(published: 'True' | 'False') {
  const { directories } = await parseConfiguration(
    JSON.stringify({
      apiVersion: 'holdfast.dev/v1alpha1',
      kind: 'AgentConfiguration',
      source: { namespace: 'n', files: { path: '/objects' } },
      directories: [{ path: '/srv/x', contents: [{ secret: 'a' }, { configMap: 'b', into: 'b' }] }],
    }),
    '/c.yaml',
  )
  const [configuration] = directories
  if (!configuration) throw new Error('no directory')
  const state = new DirectoryState(configuration)
  state.happened(
    { kind: 'judged', type: 'Published', condition: { status: published, reason: 'Published', message: '' } },
    new Date(),
  )
  return state
}

await t.test('a directory is fresh if all of its versions are confirmed; the oldest confirmation counts', async (t) => {
  const heartbeats = new Heartbeats()
  heartbeats.confirmed(secretA, at(5000))
  heartbeats.confirmed(configMap, at(2000))
  const found = freshness((await stateOf('True')).facts, () => absent, at(6000), heartbeats)
  t.match(found.condition, { status: 'True', reason: 'Published' })
  t.strictSame(found.confirmedAt, at(2000).wall)
  const reversed = new Heartbeats()
  reversed.confirmed(secretA, at(2000))
  reversed.confirmed(configMap, at(5000))
  const early = freshness((await stateOf('True')).facts, () => absent, at(6000), reversed)
  t.strictSame(early.confirmedAt, at(2000).wall, 'wherever the oldest stands in the configuration')
  const unpublished = freshness((await stateOf('False')).facts, () => absent, at(6000), heartbeats)
  t.match(unpublished, { condition: { status: 'False' }, confirmedAt: undefined })
})

await t.test('one object that the source has not reported, or that cannot be read, is enough', async (t) => {
  const heartbeats = new Heartbeats()
  heartbeats.confirmed(secretA, at(1000))
  const state = await stateOf('True')
  const unconfirmed = freshness(state.facts, () => absent, at(1000), heartbeats)
  t.match(unconfirmed.condition, { status: 'False', reason: 'NotConfirmed', message: /ConfigMap n\/b/ })
  const away: ObservedState = { state: 'unknown', reason: 'SourceUnavailable', message: 'connection refused' }
  const unread = (reference: ObjectReference) => (reference.kind === 'ConfigMap' ? away : absent)
  const boot = freshness(state.facts, unread, at(1000), heartbeats)
  t.match(
    boot.condition,
    { reason: 'NotConfirmed', message: 'connection refused' },
    'it has said nothing since the start',
  )
  heartbeats.confirmed(configMap, at(1000))
  const lost = freshness(state.facts, unread, at(1000), heartbeats)
  t.match(lost.condition, { reason: 'SourceUnavailable', message: 'connection refused' })
  const denied: ObservedState = { state: 'unknown', reason: 'AccessDenied', message: '403' }
  const found = freshness(
    state.facts,
    (reference) => (reference.kind === 'Secret' ? denied : absent),
    at(1),
    heartbeats,
  )
  t.match(found.condition, { status: 'False', reason: 'AccessDenied', message: '403' })
})

await t.test("a published version newer than the source's report is not confirmed", async (t) => {
  const heartbeats = new Heartbeats()
  for (const reference of [secretA, configMap]) heartbeats.confirmed(reference, at(0))
  const state = await stateOf('True')
  const version = (resourceVersion: string) => [{ ...secretA, uid: 'u', resourceVersion }]
  const record = { sequence: 1, publishedAt: new Date(0), pendingHooks: [], digest: 'new', objects: version('2') }
  const facts = { ...state.facts, record, desired: { digest: 'old', objects: version('1') } }
  const { condition } = freshness(facts, () => absent, at(1), heartbeats)
  t.match(condition, { status: 'False', reason: 'NotConfirmed', message: /newer than what the source has reported/ })
})

await t.test('a lost watch is reported after a while, unless it comes back', async (t) => {
  const state = await stateOf('True')
  const heartbeats = new Heartbeats()
  for (const reference of [secretA, configMap]) heartbeats.confirmed(reference, at(0))
  const conditionAt = (monotonic: number) => freshness(state.facts, () => absent, at(monotonic), heartbeats).condition
  heartbeats.restarted(secretA, 'timeout', at(1000))
  t.match(conditionAt(1000 + lossGrace), { status: 'True' }, 'a watch that ended in order is not lost')
  heartbeats.restarted(secretA, 'connection', at(2000))
  heartbeats.restarted(secretA, 'unauthorized', at(3000))
  t.match(conditionAt(2000 + lossGrace - 1), { status: 'True' })
  t.match(conditionAt(2000 + lossGrace), {
    status: 'False',
    reason: 'SourceUnavailable',
    message: /Secret n\/a/,
  })
  heartbeats.confirmed(secretA, at(9000))
  t.match(conditionAt(9000), { status: 'True' })
  heartbeats.restarted(secretA, 'denied', at(9000))
  t.match(conditionAt(99_000), { status: 'False', reason: 'AccessDenied' })
})

await t.test('who may list but not watch is not fresh between two denials, and is once they have ended', async (t) => {
  const state = await stateOf('True')
  const heartbeats = new Heartbeats()
  for (const reference of [secretA, configMap]) heartbeats.confirmed(reference, at(0))
  const conditionAt = (monotonic: number) => freshness(state.facts, () => absent, at(monotonic), heartbeats).condition
  const lost = { state: 'unknown', reason: 'AccessDenied', message: 'it lacks the verb watch' } as const
  heartbeats.restarted(secretA, 'denied', at(1000), lost)
  t.ok(heartbeats.confirmed(secretA, at(1500)), 'a denial of a moment ends with the next answer')
  t.match(conditionAt(9000), { status: 'True' })

  heartbeats.restarted(secretA, 'denied', at(10_000), lost)
  for (const listed of [20_000, 50_000]) {
    t.notOk(heartbeats.confirmed(secretA, at(listed)), 'the list is allowed')
    t.match(conditionAt(listed), { status: 'False', reason: 'AccessDenied' })
    heartbeats.restarted(secretA, 'denied', at(listed + 10), lost)
    t.match(conditionAt(listed + lossGrace), { status: 'False', reason: 'AccessDenied' })
    t.ok(conditionAt(listed + lossGrace).message.includes(at(10_000).wall.toISOString()), 'since the first of them')
  }
  heartbeats.confirmed(secretA, at(80_000))
  heartbeats.confirmed(secretA, at(81_000))
  t.match(conditionAt(80_000 + lossGrace), { status: 'True' }, 'the watch is open again')
  t.ok(heartbeats.confirmed(secretA, at(80_000 + lossGrace)))
  heartbeats.restarted(secretA, 'denied', at(90_000), lost)
  t.match(conditionAt(90_000 + lossGrace - 1), { status: 'True' }, 'another denial is another loss')
})

await t.test('a lost watch is reported with its last error', async (t) => {
  const state = await stateOf('True')
  const heartbeats = new Heartbeats()
  for (const reference of [secretA, configMap]) heartbeats.confirmed(reference, at(0))
  const lost = (reason: 'AccessDenied' | 'SourceUnavailable', message: string) =>
    ({ state: 'unknown', reason, message }) as const
  heartbeats.restarted(secretA, 'unauthorized', at(1000), lost('SourceUnavailable', 'no kubeconfig'))
  heartbeats.restarted(secretA, 'connection', at(2000), lost('SourceUnavailable', 'the certificate is not signed'))
  const condition = () => freshness(state.facts, () => absent, at(1000 + lossGrace), heartbeats).condition
  t.match(condition(), {
    reason: 'SourceUnavailable',
    message: /Secret n\/a was lost .*: the certificate is not signed$/,
  })
  t.ok(condition().message.includes(at(1000).wall.toISOString()), 'since the first of them')
  heartbeats.restarted(secretA, 'denied', at(2500), lost('AccessDenied', 'it needs a Role'))
  t.match(condition(), { reason: 'AccessDenied', message: /it needs a Role$/ })
})

await t.test('Heartbeats forgets an object that the source no longer follows', async (t) => {
  const heartbeats = new Heartbeats()
  for (const reference of [secretA, configMap]) {
    heartbeats.confirmed(reference, at(1000))
    heartbeats.restarted(reference, 'connection', at(2000))
  }
  heartbeats.keepOnly([secretA])
  t.strictSame(heartbeats.lastConfirmed(secretA), at(1000))
  t.match(heartbeats.lossOf(secretA, at(3000)), { reason: 'SourceUnavailable' })
  t.equal(heartbeats.lastConfirmed(configMap), undefined)
  t.equal(heartbeats.lossOf(configMap, at(3000)), undefined)
})

await t.test('silence is no freshness', async (t) => {
  const state = await stateOf('True')
  const heartbeats = new Heartbeats()
  for (const reference of [secretA, configMap]) heartbeats.confirmed(reference, at(0))
  const found = freshness(state.facts, () => absent, at(3_600_000), heartbeats)
  t.match(found.condition, { status: 'False', reason: 'SourceUnavailable' })
})
