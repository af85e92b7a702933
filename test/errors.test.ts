import { runInNewContext } from 'node:vm'
import t from 'tap'
import { DurableWriteError, extendError, wrapError } from '../src/durable/errors.js'
import { adviceFor, codeOf, failureFrom, failureOf, messageOf, toError } from '../src/errors.js'
import { reasons } from '../src/reasons.js'

await t.test('the reason for each failure', async (t) => {
  const failure = (fields: object) =>
    Object.assign(new Error('x'), { syscall: 'renameat2', published: false, ...fields })
  const cases: [unknown, string, boolean][] = [
    [failure({ code: 'ENOSPC' }), 'NoSpace', false],
    [failure({ code: 'EDQUOT' }), 'NoSpace', false],
    [failure({ code: 'EAGAIN', syscall: 'flock' }), 'Busy', false],
    [failure({ code: 'EAGAIN', syscall: 'read' }), 'PublishFailed', false],
    [failure({ code: 'EXDEV' }), 'TargetUnfit', true],
    [failure({ code: 'EBUSY' }), 'TargetUnfit', true],
    [failure({ code: 'EROFS' }), 'PublishFailed', false],
    [failure({ code: 'EISDIR' }), 'TargetUnfit', true],
    [failure({ code: 'ENAMETOOLONG' }), 'TargetUnfit', true],
    [failure({ code: 'ELOOP' }), 'TargetUnfit', true],
    [failure({ code: 'ENOTDIR' }), 'TargetUnfit', true],
    [failure({ code: 'ENOTSUP' }), 'TargetUnfit', true],
    [failure({ code: 'EOPNOTSUPP' }), 'TargetUnfit', true],
    [failure({ code: 'ENOSYS' }), 'TargetUnfit', true],
    [failure({ code: 'ENOTEMPTY' }), 'TargetForeign', true],
    [failure({ code: 'EEXIST', reason: 'TargetForeign' }), 'TargetForeign', true],
    [failure({ code: 'EINVAL', reason: 'TargetUnfit' }), 'TargetUnfit', true],
    [failure({ code: 'EIO', syscall: 'fsync' }), 'PublishFailed', false],
    [failure({ code: 'EIO', syscall: 'fsync', published: true }), 'DurabilityUnknown', false],
    [failure({ code: 'ENOSPC', published: true, reason: 'NoSpace' }), 'DurabilityUnknown', false],
    [failure({ code: 'toString' }), 'PublishFailed', false],
    [failure({ code: 'EIO', reason: 'NoReason' }), 'PublishFailed', false],
    [failure({ code: 'EIO', reason: 'Published' }), 'PublishFailed', false],
    [new TypeError('x'), 'PublishFailed', false],
    [undefined, 'PublishFailed', false],
  ]
  for (const [error, reason, terminal] of cases) {
    const found = failureFrom(error)
    t.match(found, { reason, terminal }, JSON.stringify(error))
    t.ok(reasons.includes(found.reason))
  }
  for (const [error, reason] of cases) {
    const { code, published, reason: given } = (error ?? {}) as { code?: string; published?: boolean; reason?: string }
    if (code === undefined || code === 'EAGAIN' || given !== undefined) continue
    const thrown = new DurableWriteError('x', { code, syscall: 'rename', path: '/x', published })
    t.equal(thrown.reason, reason, `${code}: the error of the core names the same reason`)
  }
  const real = new DurableWriteError('x', { code: 'EIO', syscall: 'fsync', path: '/x', published: true })
  t.equal(failureFrom(real).reason, 'DurabilityUnknown')
})

