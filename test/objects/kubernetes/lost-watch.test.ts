/** A lost watch reports why it was lost: each restart carries the last error, with the reason that a condition shows. */
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { connect } from '../../../src/kubernetes/connection/connection.js'
import { KubernetesSource } from '../../../src/objects/kubernetes/source.js'
import { Recorder, reference } from '../recorder.js'
import { refuse } from '../../kubernetes/connection/api-server.js'
import { makeAuthority, temporaryDirectory } from '../../kubernetes/connection/certificates.js'
import { authority } from '../../kubernetes/connection/connected.js'
import { kubeconfig, loadKubeconfig } from '../../kubernetes/credentials/kubeconfig-text.js'
import { SimulatedTime } from '../../simulated-time.js'
import { ModelCluster } from './model-cluster.js'
import { recordingLog, shortTiming, startWatching } from './watching.js'

const cert = reference('serving-cert')

void t.test('a wrong authority shows as the certificate that it did not sign, not as a denial', async (t) => {
  const directory = temporaryDirectory()
  t.teardown(directory.remove)
  const ca = join(directory.path, 'ca')
  const put = (text: string) => {
    writeFileSync(`${ca}.new`, text)
    renameSync(`${ca}.new`, ca)
  }
  put(authority.certificate)
  const cluster = new ModelCluster()
  cluster.put('serving-cert', 'one')
  await cluster.start()
  t.teardown(() => cluster.stop())
  const recorder = new Recorder()
  const logged: string[] = []
  const settings = kubeconfig(
    { server: cluster.url, 'certificate-authority': 'ca' },
    { token: 'a-token' },
    'kube-system',
  )
  let looks = 0
  const credentials = await loadKubeconfig(directory.path, settings, {
    timing: { look: 0, settle: 50 },
    obey: ({ what }) => Promise.resolve(void (looks += what === 'kubeconfig' ? 1 : 0)),
  })
  const client = connect(credentials, { version: '1', limits: { drain: 0 } })
  const timing = { firstDelay: 20, longestDelay: 50, scoutDelay: 50, wakeSpread: 10, wakeInterval: 0, denialGrace: 0 }
  const source = new KubernetesSource(client, recorder, { timing, log: recordingLog(logged) })
  t.teardown(() => source.close())
  source.follow([{ reference: cert }])
  await recorder.untilState(cert, 'present', 'one')

  // A second look begins once the client has made use of the first one.
  for (let look = 1; look <= 2; look++) {
    const before = looks
    put(authority.certificate)
    await recorder.until(`look ${look}`, () => looks > before)
  }
  t.strictSame([recorder.restarts, logged], [[], []], 'the same authority, written again, changes nothing')

  put(makeAuthority('another').certificate)
  await recorder.until('refused', () => recorder.restarts.includes('connection'))
  t.equal(recorder.restarts[0], 'rotation', 'holdfast closed the connection itself')
  t.match(recorder.losses.at(-1), { reason: 'SourceUnavailable', message: /is not signed by the authority/ })
  t.notOk(recorder.losses.some((loss) => loss?.reason === 'AccessDenied'))
  t.notOk(
    logged.some((line) => line.includes('"warn"') && line.includes('have been replaced')),
    'a rotation is no warning',
  )
  put(authority.certificate)
  cluster.put('serving-cert', 'two')
  await recorder.untilState(cert, 'present', 'two')
})

void t.test('a denial names the missing right, and a refused connection its port', async (t) => {
  const { cluster, recorder, source } = await startWatching(t, { denialGrace: 60_000 }, (c) =>
    c.put('serving-cert', 'one'),
  )
  source.follow([{ reference: cert }])
  await recorder.untilState(cert, 'present', 'one')
  cluster.intercept = (_, reply) => {
    refuse(reply, 403, 'forbidden')
    return true
  }
  cluster.cut()
  await recorder.until('denied', () => recorder.restarts.includes('denied'))
  t.match(recorder.losses.at(-1), { reason: 'AccessDenied', message: /HTTP 403 .*verbs get, list and watch/ })
  await cluster.stop()
  await recorder.until('refused', () => /ECONNREFUSED/.test(recorder.losses.at(-1)?.message ?? ''))
  t.match(recorder.losses.at(-1), { reason: 'SourceUnavailable' })
})

