import t from 'tap'
import { describeDifferences } from '../../src/directories/verify.js'
import type { Publication } from '../../src/durable/types.js'

await t.test('describeDifferences tells in words what differs on the disk', async (t) => {
  const publication: Publication = {
    path: '/srv/certs',
    digest: 'sha256:aa',
    sequence: 1,
    actual: 'sha256:bb',
    settled: true,
    durable: true,
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
  t.same(describeDifferences({ ...publication, differences: [] }), ['/srv/certs is not what was published'])
  t.same(describeDifferences({ ...publication, actual: undefined }), ['/srv/certs does not exist'])
})