await t.test('codeOf, messageOf and toError accept any thrown value', async (t) => {
  const failed = Object.assign(new Error('no room'), { code: 'ENOSPC', syscall: 'write' })
  t.equal(codeOf(failed), 'ENOSPC')
  t.equal(codeOf(new Error('x')), undefined)
  t.equal(
    codeOf(Object.assign(new Error('x'), { code: 'UNKNOWN', errno: -122 })),
    'EDQUOT',
    'as a call made at once has it',
  )
  t.equal(codeOf(Object.assign(new Error('x'), { code: 'UNKNOWN' })), 'UNKNOWN', 'not every failure has an errno')
  t.equal(codeOf({ code: 'ENOSPC' }), undefined, 'only errors have one')
  t.equal(messageOf(failed), 'no room')
  t.equal(messageOf('no room'), 'no room')
  t.equal(toError(failed), failed)
  t.equal(toError(7).message, '7')
  t.equal(await failureOf(Promise.reject(failed)), failed)
  t.equal(await failureOf(Promise.resolve(1)), undefined)
})

await t.test('an error of another realm is an error, as where jest runs the library', async (t) => {
  const thrown: unknown = runInNewContext(
    `Object.assign(new Error('no such file'), { code: 'ENOENT', syscall: 'lstat' })`,
  )
  t.notOk(thrown instanceof Error)
  t.equal(codeOf(thrown), 'ENOENT')
  t.equal(messageOf(thrown), 'no such file')
  t.equal(toError(thrown), thrown)
  t.equal(await failureOf(Promise.reject(thrown as Error)), thrown)
  t.equal(wrapError('/x', thrown, false, 'could not read /x').code, 'ENOENT')
  t.match(failureFrom(Object.assign(thrown as object, { code: 'ENOSPC' })), { reason: 'NoSpace' })
})

await t.test('what to do about an errno', async (t) => {
  t.equal(adviceFor('ENOSPC', 'read'), adviceFor('ENOSPC'))
  t.equal(adviceFor('toString'), undefined)
  for (const code of ['EIO', 'EROFS', 'EFBIG', 'ENOMEM', 'EUCLEAN', 'EMFILE', 'ENFILE']) t.ok(adviceFor(code), code)
})

await t.test('a DurableWriteError makes its message of its fields', async (t) => {
  const cause = Object.assign(new Error('x'), { code: 'ENOSPC', syscall: 'write', path: '/srv/.staging/tls.crt' })
  const error = wrapError('/srv/certs', cause, false, 'could not stage /srv/certs')
  t.match(error, {
    problem: 'could not stage /srv/certs: write /srv/.staging/tls.crt: ENOSPC',
    state: 'holdfast left /srv/certs as it was',
    advice: 'free up space or inodes on this file system',
    reason: 'NoSpace',
    published: false,
  })
  t.equal(error.message, [error.problem, error.state, error.advice].join('; '))
  t.equal(error.cause, cause)
  t.notOk('cause' in new DurableWriteError('x', { code: 'EIO', syscall: 'fsync', path: '/x' }), 'none is made up')
  t.equal(wrapError('/srv/certs', error, true, 'could not publish'), error, 'it says all already')
  const defect = new TypeError('x')
  t.throws(() => wrapError('/srv/certs', defect, false, 'could not publish'), defect)
  t.equal(new DurableWriteError('x', { code: 'EIO', syscall: 'fsync', path: '/x' }).message, 'x')
})

await t.test('extendError adds facts about the disk behind the advice, or behind the state without one', async (t) => {
  const bare = new DurableWriteError('no', { code: 'EIO', syscall: 'fsync', path: '/x' })
  t.equal(extendError(bare, []), bare)
  t.equal(extendError(bare, ['one']).message, 'no; one')
  const whole = new DurableWriteError('no', { code: 'EIO', syscall: 'fsync', path: '/x', state: 'left', advice: 'do' })
  t.match(extendError(whole, ['one', 'two']), {
    state: 'left',
    advice: 'do; one; two',
    message: 'no; left; do; one; two',
  })
  t.match(
    extendError(new DurableWriteError('no', { code: 'EIO', syscall: 'fsync', path: '/x', state: 'left' }), ['one']),
    { state: 'left; one' },
  )
})