void t.test('the log names each cause of an outage once, however many watches meet it', async (t) => {
  const directory = temporaryDirectory()
  t.teardown(directory.remove)
  const ca = join(directory.path, 'ca')
  writeFileSync(ca, authority.certificate)
  const cluster = new ModelCluster()
  const references = ['a', 'b', 'c'].map((name) => reference(name))
  for (const { name } of references) cluster.put(name, 'one')
  await cluster.start()
  t.teardown(() => cluster.stop())
  const recorder = new Recorder()
  const logged: string[] = []
  const settings = kubeconfig(
    { server: cluster.url, 'certificate-authority': 'ca' },
    { token: 'a-token' },
    'kube-system',
  )
  const client = connect(await loadKubeconfig(directory.path, settings, { timing: { look: 0 } }), { version: '1' })
  const source = new KubernetesSource(client, recorder, { timing: shortTiming, log: recordingLog(logged) })
  t.teardown(() => source.close())
  source.follow(references.map((reference) => ({ reference })))
  for (const each of references) await recorder.untilState(each, 'present', 'one')
  const warned = (part: string): number =>
    logged.filter((line) => line.includes('"warn"') && line.includes(part)).length
  const met = (part: string): boolean =>
    references.every(({ name }) => logged.some((line) => line.includes(part) && line.includes(`kube-system/${name}`)))

  await cluster.stop()
  await recorder.until('each watch is refused', () => met('ECONNREFUSED'))
  t.equal(warned('ECONNREFUSED'), 1, logged.join('\n'))
  writeFileSync(ca, makeAuthority('another').certificate)
  await cluster.start()
  await recorder.until('each watch meets the certificate', () => met('is not signed by the authority'))
  t.equal(warned('is not signed by the authority'), 1)
  t.equal(warned('ECONNREFUSED'), 1)
  writeFileSync(ca, authority.certificate)
  for (const { name } of references) cluster.put(name, 'two')
  for (const each of references) await recorder.untilState(each, 'present', 'two')
})

void t.test('a kubeconfig that moves to another server is followed within five seconds', async (t) => {
  const time = new SimulatedTime(t)
  const directory = temporaryDirectory()
  t.teardown(directory.remove)
  writeFileSync(join(directory.path, 'ca'), authority.certificate)
  const clusters = [new ModelCluster(), new ModelCluster()] as const
  const [from, to] = clusters
  for (const cluster of clusters) {
    await cluster.start()
    t.teardown(() => cluster.stop())
  }
  from.put('serving-cert', 'here')
  to.put('serving-cert', 'older')
  to.put('serving-cert', 'there')
  const settings = ({ url }: ModelCluster) =>
    kubeconfig({ server: url, 'certificate-authority': 'ca' }, { token: 'a-token' }, 'kube-system')
  const client = connect(await loadKubeconfig(directory.path, settings(from)), { version: '1' })
  const recorder = new Recorder()
  const source = new KubernetesSource(client, recorder)
  t.teardown(() => source.close())
  source.follow([{ reference: cert }])
  await recorder.untilState(cert, 'present', 'here')
  writeFileSync(join(directory.path, 'kubeconfig.new'), settings(to))
  renameSync(join(directory.path, 'kubeconfig.new'), join(directory.path, 'kubeconfig'))
  const isFollowed = () => recorder.last(cert)?.observation.state === 'present' && to.watching === 1
  await time.until('it is followed', isFollowed, 100, 5_000)
  await recorder.untilState(cert, 'present', 'there')
  t.strictSame(recorder.restarts, ['rotation'])
})
