import t from 'tap'
import { reasonOf } from '../../src/directories/reasons.js'
import { describeDifferences } from '../../src/directories/verify.js'
import { DurableWriteError } from '../../src/durable/errors.js'
import type { Publication } from '../../src/durable/types.js'
import { reasons } from '../../src/reasons.js'

await t.test('the reason for each failure', (t) => {
  const failure = (fields: object) =>
    Object.assign(new Error('x'), { syscall: 'renameat2', published: false, ...fields })
  const cases: [unknown, string, boolean][] = [
    [failure({ code: 'ENOSPC' }), 'NoSpace', false],
    [failure({ code: 'EDQUOT' }), 'NoSpace', false],
    [failure({ code: 'EAGAIN', syscall: 'flock' }), 'Busy', false],
    [failure({ code: 'EAGAIN', syscall: 'read' }), 'PublishFailed', false],
    [failure({ code: 'EXDEV' }), 'TargetUnfit', true],
    [failure({ code: 'EBUSY' }), 'TargetUnfit', true],
    [failure({ code: 'EROFS' }), 'TargetUnfit', true],
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
    const found = reasonOf(error)
    t.match(found, { reason, terminal }, JSON.stringify(error))
    t.ok(reasons.includes(found.reason))
  }
  const real = new DurableWriteError('x', { code: 'EIO', syscall: 'fsync', path: '/x', published: true })
  t.equal(reasonOf(real).reason, 'DurabilityUnknown')
  t.end()
})

await t.test('what differs on the disk, in words', (t) => {
  const publication: Publication = {
    path: '/srv/certs',
    digest: 'sha256:aa',
    actual: 'sha256:bb',
    settled: true,
    publishedAt: new Date(0),
    objects: [],
    pendingHooks: [],
    differences: [
      { path: 'z', problem: 'unexpected' },
      { path: 'tls.key', problem: 'mode' },
      { path: 'tls.crt', problem: 'content' },
      { path: 'b\u001b[31m c', problem: 'missing' },
      { path: 'owned', problem: 'owner' },
      { path: 'link', problem: 'type' },
      { path: '', problem: 'mode' },
    ],
  }
  t.same(describeDifferences(publication), [
    '/srv/certs has another mode',
    '"b\\u001b[31m c" is missing',
    'link is not of the kind that was published (file, directory or link)',
    'owned has another owner',
    'tls.crt has other content',
    'tls.key has another mode',
    'z was not published',
  ])
  t.same(describeDifferences({ ...publication, differences: [], actual: 'sha256:aa' }), [])
  t.same(describeDifferences({ ...publication, differences: [] }), ['/srv/certs has digest sha256:bb, not sha256:aa'])
  t.same(describeDifferences({ ...publication, actual: undefined }), ['/srv/certs does not exist'])
  t.end()
})
