/** Watches whose token expired, and what wakes them. */
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Renewal } from '../../../src/kubernetes/connection/renewal.js'
import { KubernetesSource } from '../../../src/objects/kubernetes/source.js'
import { Recorder, reference } from '../../objects/recorder.js'
import { SimulatedTime } from '../../simulated-time.js'
import { json } from './api-server.js'
import { temporaryDirectory } from './certificates.js'
import { connectTo } from './connected.js'
import { ModelCluster } from '../../objects/kubernetes/model-cluster.js'

const cert = reference('serving-cert')

void t.test('the client uses a token that was replaced after a 401 at once, in the middle of any delay', async (t) => {
  const directory = temporaryDirectory()
  const token = join(directory.path, 'token')
  writeFileSync(token, 'expired')
  const cluster = new ModelCluster()
  cluster.put('serving-cert', 'one')
  let rejecting = true
  cluster.intercept = (_, reply) => {
    if (!rejecting) return false
    json(reply, 401, { kind: 'Status', code: 401, message: 'Unauthorized' })
    return true
  }
  await cluster.start()
  t.teardown(() => cluster.stop())
  const recorder = new Recorder()
  const source = new KubernetesSource(await connectTo(t, cluster.url, { tokenFile: token }), recorder, {
    timing: { firstDelay: 3_600_000, longestDelay: 3_600_000 },
  })
  t.teardown(async () => {
    await source.close()
    directory.remove()
  })
  source.follow([{ reference: cert }])
  await recorder.untilState(cert, 'unknown')
  t.ok(cluster.requests.length >= 1)
  rejecting = false
  writeFileSync(`${token}.new`, 'fresh')
  renameSync(`${token}.new`, token)
  t.ok(await recorder.untilState(cert, 'present', 'one'), 'not after an hour')
})

void t.test('close ends a wait for credentials', async (t) => {
  const api = await connectTo(t, 'https://127.0.0.1:1')
  const ending = new AbortController()
  const waiting = api.renewal(ending.signal)
  ending.abort()
  await t.resolves(waiting)
  await t.resolves(api.renewal(ending.signal), 'and where it had ended before')
})

void t.test('one look serves all who wait for credentials, and none is made once nobody does', async (t) => {
  const time = new SimulatedTime(t)
  let looks = 0
  const renewal = new Renewal(() => Promise.resolve(++looks === 4))
  const [first, second] = [new AbortController(), new AbortController()]
  const waiting = [renewal.wait(first.signal), renewal.wait(second.signal)]
  await time.advance(1_000)
  first.abort()
  await time.advance(1_000)
  t.equal(looks, 2)
  second.abort()
  await Promise.all(waiting)
  await time.advance(60_000)
  t.equal(looks, 2)
  await time.during(renewal.wait(new AbortController().signal))
  await time.advance(60_000)
  t.equal(looks, 4, 'nor once they differ')
})
