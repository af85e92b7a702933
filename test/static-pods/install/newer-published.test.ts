/** A directory of certificates that another installer published: a slower one must not set it back to its own older read. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { silent, type Log } from '../../../src/log.js'
import { DurableCalls } from '../../../src/durable/index.js'
import type { DirectoryPublicationRequest } from '../../../src/durable/single-calls/index.js'
import { currentLasting } from '../../../src/static-pods/install/install.js'
import { scratch } from '../pods.js'

const object = { kind: 'Secret', namespace: 'n', name: 'serving', uid: 'u', paths: ['tls.crt'] } as const

await t.test('currentLasting reads an object once more where a newer version of it is published', async (t) => {
  const durable = new DurableCalls()
  const warnings: object[] = []
  const log: Log = { ...silent, warn: (fields) => void warnings.push(fields) }
  const target = join(scratch(t), 'secrets', 'serving')
  const version = (resourceVersion: string, uid: string = object.uid): DirectoryPublicationRequest => ({
    target,
    files: { 'tls.crt': resourceVersion },
    objects: [{ ...object, uid, resourceVersion, paths: ['tls.crt'] }],
  })
  const plan = (read: DirectoryPublicationRequest, again?: DirectoryPublicationRequest) => ({
    pod: 'web-pod',
    revision: 1,
    directory: undefined,
    manifests: [],
    lasting: [read],
    reread: () => {
      rereads++
      return Promise.resolve(again)
    },
  })
  let rereads = 0
  const chosen = async (read: DirectoryPublicationRequest, again?: DirectoryPublicationRequest) => {
    rereads = 0
    const [request] = await currentLasting(durable, plan(read, again), log)
    return request?.objects?.[0]?.resourceVersion
  }

  t.equal(await chosen(version('9')), '9', 'nothing is published yet')
  t.equal(rereads, 0)
  await durable.publishDirectories([version('20')], undefined)
  t.equal(readFileSync(join(target, 'tls.crt'), 'utf8'), '20')
  for (const same of ['20', '21', '100']) t.equal(await chosen(version(same)), same)
  t.equal(await chosen(version('sha256:1')), 'sha256:1')
  t.equal(rereads, 0, 'the same, a newer one, and one that cannot be compared are as they should be')

  t.equal(await chosen(version('9'), version('20')), '20', 'an answer from a cache that lagged behind')
  t.equal(rereads, 1)
  t.same(warnings, [])
  t.equal(await chosen(version('9'), version('9')), '9', 'a server whose history was rewound')
  t.match(warnings, [{ path: target, reason: 'HistoryRewound' }])
  t.equal(await chosen(version('9'), undefined), undefined, 'gone meanwhile: what is there stays')
  t.equal(await chosen(version('9', 'another')), '9', 'another object of the same name is not an older version')
  t.equal(rereads, 0)
})
