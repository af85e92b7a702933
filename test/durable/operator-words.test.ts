/** Which publishers a hold or a pin stops: rules on the judgement of a target. */
import t from 'tap'
import {
  describeHold,
  describePin,
  holdOf,
  refuseForeign,
  refuseHeld,
  refuseNewer,
  refuseOtherForm,
  refusePinned,
} from '../../src/durable/target/refusals.js'
import type { Pin } from '../../src/durable/types.js'
import { drifted, found, treeOf } from './judgements.js'

const path = '/srv/certs'
const now = 1000
const pin: Pin = { reason: 'INC-9', since: 0, until: 'newer', from: [], digest: 'b' }

/** Why it is refused; undefined: it is not. */
function reasonOf(act: () => void): unknown {
  try {
    act()
    return undefined
  } catch (error) {
    return (error as { reason?: string }).reason ?? String(error)
  }
}

await t.test('a hold and a pin say since when, until when, and why', async (t) => {
  const hold = { reason: 'a change', since: 0, until: null }
  t.equal(describeHold(path, hold), '/srv/certs is held since 1970-01-01T00:00:00.000Z (a change)')
  t.equal(
    describeHold(path, { ...hold, reason: '', until: 1000 }),
    '/srv/certs is held since 1970-01-01T00:00:00.000Z until 1970-01-01T00:00:01.000Z',
  )
  const rolledBack = '/srv/certs is rolled back since 1970-01-01T00:00:00.000Z, until'
  t.equal(describePin(path, pin), `${rolledBack} something newer comes (INC-9)`)
  t.equal(describePin(path, { ...pin, reason: '', until: 'released' }), `${rolledBack} it is released`)
  t.equal(describePin(path, { ...pin, until: 1000 }), `${rolledBack} 1970-01-01T00:00:01.000Z (INC-9)`)
})

await t.test('a hold stops everybody until its end', async (t) => {
  const hold = { reason: '', since: 0, until: 1001 }
  t.strictSame(holdOf(found({ hold }), now), hold)
  t.strictSame(holdOf(drifted({ hold }), now), hold)
  t.equal(holdOf(found({ hold }), 1001), undefined)
  t.equal(holdOf(found(), now), undefined)
  t.equal(
    reasonOf(() => refuseHeld(path, hold)),
    'Held',
  )
  t.equal(
    reasonOf(() => refuseHeld(path, undefined)),
    undefined,
  )
})

await t.test(
  'a pin stops a publisher that acts by itself, until newer content comes, it ends or a release',
  async (t) => {
    const asked: unknown[] = []
    const newer = (pin: Pin): boolean => asked.push(pin) > 0
    const older = (): boolean => false
    type Found = Parameters<typeof refusePinned>[2]
    type Options = Parameters<typeof refusePinned>[3]
    const stopped = (
      marks: { pin?: Pin; trusted?: boolean },
      digest: string,
      options: Options,
      by: Found = found(marks),
    ) => reasonOf(() => refusePinned(path, digest, by, options, now)) === 'RolledBack'
    t.ok(stopped({ pin }, 'c', { supersedes: older }))
    t.notOk(stopped({}, 'c', { supersedes: older }), 'nothing was rolled back')
    t.notOk(stopped({ pin }, 'c', {}), 'a call of its own is its own consent')
    t.notOk(stopped({ pin }, 'c', { supersedes: older, held: 'release' }))
    t.ok(stopped({ pin }, 'c', { supersedes: older, held: 'refuse' }))
    t.strictSame(asked, [])
    t.notOk(stopped({ pin }, 'c', { supersedes: newer }), 'newer objects, and another content')
    t.strictSame(asked, [pin], 'they are compared with those that were rolled back from')
    t.ok(stopped({ pin }, 'b', { supersedes: newer }), 'the very content that was rolled back from')
    t.ok(stopped({ pin: { ...pin, until: 'released' } }, 'c', { supersedes: newer }))
    t.ok(stopped({ pin: { ...pin, until: 1001 } }, 'c', { supersedes: newer }))
    t.notOk(stopped({ pin: { ...pin, until: 1000 } }, 'c', { supersedes: older }), 'its time is over')
    t.strictSame(asked, [pin])
  },
)

await t.test('the speaking record pins drifted content', async (t) => {
  const supersedes = (): boolean => false
  const stops = (by: Parameters<typeof refusePinned>[2]) =>
    reasonOf(() => refusePinned(path, 'c', by, { supersedes }, now))
  t.equal(stops(drifted({ pin })), 'RolledBack')
  t.equal(stops(drifted({ pin, trusted: false })), 'RolledBack', 'it was not aborted, be it known to be durable or not')
  t.equal(stops(found({ pin, trusted: false })), 'RolledBack', 'what is there is pinned whether it is durable or not')
  t.equal(stops(found()), undefined, 'what is there says nothing of a pin')
  t.equal(stops({ record: undefined }), undefined)
})

await t.test('a target keeps its form for as long as it is there', async (t) => {
  const refused = (by: Parameters<typeof refuseOtherForm>[2]) => reasonOf(() => refuseOtherForm(path, 'symlink', by))
  t.equal(refused(found()), 'TargetUnfit')
  t.equal(refused(found({ kind: 'symlink' })), undefined)
  t.equal(refused(found({}, { exists: false })), undefined, 'it was taken away')
  t.equal(refused(found({}, { newest: undefined, current: undefined })), undefined)
})

await t.test("refusals leave a newer version's publication, and other programs' files, alone", async (t) => {
  t.equal(
    reasonOf(() => refuseNewer(path, { newer: [3] })),
    'TargetUnfit',
  )
  t.equal(
    reasonOf(() => refuseNewer(path, { newer: [] })),
    undefined,
  )
  const entry = (name: string) => ({ path: name, type: 'file', sha256: 'x', mode: 0o600, uid: 0, gid: 0 }) as const
  const others = { digest: 'x', entries: [entry('a'), entry('theirs')] }
  const refused = (marks: Parameters<typeof found>[1]) =>
    reasonOf(() => refuseForeign(path, { digest: 'y', entries: [entry('a')] }, found({}, marks)))
  t.equal(refused({ tree: others, recorded: false }), 'TargetForeign')
  t.equal(refused({ tree: others, recorded: true }), undefined)
  t.equal(refused({ tree: { ...others, entries: [entry('a')] }, recorded: false }), undefined)
  t.equal(refused({ tree: undefined, recorded: false }), undefined)
  t.equal(refused({ tree: treeOf('z'), recorded: false }), undefined)
})
