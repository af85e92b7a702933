/** The errors for targets that removePublished does not take away, or not wholly. */
import t from 'tap'
import { SystemError } from '../../../native/index.js'
import { DurableWriteError } from '../../../src/durable/errors.js'
import type { StoredRecord } from '../../../src/durable/record/record.js'
import * as errors from '../../../src/durable/remove/removal-errors.js'
import type { Publication } from '../../../src/durable/types.js'

const path = '/etc/certs'
const generation = '..1-0123456789abcdef'

type Problem = Publication['differences'][number]

/** The reason and the sentence of its error; '' where it lets the target go. */
function said(check: () => void): string {
  try {
    check()
    return ''
  } catch (error) {
    if (!(error instanceof DurableWriteError)) throw error
    return `${error.reason}: ${error.problem}`
  }
}

function changed(kind: StoredRecord['kind'], differences: Problem[], isOwn = true): string {
  // It reads no other field.
  return said(() =>
    errors.refuseChanged(path, { kind } as StoredRecord, { differences } as unknown as Publication, isOwn),
  )
}

await t.test('what differs keeps a target, but for what the symlink form leaves behind', async (t) => {
  const is = (what: string): string => `TargetForeign: ${path} is not what holdfast published: ${what}`
  const found = (name: string, problem: Problem['problem'] = 'unexpected'): Problem => ({ path: name, problem })
  t.equal(changed('symlink', []), '')
  t.equal(changed('symlink', [found(generation), found('..data_tmp')]), '')
  for (const name of ['other', '..data', `${generation}0`]) {
    t.equal(changed('symlink', [found(name)]), is(`${name} (unexpected)`))
  }
  for (const problem of ['missing', 'content', 'mode', 'owner', 'type'] as const) {
    t.equal(changed('symlink', [found(generation, problem)]), is(`${generation} (${problem})`))
    t.equal(changed('symlink', [found('..data_tmp', problem)]), is(`..data_tmp (${problem})`))
  }
  for (const kind of ['exchange', 'file'] as const) {
    t.equal(changed(kind, [found(generation)]), is(`${generation} (unexpected)`))
    t.equal(changed(kind, [found('..data_tmp')]), is('..data_tmp (unexpected)'))
  }
  const many = ['a', 'b', 'c', 'd'].map((name) => found(name, 'content'))
  t.equal(changed('exchange', many), is('a (content), b (content), c (content) and 1 more'), 'three are named')
  const copy = 'its record is of another one, as after a copy or a restored backup'
  t.equal(changed('exchange', [], false), is(copy))
})

await t.test('what an operator has held, or rolled back, stays', async (t) => {
  const hold = { reason: '', since: 7, until: null }
  const pin = { reason: '', since: 7, until: 'released', from: [], digest: 'sha256:0' } as const
  t.equal(
    said(() => errors.refuseKept(path, {})),
    '',
  )
  t.match(
    said(() => errors.refuseKept(path, { hold })),
    /^Held: /,
  )
  t.match(
    said(() => errors.refuseKept(path, { pin: { ...pin, from: [] } })),
    /^RolledBack: /,
  )
  t.match(
    said(() => errors.refuseKept(path, { hold, pin: { ...pin, from: [] } })),
    /^Held: /,
    'the hold first',
  )
})

await t.test('refuseRevision names the command of the publisher', async (t) => {
  const refused = (publisher: string | undefined): string =>
    said(() => errors.refuseRevision(path, { publisher } as StoredRecord))
  t.equal(refused(undefined), '')
  t.equal(refused('agent'), '')
  t.match(refused('install'), /holdfast install published/)
  t.match(refused('rollout'), /holdfast rollout published/)
  const advice = (publisher: string): string | undefined => {
    try {
      errors.refuseRevision(path, { publisher } as StoredRecord)
      return undefined
    } catch (error) {
      return (error as DurableWriteError).advice
    }
  }
  t.equal(advice('install'), 'use "holdfast prune"')
  t.equal(advice('rollout'), 'roll it out without it')
})

await t.test('each error says what remains, and its remedy', async (t) => {
  t.match(errors.inUse(path, 'sh (7)'), { reason: 'InUse', code: 'EBUSY', published: false })
  t.match(errors.changed(path, 'x'), { reason: 'TargetForeign', published: false, state: 'nothing was changed' })
  t.match(errors.removalAborted(path, undefined), { code: 'ABORT_ERR', published: false, state: 'nothing was changed' })
  const taken = errors.placeTaken(path, '.holdfast-x')
  t.match(taken, { published: true, state: 'what was there before is /etc/.holdfast-x' })
  const gone = {
    published: true,
    path,
    state: `${path} has left its place; its record stays until all of it is known to be removed`,
  }
  const again = 'then repeat the call: it goes on'
  const plain = errors.unfinished(path, 'x', 'ENOTEMPTY')
  t.match(plain, { ...gone, code: 'ENOTEMPTY', syscall: 'unlinkat', reason: 'DurabilityUnknown' })
  t.ok(plain.advice?.endsWith(again))
  const refused = errors.unfinished(path, 'x', 'EBUSY', errors.inUse(path, 'sh (7)'), 'end it')
  t.match(refused, { ...gone, reason: 'InUse', syscall: 'none', advice: `end it; ${again}` })
  const call = errors.unfinished(path, 'x', 'EIO', new SystemError('rmdir', 5, path), '')
  t.match(call, { ...gone, reason: 'DurabilityUnknown', syscall: 'rmdir', advice: again })
})

await t.test('stillInUse reports a user of the rest as such, and any other failure unchanged', async (t) => {
  const user = errors.inUse(path, 'sh (7)')
  const left = errors.stillInUse(path, user)
  t.match(left, {
    published: true,
    reason: 'InUse',
    code: 'EBUSY',
    syscall: 'none',
    problem: user.problem,
    cause: user,
  })
  t.match(left, { advice: /^end it, or have it close what it has open; / })
  const others = [new Error('x'), Object.assign(new Error('x'), { reason: 'InUse' }), errors.changed(path, 'x')]
  for (const other of others) t.equal(errors.stillInUse(path, other), other)
})

await t.test('names that could not be removed are listed with the first failure', async (t) => {
  const left = ['a', 'b', 'c', 'd']
  const problem = `could not remove a, b, c and 1 more beside ${path}`
  const told = (first: unknown) => errors.notAllGone(path, left, first)
  t.match(told(new Error('odd')), { problem: `${problem}: odd`, code: 'ENOTEMPTY', published: true })
  const mounted = told(new SystemError('rmdir', 16, '/etc/a'))
  t.match(mounted, { problem: `${problem}: rmdir /etc/a: EBUSY`, code: 'EBUSY', syscall: 'rmdir' })
  t.match(mounted.advice, /^unmount it; /)
  const denied = told(new SystemError('unlinkat', 1, undefined))
  t.match(denied, { problem: `${problem}: unlinkat: EPERM`, code: 'EPERM', syscall: 'unlinkat' })
  t.notMatch(denied.advice, /unmount/)
})
